//===- runtime.h - for programs that use models by their descriptor ------===//
// Generated code needs none of this; it is for users of external weights and
// of models loaded with dlopen. C11 and C++.
#ifndef KERATIN_RUNTIME_H
#define KERATIN_RUNTIME_H

#include "keratin/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Maps the weights file of a model, read-only.
///
/// Writes to `*out_weights` a pointer, aligned to KTN_ALIGNMENT, to
/// `info->weights_bytes` bytes, for `info->run` or NAME_init; the caller gives
/// it back with ktn_weights_close. The whole file is read once, to hash it.
///
/// Returns KTN_INVALID_ARGUMENT for a null pointer or a descriptor of another
/// ABI version, KTN_IO_ERROR when the file cannot be opened, is no regular file
/// or cannot be mapped, KTN_WEIGHTS_MISMATCH when its size or hash is not that
/// of `info`; `*out_weights` is null then. The file must not be shortened while
/// it is mapped. Safe to call from any thread.
ktn_status_t ktn_weights_open(const char *path, const ktn_model_info_t *info,
                              const void **out_weights);

/// Gives back what ktn_weights_open gave for the same `info`. Null does
/// nothing.
void ktn_weights_close(const void *weights, const ktn_model_info_t *info);

/// Bytes of arena that `info->run` needs for `batch`.
///
/// Writes at least KTN_ALIGNMENT to `*out_bytes`. Returns KTN_INVALID_ARGUMENT
/// for a null pointer, KTN_BATCH_OUT_OF_RANGE when the model does not take this
/// batch or the size overflows; `*out_bytes` is as it was then. Never
/// allocates.
ktn_status_t ktn_arena_bytes(const ktn_model_info_t *info, int64_t batch,
                             int64_t *out_bytes);

#ifdef __cplusplus
}
#endif
#endif /* KERATIN_RUNTIME_H */
