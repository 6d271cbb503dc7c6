//===- Pages.c - memory in large pages -----------------------------------===//
#define _DEFAULT_SOURCE // madvise, MAP_ANONYMOUS

#include "keratin/runtime.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

// Of x86-64, and of AArch64 where small ones have 4 KiB; these have 64 KiB at
// most.
enum { large_page = 2 << 20, small_page = 64 << 10 };

static size_t rounded(int64_t bytes, size_t unit) {
  return ((size_t)bytes + unit - 1) / unit * unit;
}

static int is_large(int64_t bytes) { return bytes >= large_page; }

// With room to begin at a large page; what is too much goes back.
static void *map_pages(size_t bytes) {
  char *mapped = mmap(NULL, bytes + large_page, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    return NULL;
  size_t before = -(uintptr_t)mapped % large_page;
  char *pages = mapped + before;
  if (before > 0)
    munmap(mapped, before);
  munmap(pages + bytes, large_page - before);
#ifdef MADV_HUGEPAGE
  // A kernel without large pages says so, and they are small.
  (void)madvise(pages, bytes, MADV_HUGEPAGE);
#endif
  return pages;
}

void *ktn_pages_take(int64_t bytes) {
  if (bytes < 0 || (uint64_t)bytes > SIZE_MAX / 2)
    return NULL;
  if (is_large(bytes))
    return map_pages(rounded(bytes, small_page));
  return aligned_alloc(KTN_ALIGNMENT,
                       rounded(bytes ? bytes : 1, KTN_ALIGNMENT));
}

void ktn_pages_release(void *pages, int64_t bytes) {
  if (!pages)
    return;
  if (is_large(bytes))
    munmap(pages, rounded(bytes, small_page));
  else
    free(pages);
}
