//===- Additions.cpp - tools/Machine.h for core.py ------------------------===//
#include "tools/Machine.h"

extern "C" double keratin_additions() {
  return keratin::tools::measureAdditions();
}
