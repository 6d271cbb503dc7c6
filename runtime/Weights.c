#include "keratin/abi.h"
