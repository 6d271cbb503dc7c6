#include "digits.h"
#include "reference.h"

#include <stdio.h>

/* Fast code and reference agree on a few numbers. */
int main(void) {
  float x[2 * 64], fast[2 * 16], slow[2 * 16];
  digits_t digits;
  reference_t reference;
  int i;
  for (i = 0; i < 2 * 64; ++i)
    x[i] = (float)(i % 7) / 7;
  if (digits_create(&digits, 2) || reference_create(&reference, 2))
    return 1;
  if (digits_predict(&digits, 2, x, fast) ||
      reference_predict(&reference, 2, x, slow))
    return 2;
  for (i = 0; i < 2 * 3; ++i)
    if (fast[i] - slow[i] > 1e-5f || slow[i] - fast[i] > 1e-5f)
      return 3;
  digits_destroy(&digits);
  reference_destroy(&reference);
  puts("they agree");
  return 0;
}
