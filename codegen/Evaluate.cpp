//===- Evaluate.cpp - constant expressions, compiled and run --------------===//
#include "codegen/Evaluate.h"

#include "codegen/Compiled.h"
#include "codegen/Signature.h"
#include "codegen/Stages.h"

#include "keratin/abi.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;

namespace keratin {

/// The values in memory of a constant expression, as an attribute. What is
/// large is kept out of the uniquing of attributes.
static ElementsAttr makeElements(RankedTensorType type,
                                 llvm::ArrayRef<char> bytes) {
  if (type.getElementType().isInteger(1)) {
    llvm::SmallVector<bool> values(bytes.begin(), bytes.end());
    return DenseElementsAttr::get(type, values);
  }
  if (type.getNumElements() <= 16)
    return DenseElementsAttr::getFromRawBuffer(type, bytes);
  return DenseResourceElementsAttr::get(
      type, "folded",
      HeapAsmResourceBlob::allocateAndCopyWithAlign(bytes, KTN_ALIGNMENT));
}

/// Runs a loaded function without inputs; the values of its results.
static FailureOr<llvm::SmallVector<ElementsAttr>>
runLoaded(const ktn_model_info_t &info, TypeRange types, Location loc) {
  auto allocate = [](int64_t bytes) {
    return llvm::WritableMemoryBuffer::getNewUninitMemBuffer(
        bytes, "", llvm::Align(KTN_ALIGNMENT));
  };
  llvm::SmallVector<std::unique_ptr<llvm::WritableMemoryBuffer>> buffers;
  llvm::SmallVector<void *> outputs;
  for (Type type : types) {
    auto tensor = cast<RankedTensorType>(type);
    int64_t bits = tensor.getElementTypeBitWidth();
    buffers.push_back(allocate(tensor.getNumElements() * ((bits + 7) / 8)));
    if (!buffers.back())
      return emitError(loc) << "no memory for a constant of type " << tensor;
    outputs.push_back(buffers.back()->getBufferStart());
  }
  auto arena = allocate(info.arena_bytes[0] + info.batch * info.arena_bytes[1]);
  if (!arena)
    return emitError(loc) << "no memory to compute constants";
  ktn_status_t status = info.run(info.weights, arena->getBufferStart(),
                                 info.batch, nullptr, outputs.data());
  if (status != KTN_OK)
    return emitError(loc) << "constants cannot be computed: "
                          << ktn_status_name(status);
  llvm::SmallVector<ElementsAttr> values;
  for (auto [type, buffer] : llvm::zip_equal(types, buffers))
    values.push_back(
        makeElements(cast<RankedTensorType>(type), buffer->getBuffer()));
  return values;
}

FailureOr<llvm::SmallVector<ElementsAttr>> evaluateConstants(ModuleOp module) {
  func::FuncOp function = findFunction(module);
  if (!function)
    return failure();
  llvm::SmallVector<Type> types(function.getResultTypes());
  CompileOptions options;
  options.name = "evaluate";
  options.threads = 1;
  options.optimize = false;
  llvm::Expected<Target> target = parseTarget("native", options.optimize);
  if (!target)
    return report(module.getLoc(), target.takeError());
  PipelineOptions pipeline =
      pipelineOptions(*target, options, /*evaluator=*/nullptr);
  std::vector<Target> targets;
  targets.push_back(std::move(*target));
  std::unique_ptr<CompiledModel> model =
      compileFor(module.clone(), options, std::move(targets), pipeline);
  const ktn_model_info_t *info = model ? model->load() : nullptr;
  if (!info)
    return failure();
  return runLoaded(*info, types, module.getLoc());
}

} // namespace keratin
