/* Numbers to and from f16 by the code of a model, beside an independent search
 * through the numbers that f16 has. */
#include "halves.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 65536, INFINITE = 0x7c00 };

/* What the f16 numbers from zero to 65504 are, and after them 65536. */
static double values[INFINITE + 1];
static uint16_t halves[COUNT], narrow[COUNT], from_double[COUNT], twice[COUNT];
static float singles[COUNT], wide[COUNT];
static double doubles[COUNT], wider[COUNT];
static halves_t model;

static void list_values(void) {
  for (int h = 0; h <= INFINITE; ++h) {
    int exponent = h >> 10, mantissa = h & 1023;
    values[h] =
        exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
  }
}

/* The nearest f16, of two the even one; NaN is 0x7e00. */
static int nearest(double x) {
  int sign = signbit(x) ? 0x8000 : 0, low = 0, high = INFINITE;
  x = fabs(x);
  if (isnan(x))
    return 0x7e00;
  if (x >= values[INFINITE])
    return sign | INFINITE;
  while (high - low > 1) {
    int between = (low + high) / 2;
    if (values[between] <= x)
      low = between;
    else
      high = between;
  }
  double half_way = (values[low] + values[high]) / 2;
  return sign | (x < half_way || (x == half_way && low % 2 == 0) ? low : high);
}

static double value_of(int h) {
  int magnitude = h & 0x7fff;
  double value = magnitude > INFINITE    ? NAN
                 : magnitude == INFINITE ? INFINITY
                                         : values[magnitude];
  return h & 0x8000 ? -value : value;
}

static int run(void) {
  return halves_predict(&model, COUNT / 64, halves, singles, doubles, wide,
                        wider, narrow, from_double, twice) == KTN_OK;
}

static int is_half(double x, int given) {
  if (isnan(x))
    return (given & 0x7fff) > INFINITE;
  return given == nearest(x);
}

static int check_narrowed(const char *what) {
  for (int i = 0; i < COUNT; ++i)
    if (!is_half(singles[i], narrow[i]) ||
        !is_half(doubles[i], from_double[i])) {
      printf("%s: %a became %#x, %a became %#x\n", what, singles[i], narrow[i],
             doubles[i], from_double[i]);
      return 0;
    }
  return 1;
}

static int check_widened(void) {
  for (int h = 0; h < COUNT; ++h) {
    double value = value_of(h);
    int nan = isnan(value);
    if (nan ? !isnan(wide[h]) || !isnan(wider[h])
            : wide[h] != (float)value || wider[h] != value ||
                  !signbit(wide[h]) != !signbit(value)) {
      printf("%#x became %a and %a\n", h, wide[h], wider[h]);
      return 0;
    }
    if (!is_half(2 * value, twice[h])) {
      printf("twice %#x is %#x\n", h, twice[h]);
      return 0;
    }
  }
  return 1;
}

int main(void) {
  uint64_t random = 1;
  list_values();
  if (halves_create(&model, COUNT / 64) != KTN_OK)
    return 1;
  for (int h = 0; h < COUNT; ++h)
    halves[h] = (uint16_t)h;
  /* What f16 has, what is half way between, and their neighbours. */
  for (int middle = 0; middle < 2; ++middle)
    for (int side = -1; side <= 1; ++side) {
      for (int h = 0; h < COUNT; ++h) {
        int magnitude = h & 0x7fff;
        double x = value_of(h);
        if (middle && magnitude < INFINITE)
          x = copysign((values[magnitude] + values[magnitude + 1]) / 2, x);
        singles[h] = (float)x;
        doubles[h] = x;
        if (side) {
          singles[h] = nextafterf(singles[h], side * INFINITY);
          doubles[h] = nextafter(x, side * INFINITY);
        }
      }
      if (!run() || !check_narrowed(middle ? "half way" : "exact"))
        return 2;
    }
  if (!check_widened())
    return 3;
  /* Any bits. */
  for (int turn = 0; turn < 8; ++turn) {
    for (int i = 0; i < COUNT; ++i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      uint32_t low = (uint32_t)(random >> 32);
      memcpy(&singles[i], &low, sizeof low);
      doubles[i] = turn % 2 ? ldexp((double)(int64_t)random, -60 - turn)
                            : (double)singles[i] * (1 + 0x1p-40);
    }
    if (!run() || !check_narrowed("random"))
      return 4;
  }
  halves_destroy(&model);
  puts("right");
  return 0;
}
