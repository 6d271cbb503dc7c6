//===- InPlace.cpp - results that are written over arguments --------------===//
//
// The new value of a variable is a result of the function, the old one an
// argument. They may be one piece of memory when the kernel that writes the new
// value is the last to read the old one, if it reads it at all, and then reads
// each element before it writes there: which its emitter says in the attribute
// `ktn.in_place`. Of two variables that trade places, one is read after the
// other is written, so that at most one is in place.
//
//===----------------------------------------------------------------------===//
#include "passes/BufferPlan.h"

using namespace mlir;

namespace keratin {

/// Whether operand `index` of a call of a kernel is a destination.
static bool isDestination(func::CallOp call, unsigned index) {
  auto cast =
      call.getOperand(index).getDefiningOp<UnrealizedConversionCastOp>();
  return cast && cast.getOperand(0).getDefiningOp<tensor::EmptyOp>();
}

bool BufferPlan::isInPlace(unsigned result, unsigned argument) {
  Value value = function.front().getTerminator()->getOperand(result);
  const Place *place = find(value), *old = find(function.getArgument(argument));
  if (!place || !old || !place->steps.empty() || !place->strides.empty())
    return false;
  const Buffer &buffer = bufferAt(*place), &source = bufferAt(*old);
  if (buffer.storage != Storage::Output || buffer.index != result ||
      buffer.bytes != source.bytes)
    return false;
  for (const auto &[before, list] : copies)
    for (const auto &[from, to] : list)
      if (to.buffer == place->buffer)
        return false;

  // One kernel writes all of it.
  func::CallOp writer;
  unsigned time = 0, destination = 0;
  for (auto [call, when] : calls)
    for (auto [index, operand] : llvm::enumerate(call.getOperands())) {
      const Place *used = find(operand);
      if (!used || used->buffer != place->buffer || !isDestination(call, index))
        continue;
      if (writer || !used->steps.empty() || !used->strides.empty() ||
          call->getBlock() != &function.front())
        return false;
      writer = call;
      time = when;
      destination = index;
    }
  if (!writer || source.life.last > time)
    return false;

  auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      writer, writer.getCalleeAttr());
  bool reads = false;
  for (auto [index, operand] : llvm::enumerate(writer.getOperands())) {
    const Place *used = find(operand);
    if (!used || used->buffer != old->buffer)
      continue;
    reads = true;
    if (!used->steps.empty() || !used->strides.empty() ||
        !kernel.getArgAttr(index, "ktn.in_place"))
      return false;
  }
  if (reads)
    shared.emplace_back(kernel, destination);
  return true;
}

void BufferPlan::findInPlace() {
  llvm::SmallDenseSet<unsigned> taken;
  for (unsigned result = 0; result < function.getNumResults(); ++result) {
    inPlace.push_back(-1);
    auto updates =
        function.getResultAttrOfType<IntegerAttr>(result, "ktn.updates");
    if (!updates || updates.getInt() < 0 ||
        updates.getInt() >= int64_t(function.getNumArguments()))
      continue;
    auto argument = static_cast<unsigned>(updates.getInt());
    if (isInPlace(result, argument) && taken.insert(argument).second)
      inPlace.back() = argument;
  }
}

} // namespace keratin
