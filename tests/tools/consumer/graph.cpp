#include <keratin/array.h>

#include <cstdio>
#include <string>

int main() {
  std::printf("%s\n", std::string(keratin::dtypeName(keratin::DType::Int8)).c_str());
}
