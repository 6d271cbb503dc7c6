//===- runtime.h - what libkeratin_rt offers to programs -----------------===//
// Generated code needs none of this; it is for programs that run models on
// several threads, load weights from files, or models with dlopen. C11 and C++.
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

/// The most threads that run a model at once, whatever the machine has.
#define KTN_MAX_THREADS 256

/// Sets how many threads run a model at most, the one that calls it included;
/// 0 gives back the default: the environment's KTN_NUM_THREADS where that is a
/// number from 1, else as many as the process may use CPUs by its affinity and
/// the quota of its control groups.
///
/// Numbers beyond KTN_MAX_THREADS count as that. Returns KTN_INVALID_ARGUMENT,
/// and leaves the number as it was, for a negative one. Threads are started
/// when a model first has work for them. From any thread; models that run at
/// that time may go on with the number of before.
ktn_status_t ktn_set_num_threads(int32_t number);

/// The number that ktn_set_num_threads describes, from 1.
int32_t ktn_num_threads(void);

#ifdef __cplusplus
}
#endif
#endif /* KERATIN_RUNTIME_H */
