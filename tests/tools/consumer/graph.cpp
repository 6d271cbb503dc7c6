#include <keratin/backend.h>

#include <cstdio>

namespace K = keratin::backend;

int main() {
  K::Tensor x = K::placeholder({K::None, 3});
  K::Function sum = K::function({x}, {K::sum(x * 2, 1)});
  K::Array y = sum({K::Array::full({1, 3}, 1.5)})[0];
  std::printf("%g\n", y.at(0));
}
