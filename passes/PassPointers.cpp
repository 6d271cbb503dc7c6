//===- PassPointers.cpp - functions take pointers, not memrefs ------------===//
#include "passes/Bands.h"
#include "passes/Passes.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace keratin {
#define GEN_PASS_DEF_PASSPOINTERS
#include "passes/Passes.h.inc"

namespace {

/// How a memref travels: a pointer and the extents and strides that its type
/// leaves open.
struct Passing {
  Passing(MemRefType type, bool pointerOnly)
      : type(type), pointerOnly(pointerOnly) {
    valid = succeeded(type.getStridesAndOffset(strides, offset));
  }

  unsigned countArguments() const {
    if (pointerOnly)
      return 1;
    return 1 + type.getNumDynamicDims() +
           llvm::count(strides, ShapedType::kDynamic);
  }

  MemRefType type;
  /// Bytes, the extent of which the callee is not told.
  bool pointerOnly;
  bool valid;
  SmallVector<int64_t> strides;
  int64_t offset = 0;
};

struct PassPointers : impl::PassPointersBase<PassPointers> {
  void runOnOperation() override {
    LLVMTypeConverter converter(&getContext());
    typeConverter = &converter;
    // Calls first: they look at the signatures of their callees.
    WalkResult calls = getOperation().walk([&](func::CallOp call) {
      return failed(rewriteCall(call)) ? WalkResult::interrupt()
                                       : WalkResult::advance();
    });
    if (calls.wasInterrupted())
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(rewriteFunction(function)))
        return signalPassFailure();
  }

private:
  LogicalResult rewriteCall(func::CallOp call);
  LogicalResult rewriteFunction(func::FuncOp function);
  void giveUp(OpBuilder &b, Value memref, bool pointerOnly,
              SmallVectorImpl<Value> &arguments);
  Value take(OpBuilder &b, Location loc, const Passing &passing,
             ValueRange arguments);

  LLVMTypeConverter *typeConverter = nullptr;
};

} // namespace

/// Whether the callee is told no extents of an argument: those of a public
/// function, and bytes that a function of bands takes from one.
static bool isPointerOnly(func::FuncOp function, unsigned index) {
  return function.isPublic() || function.getArgAttr(index, basesAttr);
}

/// Whether `user` needs no extents.
static bool needsPointerOnly(Operation *user) {
  if (isa<memref::ViewOp>(user))
    return true;
  return isa<UnrealizedConversionCastOp>(user) &&
         llvm::all_of(user->getUsers(), [](Operation *part) {
           auto extract = dyn_cast<LLVM::ExtractValueOp>(part);
           constexpr int64_t alignedPointer = 1;
           return extract && extract.getPosition().size() == 1 &&
                  extract.getPosition()[0] == alignedPointer;
         });
}

/// Appends what stands for `memref` in a call.
void PassPointers::giveUp(OpBuilder &b, Value memref, bool pointerOnly,
                          SmallVectorImpl<Value> &arguments) {
  Location loc = memref.getLoc();
  Passing passing(cast<MemRefType>(memref.getType()), /*pointerOnly=*/false);
  Type descriptorType = typeConverter->convertType(passing.type);
  MemRefDescriptor descriptor(
      UnrealizedConversionCastOp::create(b, loc, descriptorType, memref)
          .getResult(0));
  Value pointer = descriptor.alignedPtr(b, loc);
  if (ShapedType::isDynamic(passing.offset)) {
    Type element = typeConverter->convertType(passing.type.getElementType());
    pointer = LLVM::GEPOp::create(b, loc, pointer.getType(), element, pointer,
                                  descriptor.offset(b, loc));
  }
  arguments.push_back(pointer);
  if (pointerOnly)
    return;
  for (int64_t dim = 0; dim < passing.type.getRank(); ++dim)
    if (passing.type.isDynamicDim(dim))
      arguments.push_back(descriptor.size(b, loc, dim));
  for (auto [dim, stride] : llvm::enumerate(passing.strides))
    if (ShapedType::isDynamic(stride))
      arguments.push_back(descriptor.stride(b, loc, dim));
}

/// The memref that `arguments` stand for in a callee.
Value PassPointers::take(OpBuilder &b, Location loc, const Passing &passing,
                         ValueRange arguments) {
  MemRefDescriptor descriptor = MemRefDescriptor::poison(
      b, loc, typeConverter->convertType(passing.type));
  descriptor.setAllocatedPtr(b, loc, arguments[0]);
  descriptor.setAlignedPtr(b, loc, arguments[0]);
  // An open offset is in the pointer; every access adds one of the type.
  bool isOpen = ShapedType::isDynamic(passing.offset);
  descriptor.setConstantOffset(b, loc, isOpen ? 0 : passing.offset);
  ValueRange rest = arguments.drop_front();
  auto next = [&] {
    Value value = rest.front();
    rest = rest.drop_front();
    return value;
  };
  for (int64_t dim = 0; dim < passing.type.getRank(); ++dim) {
    int64_t extent = passing.type.getDimSize(dim);
    if (!ShapedType::isDynamic(extent))
      descriptor.setConstantSize(b, loc, dim, extent);
    else if (passing.pointerOnly)
      descriptor.setConstantSize(b, loc, dim, 0);
    else
      descriptor.setSize(b, loc, dim, next());
  }
  for (auto [dim, stride] : llvm::enumerate(passing.strides)) {
    if (ShapedType::isDynamic(stride))
      descriptor.setStride(b, loc, dim, next());
    else
      descriptor.setConstantStride(b, loc, dim, stride);
  }
  return UnrealizedConversionCastOp::create(b, loc, passing.type,
                                            Value(descriptor))
      .getResult(0);
}

LogicalResult PassPointers::rewriteCall(func::CallOp call) {
  if (llvm::none_of(call.getOperandTypes(), llvm::IsaPred<MemRefType>))
    return success();
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      call, call.getCalleeAttr());
  if (!callee || callee.isPublic())
    return call.emitOpError("passes memrefs to ")
           << call.getCallee() << ", which is not a private function";
  OpBuilder b(call);
  SmallVector<Value> arguments;
  for (auto [index, operand] : llvm::enumerate(call.getOperands())) {
    if (isa<MemRefType>(operand.getType()))
      giveUp(b, operand, isPointerOnly(callee, index), arguments);
    else
      arguments.push_back(operand);
  }
  auto replacement = func::CallOp::create(b, call.getLoc(), call.getCallee(),
                                          call.getResultTypes(), arguments);
  call.replaceAllUsesWith(replacement);
  call.erase();
  return success();
}

/// What of an argument's attributes means something to LLVM.
static DictionaryAttr llvmAttributes(func::FuncOp function, unsigned index) {
  SmallVector<NamedAttribute> kept;
  for (NamedAttribute attribute :
       mlir::function_interface_impl::getArgAttrs(function, index))
    if (attribute.getName().strref().starts_with("llvm."))
      kept.push_back(attribute);
  return DictionaryAttr::get(function.getContext(), kept);
}

LogicalResult PassPointers::rewriteFunction(func::FuncOp function) {
  if (!llvm::all_of(function.getResultTypes(),
                    [](Type type) { return !isa<BaseMemRefType>(type); }))
    return function.emitOpError("returns a memref");

  OpBuilder b(&getContext());
  Type pointer = LLVM::LLVMPointerType::get(&getContext());
  SmallVector<Type> types;
  SmallVector<Attribute> attributes;
  SmallVector<std::optional<Passing>> passings;
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    Type type = function.getArgumentTypes()[index];
    attributes.push_back(llvmAttributes(function, index));
    auto memref = dyn_cast<MemRefType>(type);
    passings.emplace_back();
    if (!memref) {
      types.push_back(type);
      continue;
    }
    Passing passing(memref, isPointerOnly(function, index));
    if (!passing.valid)
      return function.emitOpError("takes ")
             << memref << ", which has no strides";
    unsigned count = passing.countArguments();
    types.push_back(pointer);
    types.append(count - 1, b.getI64Type());
    attributes.append(count - 1, b.getDictionaryAttr({}));
    passings.back() = std::move(passing);
  }
  function.setFunctionType(b.getFunctionType(types, function.getResultTypes()));
  function.setAllArgAttrs(attributes);
  if (function.isExternal())
    return success();

  // The new arguments follow the old ones, which then go.
  Block &entry = function.getBody().front();
  unsigned oldCount = entry.getNumArguments();
  SmallVector<BlockArgument> old(entry.getArguments());
  for (Type type : types)
    entry.addArgument(type, function.getLoc());
  b.setInsertionPointToStart(&entry);
  unsigned position = oldCount;
  for (auto [argument, passing] : llvm::zip(old, passings)) {
    unsigned count = passing ? passing->countArguments() : 1;
    ValueRange range = entry.getArguments().slice(position, count);
    position += count;
    if (!passing) {
      argument.replaceAllUsesWith(range[0]);
      continue;
    }
    if (passing->pointerOnly && passing->type.getNumDynamicDims() != 0)
      for (Operation *user : argument.getUsers())
        if (!needsPointerOnly(user))
          return user->emitOpError("uses an argument of a public function, "
                                   "the extent of which is not passed");
    argument.replaceAllUsesWith(take(b, argument.getLoc(), *passing, range));
  }
  entry.eraseArguments(0, oldCount);
  return success();
}

} // namespace keratin
