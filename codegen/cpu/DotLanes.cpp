//===- DotLanes.cpp - dot products in the lanes of vectors ----------------===//
#include "codegen/cpu/DotLanes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace keratin {

Value addressOf(Kernel &kernel, Value memref, Value element) {
  OpBuilder &b = kernel.builder();
  Location loc = kernel.loc();
  int64_t bytes =
      cast<MemRefType>(memref.getType()).getElementTypeBitWidth() / 8;
  if (std::optional<int64_t> known = getConstantIntValue(element))
    element = kernel.index(*known * bytes);
  else if (bytes != 1)
    element = arith::MulIOp::create(b, loc, element, kernel.index(bytes));
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, memref);
  base = arith::AddIOp::create(b, loc, base, element);
  base = arith::IndexCastOp::create(b, loc, b.getI64Type(), base);
  return LLVM::IntToPtrOp::create(
      b, loc, LLVM::LLVMPointerType::get(b.getContext()), base);
}

static VectorType pairsType(OpBuilder &b) {
  return VectorType::get(dotLanes * 2, b.getBF16Type());
}

static Value load(Kernel &kernel, Type type, Value memref, Value element) {
  return LLVM::LoadOp::create(kernel.builder(), kernel.loc(), type,
                              addressOf(kernel, memref, element),
                              /*alignment=*/2);
}

Value loadPairs(Kernel &kernel, Value memref, Value element) {
  return load(kernel, pairsType(kernel.builder()), memref, element);
}

Value spreadPair(Kernel &kernel, Value memref, Value element, bool isHalf) {
  OpBuilder &b = kernel.builder();
  Type type = isHalf ? b.getI16Type() : b.getI32Type();
  Value pair = load(kernel, type, memref, element);
  if (isHalf)
    pair = arith::ExtUIOp::create(b, kernel.loc(), b.getI32Type(), pair);
  pair = vector::BroadcastOp::create(
      b, kernel.loc(), VectorType::get(dotLanes, b.getI32Type()), pair);
  return vector::BitCastOp::create(b, kernel.loc(), pairsType(b), pair);
}

Value addDots(Kernel &kernel, Value sums, Value left, Value right) {
  OpBuilder &b = kernel.builder();
  return LLVM::CallIntrinsicOp::create(
             b, kernel.loc(), sums.getType(),
             b.getStringAttr("llvm.x86.avx512bf16.dpbf16ps.512"),
             ValueRange{sums, left, right})
      .getResult(0);
}

} // namespace keratin
