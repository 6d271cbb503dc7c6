//===- Weights.c - weights in a file of their own ------------------------===//
#define _POSIX_C_SOURCE 200809L

#include "keratin/runtime.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// Maps `bytes` > 0 bytes of a file that has exactly as many. The size is
// asked of the open file, before the first page is touched: reading beyond
// the end of a truncated file would be a SIGBUS.
static ktn_status_t map_file(const char *path, int64_t bytes,
                             const void **out_data) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return KTN_IO_ERROR;
  ktn_status_t status = KTN_OK;
  struct stat facts;
  void *data = MAP_FAILED;
  if (fstat(file, &facts) != 0 || !S_ISREG(facts.st_mode))
    status = KTN_IO_ERROR;
  else if ((int64_t)facts.st_size != bytes)
    status = KTN_WEIGHTS_MISMATCH;
  else {
    data = mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED)
      status = KTN_IO_ERROR;
  }
  close(file);
  if (status == KTN_OK)
    *out_data = data;
  return status;
}

ktn_status_t ktn_weights_open(const char *path, const ktn_model_info_t *info,
                              const void **out_weights) {
  if (!out_weights)
    return KTN_INVALID_ARGUMENT;
  *out_weights = NULL;
  if (!path || !info || info->abi_version != KTN_ABI_VERSION ||
      info->weights_bytes <= 0)
    return KTN_INVALID_ARGUMENT;
  const void *data = NULL;
  ktn_status_t status = map_file(path, info->weights_bytes, &data);
  if (status != KTN_OK)
    return status;
  if (ktn_hash(data, (uint64_t)info->weights_bytes) != info->weights_hash) {
    ktn_weights_close(data, info);
    return KTN_WEIGHTS_MISMATCH;
  }
  *out_weights = data;
  return KTN_OK;
}

void ktn_weights_close(const void *weights, const ktn_model_info_t *info) {
  if (weights && info)
    munmap((void *)(uintptr_t)weights, (size_t)info->weights_bytes);
}
