//===- Evaluate.cpp - constant expressions, compiled and run --------------===//
#include "codegen/Evaluate.h"

#include "codegen/Compiled.h"
#include "codegen/Signature.h"
#include "codegen/Stages.h"
#include "ir/Ktn.h"

#include "keratin/abi.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/Support/Memory.h"

using namespace mlir;

namespace keratin {

/// Zeroed memory that the system gets back as soon as it is given back: freed
/// blocks of a heap stay with the process.
static std::optional<AsmResourceBlob> allocateBlob(size_t bytes) {
  constexpr size_t large = size_t(64) * 1024;
  if (bytes < large)
    return HeapAsmResourceBlob::allocate(std::max<size_t>(1, bytes),
                                         KTN_ALIGNMENT);
  std::error_code code;
  llvm::sys::MemoryBlock block = llvm::sys::Memory::allocateMappedMemory(
      bytes, nullptr, llvm::sys::Memory::MF_READ | llvm::sys::Memory::MF_WRITE,
      code);
  if (code)
    return std::nullopt;
  return AsmResourceBlob(
      llvm::ArrayRef(static_cast<const char *>(block.base()), bytes),
      KTN_ALIGNMENT,
      [block](void *, size_t, size_t) mutable {
        (void)llvm::sys::Memory::releaseMappedMemory(block);
      },
      /*dataIsMutable=*/true);
}

static AsmResourceBlob *blobOf(Attribute value) {
  auto resource = dyn_cast_if_present<DenseResourceElementsAttr>(value);
  return resource ? resource.getRawHandle().getBlob() : nullptr;
}

namespace {
/// A function without inputs whose large constants have become inputs.
struct Evaluation {
  OwningOpRef<ModuleOp> module;
  llvm::SmallVector<Type> types; // of the results
  llvm::SmallVector<llvm::ArrayRef<char>> inputs;
};
} // namespace

/// Constants that are weights of the compiled code would be copied.
static FailureOr<Evaluation> makeEvaluation(ModuleOp module) {
  Evaluation evaluation;
  evaluation.module = module.clone();
  func::FuncOp function = findFunction(*evaluation.module);
  if (!function)
    return failure();
  evaluation.types = llvm::to_vector(function.getResultTypes());
  llvm::SmallVector<ktn::ConstantOp> constants;
  function.walk([&](ktn::ConstantOp op) { constants.push_back(op); });
  for (ktn::ConstantOp op : constants) {
    AsmResourceBlob *blob = blobOf(op.getValue());
    if (!blob || blob->getData().empty())
      continue;
    unsigned position = function.getNumArguments();
    if (failed(
            function.insertArgument(position, op.getType(), {}, op.getLoc())))
      return failure();
    op.getResult().replaceAllUsesWith(function.getArgument(position));
    op.erase();
    evaluation.inputs.push_back(blob->getData());
  }
  return evaluation;
}

/// Runs a loaded function; its results, one blob each.
static FailureOr<llvm::SmallVector<AsmResourceBlob>>
runLoaded(const ktn_model_info_t &info, const Evaluation &evaluation,
          Location loc) {
  llvm::SmallVector<AsmResourceBlob> blobs;
  llvm::SmallVector<void *> outputs;
  for (Type type : evaluation.types) {
    auto tensor = cast<RankedTensorType>(type);
    int64_t bits = tensor.getElementTypeBitWidth();
    std::optional<AsmResourceBlob> blob =
        allocateBlob(tensor.getNumElements() * ((bits + 7) / 8));
    if (!blob)
      return emitError(loc) << "no memory for a constant of type " << tensor;
    blobs.push_back(std::move(*blob));
    outputs.push_back(blobs.back().getMutableData().data());
  }
  auto arena = llvm::WritableMemoryBuffer::getNewUninitMemBuffer(
      info.arena_bytes[0] + info.batch * info.arena_bytes[1], "",
      llvm::Align(KTN_ALIGNMENT));
  if (!arena)
    return emitError(loc) << "no memory to compute constants";
  llvm::SmallVector<const void *> inputs;
  for (llvm::ArrayRef<char> input : evaluation.inputs)
    inputs.push_back(input.data());
  ktn_status_t status = info.run(info.weights, arena->getBufferStart(),
                                 info.batch, inputs.data(), outputs.data());
  if (status != KTN_OK)
    return emitError(loc) << "constants cannot be computed: "
                          << ktn_status_name(status);
  return blobs;
}

/// The values in memory of a constant expression, as an attribute. What is
/// large is kept out of the uniquing of attributes.
ElementsAttr FoldedConstants::keep(RankedTensorType type,
                                   AsmResourceBlob blob) {
  llvm::ArrayRef<char> bytes = blob.getData();
  if (type.getElementType().isInteger(1)) {
    llvm::SmallVector<bool> values(bytes.begin(),
                                   bytes.begin() + type.getNumElements());
    return DenseElementsAttr::get(type, values);
  }
  if (type.getNumElements() == 0)
    return DenseElementsAttr::get(type, llvm::ArrayRef<Attribute>());
  if (type.getNumElements() <= 16)
    return DenseElementsAttr::getFromRawBuffer(type, bytes);
  auto value = DenseResourceElementsAttr::get(type, "folded", std::move(blob));
  keys.insert(value.getRawHandle().getKey());
  return value;
}

/// Whether products of a whole table are computed, which plain loops have one
/// or two of in a nanosecond.
static bool hasTables(ModuleOp module) {
  return module
      .walk([](Operation *op) {
        return op->hasAttr(storedAttr) ? WalkResult::interrupt()
                                       : WalkResult::advance();
      })
      .wasInterrupted();
}

FailureOr<llvm::SmallVector<ElementsAttr>>
FoldedConstants::evaluate(ModuleOp module) {
  context = module.getContext();
  FailureOr<Evaluation> evaluation = makeEvaluation(module);
  if (failed(evaluation))
    return failure();
  CompileOptions options;
  options.name = "evaluate";
  options.threads = 1;
  options.optimize = hasTables(module);
  options.strassen = options.pairs = false;
  options.tiles = options.weights24 = false;
  options.quick = true; // it runs once
  options.trusted = true;
  options.store = store;
  llvm::Expected<Target> target = parseTarget("native", options.optimize);
  if (!target)
    return report(module.getLoc(), target.takeError());
  PipelineOptions pipeline =
      pipelineOptions(*target, options, /*evaluator=*/nullptr);
  std::vector<Target> targets;
  targets.push_back(std::move(*target));
  std::unique_ptr<CompiledModel> model = compileFor(
      std::move(evaluation->module), options, std::move(targets), pipeline,
      /*constants=*/nullptr);
  const ktn_model_info_t *info = model ? model->load() : nullptr;
  if (!info)
    return failure();
  FailureOr<llvm::SmallVector<AsmResourceBlob>> blobs =
      runLoaded(*info, *evaluation, module.getLoc());
  if (failed(blobs))
    return failure();
  if (release)
    for (llvm::ArrayRef<char> input : evaluation->inputs)
      release(input);
  llvm::SmallVector<ElementsAttr> values;
  for (auto [type, blob] : llvm::zip_equal(evaluation->types, *blobs))
    values.push_back(keep(cast<RankedTensorType>(type), std::move(blob)));
  return values;
}

static void dropBlob(MLIRContext &context, llvm::StringRef key) {
  DenseResourceElementsHandle::getManagerInterface(&context)
      .getBlobManager()
      .update(key, AsmResourceBlob());
}

void FoldedConstants::keepOnly(llvm::ArrayRef<ElementsAttr> used) {
  llvm::StringSet<> needed;
  for (ElementsAttr value : used)
    if (auto resource = dyn_cast<DenseResourceElementsAttr>(value))
      needed.insert(resource.getRawHandle().getKey());
  llvm::SmallVector<std::string> useless;
  for (const auto &entry : keys)
    if (!needed.contains(entry.getKey()))
      useless.push_back(entry.getKey().str());
  for (const std::string &key : useless) {
    dropBlob(*context, key);
    keys.erase(key);
  }
}

void FoldedConstants::giveBack(ElementsAttr value) {
  AsmResourceBlob *blob = blobOf(value);
  if (!blob)
    return;
  llvm::StringRef key =
      cast<DenseResourceElementsAttr>(value).getRawHandle().getKey();
  if (keys.erase(key))
    dropBlob(*context, key);
  else if (release)
    release(blob->getData());
}

ConstantEvaluator evaluatorOf(std::shared_ptr<FoldedConstants> constants) {
  return [constants = std::move(constants)](ModuleOp module) {
    return constants->evaluate(module);
  };
}

} // namespace keratin
