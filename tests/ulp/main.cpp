//===- main.cpp - keratin-ulp: every float through every function ---------===//
#include "tests/ulp/Sweep.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace keratin::test;

/// keratin-ulp [FUNCTION] [STRIDE]
int main(int argc, char **argv) {
  const char *only = argc > 1 ? argv[1] : "all";
  uint64_t stride = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  bool good = stride > 0, known = false;
  for (const Function &function : functions()) {
    if (std::strcmp(only, "all") != 0 && std::strcmp(only, function.name) != 0)
      continue;
    known = true;
    KernelForm forms[3];
    forms[1].permutes = true;
    forms[2].avx512 = true;
    for (const KernelForm &form : forms) {
      Errors errors = sweep(function, form, stride ? stride : 1);
      std::printf(
          "%-8s %s %.3f ulp (bound %.1f) at %.9g, %llu wrong special values "
          "(%.9g), %llu checked\n",
          function.name,
          form.avx512     ? "avx512"
          : form.permutes ? "avx2  "
                          : "plain ",
          errors.worst, function.bound, errors.worstAt,
          static_cast<unsigned long long>(errors.wrongSpecial), errors.wrongAt,
          static_cast<unsigned long long>(errors.checked));
      std::fflush(stdout);
      good &= errors.worst <= function.bound && errors.wrongSpecial == 0;
    }
  }
  if (!known)
    std::fprintf(stderr, "keratin-ulp: no function '%s'\n", only);
  return good && known ? EXIT_SUCCESS : EXIT_FAILURE;
}
