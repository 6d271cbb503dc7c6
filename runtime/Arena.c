//===- Arena.c - how much memory a run needs -----------------------------===//
#include "keratin/runtime.h"

ktn_status_t ktn_arena_bytes(const ktn_model_info_t *info, int64_t batch,
                             int64_t *out_bytes) {
  if (!info || !out_bytes)
    return KTN_INVALID_ARGUMENT;
  if (info->batch >= 0 ? batch != info->batch : batch < 1)
    return KTN_BATCH_OUT_OF_RANGE;
  int64_t fixed = info->arena_bytes[0], per_batch = info->arena_bytes[1];
  if (per_batch > 0 && batch > (INT64_MAX - fixed) / per_batch)
    return KTN_BATCH_OUT_OF_RANGE;
  int64_t bytes = fixed + batch * per_batch;
  *out_bytes = bytes < KTN_ALIGNMENT ? KTN_ALIGNMENT : bytes;
  return KTN_OK;
}
