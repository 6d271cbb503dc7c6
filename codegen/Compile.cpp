#include "codegen/Compile.h"
