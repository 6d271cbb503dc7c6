/* Runs a model as a shared object, compiled with its weights in a file, and
   says whether it stays in its memory:

     guard MODEL.so MODEL.weights

   Inputs, outputs, weights and the arena lie up against pages that nobody may
   touch, once with their ends and once with their beginnings. What is only read
   cannot be written. The arena is full of what is no number. Outputs have the
   same bits at either place, on one thread and on three. */
#define _GNU_SOURCE
#include <keratin/runtime.h>

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { most_places = 128, no_number = 0xFF };

/* Memory between two pages that are not there. */
typedef struct {
  const char *kind;
  int32_t number;
  unsigned char *pages, *data;
  size_t page_bytes, bytes;
} place_t;

static place_t places[most_places];
static int num_places;
static size_t page;
static char what[200]; /* is being done */

static void fail(const char *why) {
  printf("%s: %s\n", what, why);
  exit(1);
}

/* Names the place next to the address that should have been left alone. */
static void report(int signal, siginfo_t *info, void *context) {
  const unsigned char *address = info->si_addr;
  char text[400];
  int i, length = snprintf(text, sizeof text, "%s: signal %d", what, signal);
  (void)context;
  for (i = 0; i < num_places; ++i) {
    const place_t *p = &places[i];
    if (address >= p->pages && address < p->pages + p->page_bytes)
      length = snprintf(text, sizeof text,
                        "%s: touches byte %td of the %zu of %s %d", what,
                        address - p->data, p->bytes, p->kind, (int)p->number);
  }
  text[length] = '\n';
  _exit(write(STDOUT_FILENO, text, (size_t)length + 1) < 0 ? 3 : 1);
}

/* `bytes` bytes, up against the page behind them or the one before. */
static unsigned char *allocate(const char *kind, int32_t number, size_t bytes,
                               int at_end) {
  place_t *p = &places[num_places];
  size_t inside = (bytes + page - 1) / page * page;
  if (num_places++ == most_places)
    fail("too many tensors");
  p->kind = kind;
  p->number = number;
  p->bytes = bytes;
  p->page_bytes = inside + 2 * page;
  p->pages =
      mmap(NULL, p->page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p->pages == MAP_FAILED ||
      (inside && mprotect(p->pages + page, inside, PROT_READ | PROT_WRITE)))
    fail("no memory");
  p->data = p->pages + page + (at_end ? inside - bytes : 0);
  memset(p->data, no_number, bytes);
  return p->data;
}

static void release_all(void) {
  while (num_places > 0) {
    const place_t *p = &places[--num_places];
    munmap(p->pages, p->page_bytes);
  }
}

static void protect(void) {
  const place_t *p = &places[num_places - 1];
  if (p->bytes &&
      mprotect(p->pages + page, p->page_bytes - 2 * page, PROT_READ))
    fail("cannot protect");
}

static size_t bytes_of(const ktn_tensor_info_t *tensor, int64_t batch) {
  static const size_t widths[] = {0, 1, 1, 2, 4, 8, 1, 2, 2, 4, 8};
  size_t bytes = widths[tensor->dtype];
  int32_t axis;
  for (axis = 0; axis < tensor->rank; ++axis)
    bytes *= (size_t)(tensor->shape[axis] < 0 ? batch : tensor->shape[axis]);
  return bytes;
}

/* Numbers between -1 and 1, or from 0 to 9. */
static void fill(unsigned char *data, const ktn_tensor_info_t *tensor,
                 int64_t batch) {
  size_t bytes = bytes_of(tensor, batch), i = 0, width;
  uint32_t random = 1;
  for (; i < bytes; i += width) {
    float real;
    double wide;
    int64_t whole;
    const void *from = &whole;
    uint16_t half;
    random = random * 1664525u + 1013904223u;
    wide = real = (float)(random >> 8) / 8388608.0f - 1;
    whole = random >> 8;
    whole %= tensor->dtype == KTN_BOOL ? 2 : 10;
    width = 8;
    switch (tensor->dtype) {
    case KTN_F64:
      from = &wide;
      break;
    case KTN_F32:
      from = &real;
      width = 4;
      break;
    case KTN_BF16: /* the first half of a float */
      from = (unsigned char *)&real + 2;
      width = 2;
      break;
    case KTN_F16: /* from 0.5 to 1 */
      half = (uint16_t)(0x3800 | random >> 22);
      from = &half;
      width = 2;
      break;
    case KTN_I32:
      width = 4;
      break;
    case KTN_I16:
      width = 2;
      break;
    case KTN_BOOL:
    case KTN_I8:
    case KTN_U8:
      width = 1;
      break;
    }
    memcpy(data + i, from, width);
  }
}

/* All outputs, one after the other, of the model in its places. */
static unsigned char *run(const ktn_model_info_t *model, const void *weights,
                          int64_t batch, int at_end, size_t *size) {
  const void *inputs[most_places];
  void *outputs[most_places];
  unsigned char *all, *data, *arena, *copy = NULL;
  int64_t arena_bytes;
  int32_t i;
  for (i = 0; i < model->num_inputs; ++i) {
    data = allocate("input", i, bytes_of(&model->inputs[i], batch), at_end);
    fill(data, &model->inputs[i], batch);
    protect();
    inputs[i] = data;
  }
  if (weights) {
    copy = allocate("weights", 0, (size_t)model->weights_bytes, at_end);
    memcpy(copy, weights, (size_t)model->weights_bytes);
    protect();
  }
  if (ktn_arena_bytes(model, batch, &arena_bytes) != KTN_OK)
    fail("has no arena for this batch");
  arena = allocate("arena", 0, (size_t)arena_bytes, at_end);
  for (*size = 0, i = 0; i < model->num_outputs; ++i) {
    size_t bytes = bytes_of(&model->outputs[i], batch);
    outputs[i] = allocate("output", i, bytes, at_end);
    *size += bytes;
  }
  if (model->run(weights ? copy : model->weights, arena, batch, inputs,
                 outputs) != KTN_OK)
    fail("does not run");
  all = data = malloc(*size + 1);
  if (!all)
    fail("no memory");
  for (i = 0; i < model->num_outputs; ++i) {
    size_t bytes = bytes_of(&model->outputs[i], batch);
    memcpy(data, outputs[i], bytes);
    data += bytes;
  }
  release_all();
  return all;
}

int main(int argc, char **argv) {
  static const int64_t batches[] = {1, 2, 3, 5};
  static const int threads[] = {1, 3};
  const ktn_model_info_t *model;
  const void *weights = NULL;
  void *library;
  size_t i;
  struct sigaction action = {0};
  action.sa_sigaction = report;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, NULL);
  sigaction(SIGBUS, &action, NULL);
  page = (size_t)sysconf(_SC_PAGESIZE);
  if (argc < 2 || !(library = dlopen(argv[1], RTLD_NOW)) ||
      !(model = dlsym(library, "keratin_model"))) {
    printf("usage: guard MODEL.so [MODEL.weights]\n");
    return 2;
  }
  snprintf(what, sizeof what, "%s", model->name);
  if (argc > 2 && ktn_weights_open(argv[2], model, &weights) != KTN_OK)
    fail("has other weights");
  for (i = 0; i < sizeof batches / sizeof *batches; ++i) {
    unsigned char *first = NULL;
    size_t bytes = 0;
    int round;
    if (model->batch >= 0 && batches[i] != model->batch)
      continue;
    for (round = 0; round < 4; ++round) {
      int number = threads[round / 2], at_end = round % 2;
      unsigned char *outputs;
      snprintf(what, sizeof what, "%s, batch %d, %d threads, up against the %s",
               model->name, (int)batches[i], number,
               at_end ? "page behind" : "page before");
      ktn_set_num_threads(number);
      outputs = run(model, weights, batches[i], at_end, &bytes);
      if (first && memcmp(first, outputs, bytes) != 0)
        fail("other bits");
      if (first)
        free(outputs);
      else
        first = outputs;
    }
    free(first);
  }
  printf("%s stays in its memory\n", model->name);
  return 0;
}
