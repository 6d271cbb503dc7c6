#include "ir/Ktn.h"
