//===- PageBuffer.cpp - weights in large pages ----------------------------===//
#include "codegen/Compile.h"

#include "keratin/abi.h"

#include "llvm/Support/MemoryBuffer.h"

namespace keratin {

namespace {
class PageBuffer final : public llvm::WritableMemoryBuffer {
public:
  PageBuffer(char *pages, int64_t bytes, llvm::StringRef name)
      : name(name.str()) {
    init(pages, pages + bytes, /*RequiresNullTerminator=*/false);
  }
  ~PageBuffer() override {
    ktn_pages_release(getBufferStart(), static_cast<int64_t>(getBufferSize()));
  }
  llvm::StringRef getBufferIdentifier() const override { return name; }
  BufferKind getBufferKind() const override { return MemoryBuffer_MMap; }

private:
  std::string name;
};
} // namespace

std::unique_ptr<llvm::WritableMemoryBuffer>
takePageBuffer(int64_t bytes, llvm::StringRef name) {
  auto *pages = static_cast<char *>(ktn_pages_take(bytes));
  if (!pages)
    return nullptr;
  return std::make_unique<PageBuffer>(pages, bytes, name);
}

} // namespace keratin
