/* Runs serial.o, compiled for one thread, and split.o, the same model compiled
   for several, and compares the bits of their outputs. With -DOWN_HOOK parts
   are done in other ranges and orders, without it by the pool. */
#include <keratin/runtime.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const ktn_model_info_t serial_model_info, split_model_info;

enum { most_tensors = 32 };

#ifdef OWN_HOOK
static int ranges; /* of each call */
static int calls;

void ktn_parallel_for(ktn_task_t task, void *work, int64_t count) {
  /* Not all turns of a kernel in the same ranges. */
  int64_t all = ++calls % 3 ? ranges : 1, range;
  for (range = all - 1; range >= 0; --range)
    task(work, count * range / all, count * (range + 1) / all);
}
#endif

static size_t bytes_of(const ktn_tensor_info_t *tensor, int64_t batch) {
  size_t bytes = 4; /* of float32 */
  int32_t axis;
  for (axis = 0; axis < tensor->rank; ++axis)
    bytes *= (size_t)(tensor->shape[axis] < 0 ? batch : tensor->shape[axis]);
  return bytes;
}

static void *allocate(size_t bytes) {
  void *memory = aligned_alloc(KTN_ALIGNMENT, (bytes / KTN_ALIGNMENT + 1) *
                                                  (size_t)KTN_ALIGNMENT);
  if (!memory)
    exit(2);
  memset(memory, 0xFF, bytes); /* not a number, where nothing is written */
  return memory;
}

static void run(const ktn_model_info_t *info, int64_t batch,
                const void *const *inputs, void *const *outputs) {
  void *arena =
      allocate((size_t)(info->arena_bytes[0] + batch * info->arena_bytes[1]));
  ktn_status_t status = info->run(info->weights, arena, batch, inputs, outputs);
  free(arena);
  if (status != KTN_OK)
    exit(3);
}

/* Whether the outputs of the two have the same bits. */
static int compare(int64_t batch, const void *const *inputs,
                   void *const *expected) {
  int same = 1;
  int32_t i;
  void *outputs[most_tensors];
  const ktn_model_info_t *info = &split_model_info;
  for (i = 0; i < info->num_outputs; ++i)
    outputs[i] = allocate(bytes_of(&info->outputs[i], batch));
  run(info, batch, inputs, outputs);
  for (i = 0; i < info->num_outputs; ++i) {
    if (memcmp(outputs[i], expected[i], bytes_of(&info->outputs[i], batch))) {
      printf("output %d differs\n", (int)i);
      same = 0;
    }
    free(outputs[i]);
  }
  return same;
}

int main(void) {
  static const int counts[] = {1, 2, 3, 8, 100};
  const ktn_model_info_t *info = &serial_model_info;
  int64_t batch;
  for (batch = 1; batch <= 3; batch += 2) {
    const void *inputs[most_tensors];
    void *expected[most_tensors];
    int32_t i;
    size_t number;
    uint32_t random = 1;
    for (i = 0; i < info->num_inputs; ++i) {
      size_t bytes = bytes_of(&info->inputs[i], batch), element;
      float *data = allocate(bytes);
      for (element = 0; element < bytes / 4; ++element) {
        random = random * 1664525u + 1013904223u;
        data[element] = (float)(random >> 8) / 8388608.0f - 1;
      }
      inputs[i] = data;
    }
    for (i = 0; i < info->num_outputs; ++i)
      expected[i] = allocate(bytes_of(&info->outputs[i], batch));
    run(info, batch, inputs, expected);
    for (number = 0; number < sizeof counts / sizeof *counts; ++number) {
#ifdef OWN_HOOK
      ranges = counts[number];
#else
      ktn_set_num_threads(counts[number]);
#endif
      if (!compare(batch, inputs, expected)) {
        printf("with %d, batch %d\n", counts[number], (int)batch);
        return 1;
      }
    }
    for (i = 0; i < info->num_inputs; ++i)
      free((void *)inputs[i]);
    for (i = 0; i < info->num_outputs; ++i)
      free(expected[i]);
  }
#ifdef OWN_HOOK
  printf("%d calls\n", calls);
#endif
  printf("same bits\n");
  return 0;
}
