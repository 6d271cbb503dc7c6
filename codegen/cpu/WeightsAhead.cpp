//===- WeightsAhead.cpp - weights that a kernel asks for ahead ------------===//
#include "codegen/cpu/WeightsAhead.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace keratin {

/// The argument of `kernel`, a constant, each element of which is multiplied
/// once; null where there is none.
static std::optional<unsigned> readOnce(func::FuncOp kernel) {
  linalg::GenericOp root;
  for (auto generic : kernel.getOps<linalg::GenericOp>())
    if (generic.getNumReductionLoops() != 0) {
      if (root)
        return std::nullopt;
      root = generic;
    }
  if (!root || root.getNumResults() != 1 ||
      !llvm::isa_and_nonnull<arith::AddFOp>(
          root.getBody()->getTerminator()->getOperand(0).getDefiningOp()))
    return std::nullopt;
  int64_t points = 1;
  for (unsigned loop = 0; loop < root.getNumLoops(); ++loop) {
    int64_t extent = staticLoopExtent(root, loop);
    if (ShapedType::isDynamic(extent) ||
        llvm::MulOverflow(points, extent, points))
      return std::nullopt;
  }
  for (Value input : root.getInputs()) {
    auto argument = dyn_cast<BlockArgument>(input);
    auto type = dyn_cast<RankedTensorType>(input.getType());
    if (argument && type && type.getElementType().isIntOrFloat() &&
        kernel.getArgAttr(argument.getArgNumber(), "ktn.constant") &&
        type.hasStaticShape() && type.getNumElements() == points)
      return argument.getArgNumber();
  }
  return std::nullopt;
}

/// The FLOPs of `call`, if it calls a product, whatever the batch; else 0.
static int64_t flopsOf(func::CallOp call, func::FuncOp kernel) {
  auto kind = kernel->getAttrOfType<StringAttr>(kernelAttr);
  auto flops = call->getAttrOfType<DenseI64ArrayAttr>("ktn.flops");
  bool isProduct = kind && (kind == "conv" || kind == "matmul");
  return isProduct && flops && flops.size() == 2 && flops[1] == 0 ? flops[0]
                                                                  : 0;
}

llvm::StringMap<WeightsAhead> findWeightsAhead(ModuleOp module,
                                               bool weights24) {
  // While a core does so many FLOPs, memory brings a byte with no more than
  // half of its bandwidth: kernels have weights of their own. How many calls
  // are looked at.
  constexpr int64_t flopsOfByte = 12, leastFlops = 4 << 20,
                    leastBytes = 1 << 20;
  constexpr size_t farthest = 8;
  llvm::StringMap<unsigned> calls;
  module.walk([&](func::CallOp call) { ++calls[call.getCallee()]; });
  llvm::StringMap<WeightsAhead> ahead;
  SymbolTable symbols(module);
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal() || function->hasAttr(kernelAttr))
      continue;
    SmallVector<std::pair<func::CallOp, func::FuncOp>> before;
    for (auto call : function.front().getOps<func::CallOp>()) {
      auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
      if (!kernel || !kernel->hasAttr(kernelAttr))
        continue;
      before.emplace_back(call, kernel);
      std::optional<unsigned> argument = readOnce(kernel);
      if (!argument || calls.lookup(call.getCallee()) != 1 ||
          !call.getOperand(*argument).getDefiningOp<arith::ConstantOp>())
        continue;
      auto type = cast<RankedTensorType>(call.getOperand(*argument).getType());
      int64_t bytes = llvm::divideCeil(
          llvm::SaturatingMultiply<uint64_t>(type.getNumElements(),
                                             type.getElementTypeBitWidth()),
          8);
      if (weights24 && type.getElementType().isF32())
        bytes = bytes / 4 * 3;
      if (bytes < leastBytes)
        continue;
      // Those in front, the nearest first, until there is time for all.
      SmallVector<std::pair<func::FuncOp, int64_t>> askers;
      int64_t time = 0;
      for (auto [other, asker] : llvm::drop_begin(
               llvm::reverse(ArrayRef(before).take_back(farthest + 1)))) {
        int64_t flops = flopsOf(other, asker);
        if (flops >= leastFlops && time < bytes * flopsOfByte &&
            calls.lookup(other.getCallee()) == 1 &&
            !ahead.contains(other.getCallee())) {
          askers.emplace_back(asker, flops);
          time += flops;
        }
      }
      int64_t all = std::min(bytes, time / flopsOfByte), from = 0;
      for (auto [asker, flops] : askers) {
        auto share = int64_t(double(all) * double(flops) / double(time));
        ahead[asker.getName()] = {call.getOperand(*argument),
                                  call.getCallee().str(), *argument, from,
                                  share};
        from += share;
      }
    }
  }
  return ahead;
}

void typeWeightsAhead(ModuleOp module,
                      const llvm::StringMap<WeightsAhead> &ahead) {
  SymbolTable symbols(module);
  for (const auto &entry : ahead) {
    auto asker = symbols.lookup<func::FuncOp>(entry.getKey());
    auto reader = symbols.lookup<func::FuncOp>(entry.getValue().reader);
    for (unsigned number = 0; number < asker.getNumArguments(); ++number) {
      if (!asker.getArgAttr(number, aheadAttr))
        continue;
      unsigned argument = entry.getValue().argument;
      SmallVector<Type> types(asker.getArgumentTypes());
      types[number] = reader.getArgumentTypes()[argument];
      asker.setType(FunctionType::get(module.getContext(), types, {}));
      asker.getArgument(number).setType(types[number]);
      for (StringRef name : {"ktn.packed", "ktn.unpacked_type"})
        if (Attribute form = reader.getArgAttr(argument, name))
          asker.setArgAttr(number, name, form);
    }
  }
}

} // namespace keratin
