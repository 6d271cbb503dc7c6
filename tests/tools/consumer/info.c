#include <keratin/abi.h>
#include <stdio.h>

int main(void) {
  printf("abi %d\n", KTN_ABI_VERSION);
  return 0;
}
