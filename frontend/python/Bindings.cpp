//===- Bindings.cpp - the functions that bindings.py writes ---------------===//
#include "Backend.h"
#include "Bind.h"

namespace keratin::python {

void defineGenerated(nb::module_ &m) {
  using namespace keratin::backend; // the types as the headers spell them
#include "Bindings.cpp.inc"
}

} // namespace keratin::python
