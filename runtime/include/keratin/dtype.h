//===- dtype.h - names, C types and sizes of element types ------*- C -*---===//
//
// The one table of them, for what compiles models and for what runs them.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_DTYPE_H
#define KERATIN_DTYPE_H

#include "keratin/abi.h"

/// X(ktn_dtype_t, Keras' name, C type of one element) for each of them.
#define KTN_DTYPES(X)                                                          \
  X(KTN_BOOL, "bool", uint8_t)                                                 \
  X(KTN_I8, "int8", int8_t)                                                    \
  X(KTN_I16, "int16", int16_t)                                                 \
  X(KTN_I32, "int32", int32_t)                                                 \
  X(KTN_I64, "int64", int64_t)                                                 \
  X(KTN_U8, "uint8", uint8_t)                                                  \
  X(KTN_F16, "float16", uint16_t)                                              \
  X(KTN_BF16, "bfloat16", uint16_t)                                            \
  X(KTN_F32, "float32", float)                                                 \
  X(KTN_F64, "float64", double)

typedef struct ktn_dtype_row_t {
  int32_t dtype;      ///< a ktn_dtype_t
  const char *name;   ///< as Keras says it
  const char *c_type; ///< of one element; the bits of float16 and bfloat16
  int64_t bytes;      ///< of one element
} ktn_dtype_row_t;

static const ktn_dtype_row_t ktn_dtype_rows[] = {
#define KTN_DTYPE_ROW(dtype, name, type) {dtype, name, #type, sizeof(type)},
    KTN_DTYPES(KTN_DTYPE_ROW)
#undef KTN_DTYPE_ROW
};

/// The row of `dtype`, a ktn_dtype_t; null for a number that is none.
static inline const ktn_dtype_row_t *ktn_dtype_row(int32_t dtype) {
  const size_t count = sizeof ktn_dtype_rows / sizeof ktn_dtype_rows[0];
  for (size_t i = 0; i < count; ++i)
    if (ktn_dtype_rows[i].dtype == dtype)
      return &ktn_dtype_rows[i];
  return 0;
}

#endif // KERATIN_DTYPE_H
