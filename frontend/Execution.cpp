//===- Execution.cpp - running of compiled code ---------------------------===//
#include "Execution.h"

#include "keratin/abi.h"

#include <algorithm>

namespace keratin::backend {

Arena::Arena(int64_t bytes) : memory(ktn_pages_take(bytes)), bytes(bytes) {
  if (!memory)
    throw Error("out of memory: an arena of " + std::to_string(bytes) +
                " bytes");
}

Arena::~Arena() { ktn_pages_release(memory, bytes); }

static int64_t batchOf(const ktn_model_info_t &info) {
  return info.batch > 0 ? info.batch : 1;
}

static Shape shapeOf(const ktn_tensor_info_t &info, int64_t batch) {
  Shape shape(info.shape, info.shape + info.rank);
  std::replace(shape.begin(), shape.end(), int64_t(-1), batch);
  return shape;
}

std::vector<Array> run(Compiled &code, llvm::ArrayRef<const void *> arguments,
                       llvm::ArrayRef<void *> places) {
  const ktn_model_info_t &info = *code.info;
  int64_t batch = batchOf(info);
  std::vector<Array> results;
  results.reserve(static_cast<size_t>(info.num_outputs));
  llvm::SmallVector<void *, 32> outputs;
  auto fresh = static_cast<int64_t>(info.num_outputs - places.size());
  for (int32_t i = 0; i < info.num_outputs; ++i) {
    if (i >= fresh && places[i - fresh]) {
      results.emplace_back();
      outputs.push_back(places[i - fresh]);
      continue;
    }
    results.push_back(
        Array::uninitialized(static_cast<DType>(info.outputs[i].dtype),
                             shapeOf(info.outputs[i], batch)));
    outputs.push_back(results.back().mutableData());
  }

  // Calls at the same time need an arena each; the usual single caller reuses
  // one, whose pages are warm.
  int64_t bytes = info.arena_bytes[0] + batch * info.arena_bytes[1];
  std::unique_lock<std::mutex> first(code.running, std::try_to_lock);
  std::unique_ptr<Arena> own;
  if (!first)
    own = std::make_unique<Arena>(bytes);
  else if (!code.arena)
    code.arena = std::make_unique<Arena>(bytes);
  Arena &arena = own ? *own : *code.arena;
  ktn_status_t status = info.run(info.weights, arena.data(), batch,
                                 arguments.data(), outputs.data());
  if (status != KTN_OK)
    throw Error(std::string("the code of a function failed: ") +
                ktn_status_name(status));
  return results;
}

} // namespace keratin::backend
