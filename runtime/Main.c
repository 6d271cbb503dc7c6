//===- Main.c - the program around a model: keratinc --emit=exe ----------===//
// Compiled with -DKERATIN_MODEL=NAME_model_info and -DKERATIN_THREADS=NUMBER,
// and linked with the object and the pool of threads.
#define _DEFAULT_SOURCE // madvise

#include "keratin/dtype.h"
#include "keratin/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

extern const ktn_model_info_t KERATIN_MODEL;

enum { max_tensors = 256 };

typedef struct options_t {
  int64_t batch, repeat, threads;
  const char *weights;
  const char *inputs[max_tensors], *outputs[max_tensors];
  int num_inputs, num_outputs;
} options_t;

static const char usage[] =
    "usage: %s [--batch=N] [--repeat=N] [--threads=N] [--weights=FILE] "
    "[--input=FILE]... [--output=FILE]...\n"
    "Runs the model %s once, or N times. Files hold dense little-endian "
    "elements, in the\norder of the model's inputs and outputs; inputs "
    "without a file are pseudo-random.\n";

static int fail(const char *problem, const char *what) {
  fprintf(stderr, "error: %s: %s\n", what, problem);
  return 1;
}

static int64_t element_bytes(int32_t dtype) {
  return ktn_dtype_row(dtype)->bytes;
}

// Number of elements; -1 when their bytes would overflow.
static int64_t element_count(const ktn_tensor_info_t *tensor, int64_t batch) {
  int64_t count = 1, largest = INT64_MAX / 2 / element_bytes(tensor->dtype);
  for (int axis = 0; axis < tensor->rank; ++axis) {
    int64_t extent = tensor->shape[axis] < 0 ? batch : tensor->shape[axis];
    if (extent > 0 && count > largest / extent)
      return -1;
    count *= extent;
  }
  return count;
}

static uint64_t next_random(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

/* Small numbers that every model takes: [-1, 1) for floats, 0 or 1 for
 * others.*/
static void fill_random(void *data, int32_t dtype, int64_t count,
                        uint64_t *state) {
  for (int64_t i = 0; i < count; ++i) {
    uint64_t bits = next_random(state);
    double real = (double)(bits & 0xFFFFFF) / 0x800000 - 1;
    switch (dtype) {
    case KTN_F32:
      ((float *)data)[i] = (float)real;
      break;
    case KTN_F64:
      ((double *)data)[i] = real;
      break;
    case KTN_F16: /* [1, 2): exponent 15, random mantissa */
      ((uint16_t *)data)[i] = (uint16_t)(0x3C00 | (bits & 0x3FF));
      break;
    case KTN_BF16:
      ((uint16_t *)data)[i] = (uint16_t)(0x3F80 | (bits & 0x7F));
      break;
    default:
      memset((char *)data + i * element_bytes(dtype), 0,
             (size_t)element_bytes(dtype));
      ((char *)data)[i * element_bytes(dtype)] = (char)(bits & 1);
    }
  }
}

static int read_file(const char *path, void *data, size_t bytes) {
  FILE *file = fopen(path, "rb");
  if (!file)
    return fail("cannot be opened", path);
  size_t got = fread(data, 1, bytes, file);
  int more = fgetc(file) != EOF;
  fclose(file);
  if (got == bytes && !more)
    return 0;
  fprintf(stderr, "error: %s: has %s than the %zu bytes expected\n", path,
          more ? "more" : "less", bytes);
  return 1;
}

static int write_file(const char *path, const void *data, size_t bytes) {
  FILE *file = fopen(path, "wb");
  if (!file)
    return fail("cannot be opened", path);
  int bad = fwrite(data, 1, bytes, file) != bytes;
  bad |= fclose(file) != 0;
  return bad ? fail("cannot be written", path) : 0;
}

static int parse_count(const char *text, int64_t *out) {
  char *end;
  *out = strtoll(text, &end, 10);
  return *end == 0 && *out > 0 ? 0 : fail("not a positive number", text);
}

// 0, or the exit status.
static int parse_options(int argc, char **argv, options_t *options) {
  for (int i = 1; i < argc; ++i) {
    const char *value = strchr(argv[i], '=');
    size_t length = value ? (size_t)(value++ - argv[i]) : strlen(argv[i]);
    int bad = 0;
    if (value && length == 7 && !strncmp(argv[i], "--batch", length))
      bad = parse_count(value, &options->batch);
    else if (value && length == 8 && !strncmp(argv[i], "--repeat", length))
      bad = parse_count(value, &options->repeat);
    else if (value && length == 9 && !strncmp(argv[i], "--threads", length))
      bad = parse_count(value, &options->threads);
    else if (value && length == 9 && !strncmp(argv[i], "--weights", length))
      options->weights = value;
    else if (value && length == 7 && !strncmp(argv[i], "--input", length) &&
             options->num_inputs < KERATIN_MODEL.num_inputs)
      options->inputs[options->num_inputs++] = value;
    else if (value && length == 8 && !strncmp(argv[i], "--output", length) &&
             options->num_outputs < KERATIN_MODEL.num_outputs)
      options->outputs[options->num_outputs++] = value;
    else
      bad = fail("not an option of this program, or one too many", argv[i]);
    if (bad) {
      fprintf(stderr, usage, argv[0], KERATIN_MODEL.name);
      return 2;
    }
  }
  return 0;
}

static double now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static void print_output(const ktn_tensor_info_t *tensor, const void *data,
                         int64_t count) {
  double least = 0, most = 0, sum = 0;
  if (tensor->dtype != KTN_F32 && tensor->dtype != KTN_F64) {
    printf("%s: %lld elements\n", tensor->name, (long long)count);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    double value = tensor->dtype == KTN_F32 ? ((const float *)data)[i]
                                            : ((const double *)data)[i];
    least = i == 0 || value < least ? value : least;
    most = i == 0 || value > most ? value : most;
    sum += value;
  }
  printf("%s: %lld elements, min %g, max %g, mean %g\n", tensor->name,
         (long long)count, least, most, count ? sum / (double)count : 0);
}

static int load_weights(const options_t *options, const void **out_weights) {
  *out_weights = KERATIN_MODEL.weights;
  if (*out_weights || KERATIN_MODEL.weights_bytes == 0)
    return 0;
  if (!options->weights)
    return fail("its weights are a file, give it with --weights=FILE",
                KERATIN_MODEL.name);
  // Mapped: what the model reads, and when it reads it, comes into memory.
  ktn_status_t status =
      ktn_weights_open(options->weights, &KERATIN_MODEL, out_weights);
  return status == KTN_OK ? 0 : fail(ktn_status_name(status), options->weights);
}

// Maps the pages of all weights at once. The first run asks for lines ahead of
// their use, and where a page is not mapped yet each of these walks the tables
// of pages to no end, which took longer than what it computes.
static void map_weights(const void *weights) {
#ifdef __linux__
  enum { populate_read = 22 }; // MADV_POPULATE_READ of Linux 5.14
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t begin = (uintptr_t)weights / page * page;
  uintptr_t bytes =
      (uintptr_t)weights - begin + (uintptr_t)KERATIN_MODEL.weights_bytes;
  // Where it fails, pages come as they are read.
  if (KERATIN_MODEL.weights_bytes > 0)
    (void)madvise((void *)begin, bytes, populate_read);
#else
  (void)weights;
#endif
}

// Inputs filled, outputs allocated. Memory is given back by the exit.
static int prepare_tensors(const options_t *options, const void **inputs,
                           void **outputs) {
  uint64_t random = 1;
  for (int i = 0; i < KERATIN_MODEL.num_inputs; ++i) {
    const ktn_tensor_info_t *tensor = &KERATIN_MODEL.inputs[i];
    int64_t count = element_count(tensor, options->batch);
    int64_t bytes = count * element_bytes(tensor->dtype);
    void *data = ktn_pages_take(bytes);
    if (!data)
      return fail("out of memory", tensor->name);
    inputs[i] = data;
    if (i >= options->num_inputs)
      fill_random(data, tensor->dtype, count, &random);
    else if (read_file(options->inputs[i], data, (size_t)bytes))
      return 1;
  }
  for (int i = 0; i < KERATIN_MODEL.num_outputs; ++i) {
    const ktn_tensor_info_t *tensor = &KERATIN_MODEL.outputs[i];
    outputs[i] = ktn_pages_take(element_count(tensor, options->batch) *
                                element_bytes(tensor->dtype));
    if (!outputs[i])
      return fail("out of memory", tensor->name);
  }
  return 0;
}

static int finish(const options_t *options, void **outputs) {
  for (int i = 0; i < KERATIN_MODEL.num_outputs; ++i) {
    const ktn_tensor_info_t *tensor = &KERATIN_MODEL.outputs[i];
    int64_t count = element_count(tensor, options->batch);
    print_output(tensor, outputs[i], count);
    size_t bytes = (size_t)(count * element_bytes(tensor->dtype));
    if (i < options->num_outputs &&
        write_file(options->outputs[i], outputs[i], bytes))
      return 1;
  }
  return 0;
}

int main(int argc, char **argv) {
  options_t options = {0};
  options.batch = KERATIN_MODEL.batch >= 0 ? KERATIN_MODEL.batch : 1;
  options.repeat = 1;
  options.threads = KERATIN_THREADS;
  if (KERATIN_MODEL.num_inputs > max_tensors ||
      KERATIN_MODEL.num_outputs > max_tensors)
    return fail("too many inputs or outputs for this program", argv[0]);
  if (argc == 2 && !strcmp(argv[1], "--help")) {
    printf(usage, argv[0], KERATIN_MODEL.name);
    return 0;
  }
  int exit_status = parse_options(argc, argv, &options);
  if (exit_status)
    return exit_status;
  ktn_set_num_threads(options.threads > KTN_MAX_THREADS
                          ? KTN_MAX_THREADS
                          : (int32_t)options.threads);
  const void *inputs[max_tensors], *weights;
  void *outputs[max_tensors];
  if (KERATIN_MODEL.arena_bytes[1] > 0 &&
      options.batch > (INT64_MAX / 2 - KERATIN_MODEL.arena_bytes[0]) /
                          KERATIN_MODEL.arena_bytes[1])
    return fail("out of memory", "arena");
  void *arena = ktn_pages_take(KERATIN_MODEL.arena_bytes[0] +
                               options.batch * KERATIN_MODEL.arena_bytes[1]);
  if (!arena)
    return fail("out of memory", "arena");
  if (load_weights(&options, &weights) ||
      prepare_tensors(&options, inputs, outputs))
    return 1;
  map_weights(weights);

  double best = 0;
  for (int64_t run = 0; run < options.repeat; ++run) {
    double start = now_ms();
    ktn_status_t status =
        KERATIN_MODEL.run(weights, arena, options.batch, inputs, outputs);
    double time = now_ms() - start;
    if (status != KTN_OK)
      return fail(ktn_status_name(status), KERATIN_MODEL.name);
    best = run == 0 || time < best ? time : best;
  }
  printf("%s: batch %lld, best of %lld runs %.3f ms\n", KERATIN_MODEL.name,
         (long long)options.batch, (long long)options.repeat, best);
  return finish(&options, outputs);
}
