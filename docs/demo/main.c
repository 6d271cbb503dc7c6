/* Runs a compiled model on images in an .npy file and compares its scores with
 * those that Keras computed. Knows nothing of Keratin but the header. */
#include "cnn_residual.h"

#include <math.h>
#include <stdio.h>

enum { IMAGES = 16, PIXELS = 32 * 32 * 3, CLASSES = 10 };

static _Alignas(CNN_RESIDUAL_ARENA_ALIGN) unsigned char arena
    [CNN_RESIDUAL_ARENA_BYTES(IMAGES)];
static float images[IMAGES * PIXELS];
static float expected[IMAGES * CLASSES];
static float scores[IMAGES * CLASSES];

/* Reads `count` floats of a version 1 .npy file: 8 bytes of magic, the length
 * of the description in 2, the description, the elements. */
static int read_npy(const char *path, float *elements, size_t count) {
  unsigned char head[10];
  FILE *file = fopen(path, "rb");
  int ok = file && fread(head, 1, sizeof head, file) == sizeof head &&
           fseek(file, 10 + head[8] + 256L * head[9], SEEK_SET) == 0 &&
           fread(elements, sizeof *elements, count, file) == count;
  if (file)
    fclose(file);
  if (!ok)
    fprintf(stderr, "%s: cannot read %zu floats\n", path, count);
  return ok;
}

int main(int argc, char **argv) {
  cnn_residual_t model;
  ktn_status_t status;
  float error = 0, largest = 0;
  if (argc != 3) {
    fprintf(stderr, "usage: %s IMAGES.npy SCORES.npy\n", argv[0]);
    return 2;
  }
  if (!read_npy(argv[1], images, IMAGES * PIXELS) ||
      !read_npy(argv[2], expected, IMAGES * CLASSES))
    return 1;

  status = cnn_residual_init(&model, arena, sizeof arena);
  if (status == KTN_OK)
    status = cnn_residual_predict(&model, IMAGES, images, scores);
  if (status != KTN_OK) {
    fprintf(stderr, "cnn_residual: %s\n", ktn_status_name(status));
    return 1;
  }

  for (int i = 0; i < IMAGES * CLASSES; ++i) {
    error = fmaxf(error, fabsf(scores[i] - expected[i]));
    largest = fmaxf(largest, fabsf(expected[i]));
  }
  printf("scores of the first image:");
  for (int i = 0; i < CLASSES; ++i)
    printf(" %.4f", scores[i]);
  printf("\nlargest difference to Keras, relative: %.1e\n", error / largest);
  return error <= 1e-5f * largest ? 0 : 1;
}
