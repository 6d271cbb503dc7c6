//===- Pages.h - memory in large pages --------------------------*- C++ -*-===//
#ifndef KERATIN_TOOLS_PAGES_H
#define KERATIN_TOOLS_PAGES_H

#include "keratin/abi.h"

#include <memory>

namespace keratin {

struct ReleasePages {
  int64_t bytes = 0;
  void operator()(void *pages) const { ktn_pages_release(pages, bytes); }
};

/// Memory of ktn_pages_take.
using Pages = std::unique_ptr<void, ReleasePages>;

inline Pages takePages(int64_t bytes) {
  return Pages(ktn_pages_take(bytes), ReleasePages{bytes});
}

} // namespace keratin

#endif // KERATIN_TOOLS_PAGES_H
