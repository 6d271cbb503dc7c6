//===- InPlace.cpp - results that are written over arguments --------------===//
//
// A kernel makes its result where an argument is that nobody reads again, if it
// reads each element of that before it writes there: its cache lines are near
// already, and the arena needs one buffer less. The sum of a residual block is
// made where the input of the block is.
//
// A window goes from the last rows of an image to the first. Its result may lie
// over what it reads, if that is so far in front of it that rows are read
// before they are written over: the attribute `ktn.behind` tells how far. It
// goes on where cache lines are near, and the arena is smaller, too.
//
// The next value of a state of a loop is made where the one before it is, if
// that was read for the last time: by the kernel that makes it, in order.
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

#include "passes/Bands.h"

#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;

namespace keratin {

/// Whether operand `index` of a call of a kernel is a destination.
static bool isDestination(func::CallOp call, unsigned index) {
  auto cast =
      call.getOperand(index).getDefiningOp<UnrealizedConversionCastOp>();
  return cast && cast.getOperand(0).getDefiningOp<tensor::EmptyOp>();
}

std::optional<unsigned> onlyDestination(func::CallOp call) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      call, call.getCalleeAttr());
  std::optional<unsigned> made;
  if (!kernel || kernel.isExternal())
    return made;
  for (unsigned number = 0; number < call.getNumOperands(); ++number) {
    // Nobody uses the unset tensor that tells the extents of a pool.
    if (!isDestination(call, number) ||
        kernel.getArgument(number).use_empty() ||
        kernel.getArgAttr(number, "ktn.scratch") ||
        kernel.getArgAttr(number, "ktn.kept"))
      continue;
    if (made)
      return std::nullopt;
    made = number;
  }
  return made;
}

/// The call of a kernel in `block` that alone writes `buffer`, all of it, and
/// the number of its destination.
std::optional<std::pair<func::CallOp, unsigned>>
BufferPlan::onlyWriter(unsigned buffer, Block *block) {
  for (const auto &[before, list] : copies)
    for (const BufferCopy &copy : list)
      if (copy.to.buffer == buffer)
        return std::nullopt;
  std::optional<std::pair<func::CallOp, unsigned>> writer;
  for (auto [op, when] : calls) {
    auto call = cast<func::CallOp>(op);
    for (auto [index, operand] : llvm::enumerate(call.getOperands())) {
      const Place *used = find(operand);
      if (!used || used->buffer != buffer || !isDestination(call, index))
        continue;
      if (writer || !used->steps.empty() || !used->strides.empty() ||
          call->getBlock() != block)
        return std::nullopt;
      writer = {call, unsigned(index)};
    }
  }
  return writer;
}

/// Whether `writer` reads the buffer `old` only where it may be its destination
/// too, if at all; then the destination is not its own.
bool BufferPlan::readsInPlace(func::CallOp writer, unsigned destination,
                              unsigned old) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      writer, writer.getCalleeAttr());
  bool reads = false;
  for (auto [index, operand] : llvm::enumerate(writer.getOperands())) {
    const Place *used = find(operand);
    if (!used || used->buffer != old)
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

/// The argument of `call`, outside of loops, that destination `number` may be
/// made in the place of: a buffer of the arena, all of it, of the same size.
std::optional<unsigned> BufferPlan::argumentInPlace(func::CallOp call,
                                                    unsigned number) {
  auto isWhole = [&](const Place *place) {
    return place && place->steps.empty() && place->strides.empty() &&
           bufferAt(*place).storage == Storage::Arena &&
           bufferAt(*place).pieces == 1 && !bufferAt(*place).isKept &&
           !(bufferAt(*place).bytes == BatchSize{});
  };
  const Place *made = find(call.getOperand(number));
  if (!isWhole(made) || !isDestination(call, number))
    return std::nullopt;
  // A tensor of the size of its buffer, which no other kernel writes to.
  auto type = dyn_cast<MemRefType>(call.getOperand(number).getType());
  if (!type || !type.hasStaticShape() ||
      bufferAt(*made).bytes !=
          BatchSize{type.getNumElements() * elementBytes(type.getElementType()),
                    0})
    return std::nullopt;
  auto writer = onlyWriter(made->buffer, call->getBlock());
  if (!writer || writer->first != call)
    return std::nullopt;
  auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      call, call.getCalleeAttr());
  for (auto [index, operand] : llvm::enumerate(call.getOperands())) {
    const Place *old = find(operand);
    if (kernel.getArgAttr(index, "ktn.in_place") && isWhole(old) &&
        old->buffer != made->buffer &&
        bufferAt(*old).bytes == bufferAt(*made).bytes &&
        bufferAt(*old).life.last <= calls.lookup(call) &&
        readsInPlace(call, number, old->buffer))
      return old->buffer;
  }
  return std::nullopt;
}

/// Makes results in the place of arguments of their kernels.
void BufferPlan::makeInPlace() {
  for (auto [op, when] : calls) {
    auto call = cast<func::CallOp>(op);
    if (call->getBlock() != &function.front())
      continue;
    for (unsigned number = 0; number < call.getNumOperands(); ++number) {
      std::optional<unsigned> old = argumentInPlace(call, number);
      if (!old)
        continue;
      unsigned made = find(call.getOperand(number))->buffer;
      for (auto &[value, place] : places)
        if (place.buffer == made)
          place.buffer = *old;
      for (auto &[before, list] : copies)
        for (BufferCopy &copy : list) {
          if (copy.to.buffer == made)
            copy.to.buffer = *old;
          if (copy.from && copy.from->buffer == made)
            copy.from->buffer = *old;
        }
      buffers[*old].life.last = buffers[made].life.last;
      buffers[made].bytes = {}; // it has no memory of its own
    }
  }
}

/// Makes the next value of a state of `loop` where the one before it is, if
/// nothing needs that when it is written: no copy at the end of each turn.
bool BufferPlan::goesOnInPlace(scf::ForOp loop, unsigned number,
                               const Place &state) {
  auto yielded = loop.getBody()->getTerminator()->getOperands();
  const Place *next = find(yielded[number]);
  if (!next || !next->steps.empty() || !next->strides.empty() ||
      next->buffer == state.buffer)
    return false;
  unsigned made = next->buffer;
  Buffer &buffer = buffers[made];
  if (buffer.storage != Storage::Arena || buffer.block != loop.getBody() ||
      buffer.bytes != buffers[state.buffer].bytes || buffer.isKept)
    return false;
  for (auto [other, value] : llvm::enumerate(yielded)) {
    const Place *place = find(value);
    if (other != number && place &&
        (place->buffer == made || place->buffer == state.buffer))
      return false;
  }
  auto writer = onlyWriter(made, loop.getBody());
  if (!writer ||
      buffers[state.buffer].life.last > calls.lookup(writer->first) ||
      !readsInPlace(writer->first, writer->second, state.buffer))
    return false;
  buffer.bytes = {}; // it has no memory of its own
  for (auto &[value, place] : places)
    if (place.buffer == made)
      place.buffer = state.buffer;
  return true;
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
  auto writer = onlyWriter(place->buffer, &function.front());
  return writer && source.life.last <= calls.lookup(writer->first) &&
         readsInPlace(writer->first, writer->second, old->buffer);
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

//===----------------------------------------------------------------------===//
// Behind the beginning
//===----------------------------------------------------------------------===//

/// Bytes of a memref of known extents whose elements are dense.
static std::optional<int64_t> bytesOf(Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref || !memref.hasStaticShape() || !memref.getLayout().isIdentity())
    return std::nullopt;
  return llvm::checkedMul(memref.getNumElements(),
                          elementBytes(memref.getElementType()));
}

/// Whether a turn of a loop over bands finds in `buffer` what the one before
/// left there.
bool BufferPlan::isKeptInTurns(unsigned buffer) {
  return llvm::any_of(calls, [&](const auto &known) {
    auto call = cast<func::CallOp>(known.first);
    std::optional<unsigned> made =
        call->hasAttr(startAttr) ? onlyDestination(call) : std::nullopt;
    const Place *place = made ? find(call.getOperand(*made)) : nullptr;
    return place && place->buffer == buffer;
  });
}

/// Whether nobody needs `buffer` once `call` is done.
bool BufferPlan::isReadLastBy(func::CallOp call, unsigned buffer) {
  const Buffer &read = buffers[buffer];
  if (call->getBlock() == &function.front())
    return read.life.last <= calls.lookup(call);
  // Buffers of bands live as long as the loop: for turns on other threads.
  return read.reads == 1 && read.block == call->getBlock() &&
         !isKeptInTurns(buffer) && llvm::none_of(copies, [&](const auto &list) {
           return llvm::any_of(list.second, [&](const BufferCopy &copy) {
             return copy.to.buffer == buffer;
           });
         });
}

/// How `call`, outside of loops or in one over bands, may write its result over
/// its operand `read`: buffers of the arena, the first of which nobody needs
/// any more, and nobody else writes the other.
std::optional<BufferPlan::Behind> BufferPlan::findBehind(func::CallOp call,
                                                         unsigned read) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      call, call.getCalleeAttr());
  auto behind = kernel
                    ? kernel.getArgAttrOfType<IntegerAttr>(read, "ktn.behind")
                    : IntegerAttr();
  Operation *loop = call->getParentOp();
  if (!behind || behind.getInt() < 0 || kernel->hasAttr("ktn.parts") ||
      (loop != function && !loop->hasAttr(bandsAttr)))
    return std::nullopt;
  auto isOfArena = [&](const Place *place) {
    return place && place->strides.empty() &&
           bufferAt(*place).storage == Storage::Arena &&
           !bufferAt(*place).isKept && bufferAt(*place).bytes.isStatic() &&
           bufferAt(*place).bytes.fixed > 0;
  };
  const Place *from = find(call.getOperand(read));
  for (unsigned number = 0; number < call.getNumOperands(); ++number) {
    const Place *other = find(call.getOperand(number));
    if (number != read && from && other && other->buffer == from->buffer)
      return std::nullopt;
  }
  std::optional<unsigned> made = onlyDestination(call);
  const Place *to = made ? find(call.getOperand(*made)) : nullptr;
  if (!isOfArena(from) || !isOfArena(to) || !to->steps.empty() ||
      isDestination(call, read))
    return std::nullopt;
  std::optional<int64_t> readBytes = bytesOf(call.getOperand(read).getType()),
                         madeBytes = bytesOf(call.getOperand(*made).getType());
  int64_t whole = bufferAt(*from).bytes.fixed;
  if (!readBytes || !madeBytes || *readBytes > whole ||
      bufferAt(*to).bytes.fixed != *madeBytes ||
      !isReadLastBy(call, from->buffer))
    return std::nullopt;
  auto writer = onlyWriter(to->buffer, call->getBlock());
  if (!writer || writer->first != call || writer->second != *made)
    return std::nullopt;
  // A part of a buffer begins where a turn of the loop says, or sooner.
  std::optional<int64_t> bytes =
      llvm::checkedAdd(behind.getInt(), whole - *readBytes);
  if (!bytes || *bytes >= whole)
    return std::nullopt;
  return Behind{call, read, *made, to->buffer,
                int64_t(llvm::alignTo(*bytes, bufferAlignment))};
}

/// Lays destinations over what their calls read, but for those that have been
/// made in the place of something else. In a loop over bands the two are one
/// buffer; outside of it the layout tells what that is good for.
void BufferPlan::layBehind(ArrayRef<Behind> found) {
  for (const Behind &behind : found) {
    func::CallOp call = behind.call;
    unsigned from = find(call.getOperand(behind.read))->buffer;
    unsigned to = find(call.getOperand(behind.made))->buffer;
    Buffer &read = buffers[from], &made = buffers[to];
    if (to != behind.buffer || read.storage != Storage::Arena || read.isKept ||
        !(read.bytes.isStatic() && read.bytes.fixed > 0) ||
        !isReadLastBy(call, from) ||
        made.bytes.fixed != bytesOf(call.getOperand(behind.made).getType()))
      continue;
    auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
        call, call.getCalleeAttr());
    if (call->getBlock() != &function.front()) {
      int64_t end = behind.bytes + made.bytes.fixed;
      if (end >= read.bytes.fixed + made.bytes.fixed ||
          made.pieces != read.pieces)
        continue;
      read.bytes.fixed = std::max(read.bytes.fixed, end);
      made.bytes = {};
    }
    made.over = from;
    made.bytesBehind = behind.bytes;
    shared.emplace_back(kernel, behind.made);
  }
}

} // namespace keratin
