//===- abi.h - what a compiled model and its user agree on ---------------===//
// Shared by generated code, the runtime and the tools. C11 and C++.
#ifndef KERATIN_ABI_H
#define KERATIN_ABI_H

#include "keratin/hooks.h"
#include "keratin/status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Version of the structures below and of what models take for granted of the
/// hooks; a model carries the one it was built with.
#define KTN_ABI_VERSION 2
/// Alignment in bytes of arenas and weights.
#define KTN_ALIGNMENT 64
#define KTN_MAX_RANK 8

typedef enum ktn_dtype_t {
  KTN_BOOL = 1, ///< one byte, 0 or 1
  KTN_I8 = 2,
  KTN_I16 = 3,
  KTN_I32 = 4,
  KTN_I64 = 5,
  KTN_U8 = 6,
  KTN_F16 = 7,
  KTN_BF16 = 8,
  KTN_F32 = 9,
  KTN_F64 = 10,
} ktn_dtype_t;

/// One input or output: dense, row-major.
typedef struct ktn_tensor_info_t {
  const char *name;
  int32_t dtype;               ///< a ktn_dtype_t
  int32_t rank;                ///< 0..KTN_MAX_RANK
  int64_t shape[KTN_MAX_RANK]; ///< -1 is the dynamic batch
} ktn_tensor_info_t;

/// One kernel call of the model, in order of execution.
typedef struct ktn_kernel_info_t {
  const char *name; ///< the layer it computes
  const char *op;   ///< what kind of kernel: conv, matmul, elementwise …
  int64_t flops[2]; ///< flops[0] + batch * flops[1] per run
  int64_t bytes[2]; ///< read once + written once, likewise
} ktn_kernel_info_t;

/// Called around each kernel of a model compiled for profiling.
typedef void (*ktn_profile_fn_t)(void *user, int32_t kernel, int32_t is_end);

/// Everything that can be known of a compiled model without running it.
/// `NAME.so` exports it as `keratin_model`, every artefact as
/// `NAME_model_info`.
typedef struct ktn_model_info_t {
  uint32_t abi_version; ///< KTN_ABI_VERSION
  uint32_t struct_size; ///< sizeof(ktn_model_info_t)
  const char *name;
  const char *compiler; ///< "keratin 0.1.0"
  const char *target;   ///< triple, CPU
  const char *options;  ///< pipeline options, as on the command line
  int32_t num_inputs;
  int32_t num_outputs;
  int32_t num_kernels;
  int32_t reserved;
  const ktn_tensor_info_t *inputs;
  const ktn_tensor_info_t *outputs;
  const ktn_kernel_info_t *kernels;
  int64_t batch;          ///< the only batch accepted, or -1 for any
  int64_t arena_bytes[2]; ///< arena_bytes[0] + batch * arena_bytes[1]
  int64_t weights_bytes;
  uint64_t weights_hash; ///< ktn_hash of the weights
  const void *weights;   ///< null when the weights are a file of their own
  /// Computes the outputs. `inputs` and `outputs` are in the order of the
  /// arrays above and must not overlap, but for `in_place`; `arena` holds
  /// arena_bytes bytes, is aligned to KTN_ALIGNMENT and is scratch: two threads
  /// need two. `weights` is the field above or the mapped file.
  ktn_status_t (*run)(const void *weights, void *arena, int64_t batch,
                      const void *const *inputs, void *const *outputs);
  /// Sets the function called around each kernel, null for none; one for all
  /// threads. Null unless the model was compiled for profiling.
  void (*set_profile)(ktn_profile_fn_t hook, void *user);
  /// For each output the input that may be the same memory, or -1: it is read
  /// before the output is written there. Null where that is so of none.
  const int32_t *in_place;
} ktn_model_info_t;

/// Hash of `size` bytes, the `weights_hash` of a model. An integrity check, not
/// a cryptographic one. Any alignment; from any thread.
uint64_t ktn_hash(const void *data, uint64_t size);

/// Memory for an arena, a state or weights: `bytes` bytes, aligned to
/// KTN_ALIGNMENT, of any content.
///
/// From 2 MiB on it begins at a large page, and the system is asked for such
/// (transparent huge pages of Linux, where
/// /sys/kernel/mm/transparent_hugepage/enabled says madvise or always). Null
/// for a negative number and where there is none left. To be given back with
/// ktn_pages_release. Safe to call from any thread.
void *ktn_pages_take(int64_t bytes);

/// Gives back what ktn_pages_take(bytes) gave. Null does nothing.
void ktn_pages_release(void *pages, int64_t bytes);

#ifdef __cplusplus
}
#endif
#endif /* KERATIN_ABI_H */
