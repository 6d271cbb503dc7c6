//===- Graph.cpp - the graph under the backend API ------------------------===//
#include "Graph.h"

#include "ControlScope.h"
#include "Diagnostics.h"
#include "codegen/Compile.h"
#include "ir/Ktn.h"
#include "keratin/backend.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;

namespace keratin::backend {

//===----------------------------------------------------------------------===//
// Types and attributes
//===----------------------------------------------------------------------===//

Graph::Graph() {
  DialectRegistry registry;
  registerDialects(registry);
  context = std::make_unique<MLIRContext>(registry);
  context->loadDialect<ktn::KtnDialect, func::FuncDialect>();
  module = ModuleOp::create(UnknownLoc::get(context.get()));
  blocks.push_back(module->getBody());
}

Graph::~Graph() = default;

Type Graph::elementType(DType dtype) {
  Builder b(context.get());
  switch (dtype) {
  case DType::Bool:
    return b.getI1Type();
  case DType::Int8:
    return b.getI8Type();
  case DType::Int16:
    return b.getI16Type();
  case DType::Int32:
    return b.getI32Type();
  case DType::Int64:
    return b.getI64Type();
  case DType::UInt8:
    return b.getIntegerType(8, /*isSigned=*/false);
  case DType::Float16:
    return b.getF16Type();
  case DType::BFloat16:
    return b.getBF16Type();
  case DType::Float32:
    return b.getF32Type();
  case DType::Float64:
    break;
  }
  return b.getF64Type();
}

DType Graph::dtypeOf(Type elementType) {
  if (elementType.isUnsignedInteger())
    return DType::UInt8;
  if (auto integer = dyn_cast<IntegerType>(elementType))
    switch (integer.getWidth()) {
    case 1:
      return DType::Bool;
    case 8:
      return DType::Int8;
    case 16:
      return DType::Int16;
    case 32:
      return DType::Int32;
    default:
      return DType::Int64;
    }
  if (elementType.isF16())
    return DType::Float16;
  if (elementType.isBF16())
    return DType::BFloat16;
  return elementType.isF32() ? DType::Float32 : DType::Float64;
}

/// The rank that ktn_tensor_info_t can tell is also the limit of the graph.
static void checkShape(const Shape &shape) {
  if (shape.size() > KTN_MAX_RANK)
    throw Error("shape " + shapeName(shape) + " has " +
                std::to_string(shape.size()) + " axes but at most " +
                std::to_string(KTN_MAX_RANK) + " are supported");
  int64_t elements = 1;
  for (int64_t extent : shape) {
    if (extent < 0 && extent != None)
      throw Error("shape " + shapeName(shape) + " has the extent " +
                  std::to_string(extent));
    // A tensor of 2^60 elements has no byte size that fits.
    if (extent > 0 && (llvm::MulOverflow(elements, extent, elements) ||
                       elements > (int64_t(1) << 60)))
      throw Error("shape " + shapeName(shape) + " has more than 2^60 elements");
  }
}

/// `None` as MLIR's `?`.
static SmallVector<int64_t> toMlir(const Shape &shape) {
  return llvm::map_to_vector(shape, [](int64_t extent) {
    return extent == None ? ShapedType::kDynamic : extent;
  });
}

RankedTensorType Graph::typeOf(const Shape &shape, DType dtype) {
  checkShape(shape);
  return RankedTensorType::get(toMlir(shape), elementType(dtype));
}

Shape Graph::shapeOf(RankedTensorType type) {
  Shape shape;
  for (int64_t extent : type.getShape())
    shape.push_back(ShapedType::isDynamic(extent) ? None : extent);
  return shape;
}

/// Large values are resources: held outside of the IR text, never uniqued.
static constexpr int64_t maxDenseElements = 16;

ElementsAttr Graph::attributeOf(const Array &value, llvm::StringRef name) {
  RankedTensorType type = typeOf(value.shape(), value.dtype());
  if (value.dtype() == DType::Bool)
    return DenseElementsAttr::get(
        type, llvm::ArrayRef(value.as<bool>(), value.size()));
  llvm::ArrayRef<char> bytes(value.as<char>(), value.byteSize());
  if (value.size() <= maxDenseElements)
    return value.size() == 0
               ? DenseElementsAttr::get(type, llvm::ArrayRef<Attribute>())
               : DenseElementsAttr::getFromRawBuffer(type, bytes);
  AsmResourceBlob blob = UnmanagedAsmResourceBlob::allocateWithAlign(
      bytes, dtypeSize(value.dtype()),
      [owner = value.owner()](void *, size_t, size_t) {});
  auto attribute = DenseResourceElementsAttr::get(type, name, std::move(blob));
  blobs.insert(attribute.getRawHandle().getKey());
  return attribute;
}

ElementsAttr Graph::attributeOf(Variable &variable) {
  if (!variable.attribute)
    variable.attribute = attributeOf(variable.value, variable.name);
  return variable.attribute;
}

void Graph::assign(Variable &variable, Array value) {
  variable.value = std::move(value);
  ++variable.version;
  dropBlob(std::exchange(variable.attribute, {}));
}

Attribute Graph::attributeFor(const AttributeValue &value) {
  Builder b(context.get());
  struct Visitor {
    Graph &graph;
    Builder &b;
    Attribute operator()(int64_t number) { return b.getI64IntegerAttr(number); }
    Attribute operator()(bool flag) { return b.getBoolAttr(flag); }
    Attribute operator()(double number) { return b.getF64FloatAttr(number); }
    Attribute operator()(const std::vector<int64_t> &list) {
      return b.getDenseI64ArrayAttr(list);
    }
    Attribute operator()(const Extents &extents) {
      return b.getDenseI64ArrayAttr(toMlir(extents.list));
    }
    Attribute operator()(DType dtype) {
      return TypeAttr::get(graph.elementType(dtype));
    }
    Attribute operator()(ChannelOrder order) {
      return ktn::DataFormatAttr::get(
          b.getContext(), order.channelsFirst ? ktn::DataFormat::ChannelsFirst
                                              : ktn::DataFormat::ChannelsLast);
    }
    Attribute operator()(Flag) { return b.getUnitAttr(); }
    Attribute operator()(Number number) {
      Type type = graph.elementType(number.dtype);
      if (isa<FloatType>(type))
        return b.getFloatAttr(type, number.value);
      return b.getIntegerAttr(type, static_cast<int64_t>(number.value));
    }
  };
  return std::visit(Visitor{*this, b}, value);
}

Location Graph::locationFor(llvm::StringRef fallback) {
  std::string scope = current_name_scope();
  return NameLoc::get(StringAttr::get(
      context.get(), scope.empty() ? fallback : llvm::StringRef(scope)));
}

std::string Graph::uniqueName(llvm::StringRef name, llvm::StringRef fallback) {
  std::string scope = current_name_scope();
  std::string full = (scope.empty() ? "" : scope + "/") +
                     (name.empty() ? fallback : name).str();
  std::string unique = full;
  // "w_1" may have been the name of somebody else's.
  while (nameCounts.contains(unique))
    unique = full + "_" + std::to_string(++nameCounts[full]);
  nameCounts[unique];
  return unique;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Tensor Graph::wrap(Value value) {
  Tensor tensor;
  tensor.handle = std::make_shared<ValueHandle>(shared_from_this(), value);
  tensor.value = value.getAsOpaquePointer();
  tensor.kind = Tensor::Kind::Value;
  return tensor;
}

Value Graph::valueOf(const Tensor &tensor) {
  return Value::getFromOpaquePointer(tensor.value);
}

Value Graph::checkedValueOf(const Tensor &tensor) {
  Value value = valueOf(tensor);
  if (!llvm::is_contained(blocks, value.getParentBlock()))
    throw Error("a tensor made inside the step of a loop is used outside of "
                "it: return it from the step");
  return value;
}

Value Graph::unwrap(const Tensor &tensor, DType dtype) {
  if (tensor.kind == Tensor::Kind::Value) {
    Value value = checkedValueOf(tensor);
    ControlScope *scope = ControlScope::current(*this);
    return scope ? scope->after(value) : value;
  }
  if (tensor.kind == Tensor::Kind::None)
    throw Error("a tensor is expected here, not None");
  if (!isFloat(dtype) && tensor.literal != std::trunc(tensor.literal))
    throw Error("a tensor of dtype " + std::string(dtypeName(dtype)) +
                " is combined with " + std::to_string(tensor.literal) +
                ": cast it to a float dtype first");
  return valueOf(constant(Array::full({}, tensor.literal, dtype), ""));
}

Tensor Graph::placeholder(const Shape &shape, DType dtype,
                          std::string_view name) {
  std::string unique = uniqueName(llvm::StringRef(name), "placeholder");
  OperationState state(NameLoc::get(StringAttr::get(context.get(), unique)),
                       ktn::PlaceholderOp::getOperationName());
  state.addTypes(typeOf(shape, dtype));
  state.addAttribute("name", StringAttr::get(context.get(), unique));
  return wrap(create(state)->getResult(0));
}

Value Graph::makeVariable(std::shared_ptr<Variable> variable) {
  OperationState state(
      NameLoc::get(StringAttr::get(context.get(), variable->name)),
      ktn::ReadOp::getOperationName());
  state.addTypes(typeOf(variable->value.shape(), variable->value.dtype()));
  state.addAttribute("variable",
                     FlatSymbolRefAttr::get(context.get(), variable->name));
  // A variable outlives the step of a loop that makes it.
  Value read = createAtTop(state)->getResult(0);
  variables[read] = std::move(variable);
  return read;
}

Tensor Graph::variable(const Array &value, std::string_view name) {
  auto variable = std::make_shared<Variable>();
  variable->name = uniqueName(llvm::StringRef(name), "variable");
  variable->value = value;
  return wrap(makeVariable(std::move(variable)));
}

Tensor Graph::randomState(uint64_t key) {
  auto variable = std::make_shared<Variable>();
  variable->name = uniqueName("", "random_state");
  variable->value =
      Array::of<int64_t>({2}, {static_cast<int64_t>(key), int64_t(0)});
  variable->countsCalls = true;
  return inEachStep(wrap(makeVariable(std::move(variable))));
}

Tensor Graph::trainingPhase() {
  if (!phaseValue) {
    OperationState state(locationFor("learning_phase"),
                         ktn::TrainingPhaseOp::getOperationName());
    phaseValue = createAtTop(state)->getResult(0);
  }
  return wrap(phaseValue);
}

Tensor Graph::constant(const Array &value, std::string_view name) {
  llvm::StringRef label = name.empty() ? "constant" : llvm::StringRef(name);
  OperationState state(locationFor(label), ktn::ConstantOp::getOperationName());
  std::string scope = current_name_scope();
  state.addAttribute(
      "value", attributeOf(value, scope.empty() ? label.str()
                                                : (scope + "/" + label).str()));
  return wrap(create(state)->getResult(0));
}

std::shared_ptr<Variable> Graph::findVariable(Value value) const {
  auto found = variables.find(value);
  return found == variables.end() ? nullptr : found->second;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

void Graph::inferTypes(OperationState &state) {
  RegisteredOperationName name = *state.name.getRegisteredInfo();
  auto *interface = name.getInterface<InferTypeOpInterface>();
  assert(interface && "the op tells no types and infers none");
  DictionaryAttr attributes = state.attributes.getDictionary(context.get());

  auto infer = [&](OpaqueProperties properties) {
    if (failed(interface->inferReturnTypes(
            context.get(), state.location, state.operands, attributes,
            properties, state.regions, state.types)))
      state.types.clear();
  };
  int size = name.getOpPropertyByteSize();
  if (size == 0)
    return infer(OpaqueProperties(nullptr));

  // The op does not exist yet, so its properties need a place of their own.
  auto storage = std::make_unique<char[]>(size);
  OpaqueProperties properties(storage.get());
  name.initOpProperties(properties, OpaqueProperties(nullptr));
  llvm::scope_exit destroy([&] { name.destroyOpProperties(properties); });
  name.populateDefaultProperties(properties);
  auto emitError = [&] { return mlir::emitError(state.location); };
  if (succeeded(name.setOpPropertiesFromAttribute(state.name, properties,
                                                  attributes, emitError)))
    infer(properties);
}

Operation *Graph::create(OperationState &state) {
  Diagnostics diagnostics(*context);
  auto error = [&] {
    llvm::StringRef mnemonic = state.name.stripDialect();
    return Error(diagnostics.message("the operands do not fit", mnemonic,
                                     CalledAs::current(mnemonic)));
  };
  // Tensors of a body that becomes no op may be held.
  llvm::scope_exit keepBodies([&] {
    for (std::unique_ptr<Region> &body : state.regions)
      abandoned.push_back(std::move(body));
  });
  if (state.types.empty()) {
    inferTypes(state);
    if (state.types.empty())
      throw error();
    for (Type type : state.types)
      checkShape(shapeOf(cast<RankedTensorType>(type)));
  }
  Operation *op = Operation::create(state);
  blocks.back()->push_back(op);
  if (failed(verify(op, /*verifyRecursively=*/false))) {
    for (auto [body, region] : llvm::zip_equal(state.regions, op->getRegions()))
      body->takeBody(region);
    op->erase();
    throw error();
  }
  keepBodies.release();
  inheritTraits(op);
  if (ControlScope *scope = ControlScope::current(*this))
    scope->noteMade(op);
  return op;
}

Operation *Graph::createAtTop(OperationState &state) {
  std::vector<Block *> inner(std::next(blocks.begin()), blocks.end());
  blocks.resize(1);
  llvm::scope_exit restore(
      [&] { blocks.insert(blocks.end(), inner.begin(), inner.end()); });
  return create(state);
}

/// What the op and its operands are, its results are.
void Graph::inheritTraits(Operation *op) {
  uint8_t found = isa<ktn::TrainingPhaseOp>(op) ? UsesPhase
                  : isa<ktn::AssignOp>(op)      ? Assigns
                                                : 0;
  auto inherit = [&](Operation *from) {
    for (Value operand : from->getOperands())
      found |= traits.lookup(operand);
  };
  inherit(op);
  for (Region &region : op->getRegions())
    for (Block &block : region)
      if (!block.empty())
        inherit(&block.back());
  found &= ~OfLayer;
  if (found)
    for (Value result : op->getResults())
      traits[result] = found;
}

/// The dtype that a number among the operands takes: that of the tensors it is
/// combined with, where conditions (bool) do not count.
static DType literalType(const Tensors &operands) {
  bool bools = false;
  for (const Tensor &operand : operands) {
    if (!operand.id())
      continue;
    DType dtype = backend::dtype(operand);
    if (dtype != DType::Bool)
      return dtype;
    bools = true;
  }
  return bools ? DType::Bool : floatx();
}

Operation *Graph::append(std::string_view mnemonic, const Tensors &operands,
                         const Attributes &attributes, size_t required) {
  DType type = literalType(operands);
  OperationState state(locationFor(llvm::StringRef(mnemonic)),
                       ("ktn." + llvm::StringRef(mnemonic)).str());
  SmallVector<int32_t> segments;
  for (auto [index, operand] : llvm::enumerate(operands)) {
    segments.push_back(operand ? 1 : 0);
    if (operand)
      state.addOperands(unwrap(operand, type));
    else if (index < required)
      throw Error(std::string(CalledAs::current(mnemonic)) + ": operand #" +
                  std::to_string(index) + " is None, not a tensor");
  }
  if (state.name.hasTrait<OpTrait::AttrSizedOperandSegments>())
    state.addAttribute("operandSegmentSizes",
                       DenseI32ArrayAttr::get(context.get(), segments));
  for (const auto &[name, value] : attributes)
    state.addAttribute(llvm::StringRef(name), attributeFor(value));
  return create(state);
}

Tensors Graph::appendGradients(const Tensor &loss, const Tensors &variables) {
  OperationState state(locationFor("gradients"),
                       ktn::GradientsOp::getOperationName());
  // As they are: a loss does not depend on what waits beside it.
  state.addOperands(checkedValueOf(loss));
  for (const Tensor &variable : variables)
    state.addOperands(checkedValueOf(variable));
  state.addAttribute(
      "operandSegmentSizes",
      DenseI32ArrayAttr::get(context.get(),
                             {1, static_cast<int32_t>(variables.size())}));
  ControlScope *scope = ControlScope::current(*this);
  Tensors gradients;
  for (Value gradient : create(state)->getResults())
    gradients.push_back(wrap(scope ? scope->after(gradient) : gradient));
  return gradients;
}

//===----------------------------------------------------------------------===//
// Emit.h
//===----------------------------------------------------------------------===//

Tensor emit(std::string_view mnemonic, const Tensors &operands,
            const Attributes &attributes, size_t required) {
  std::shared_ptr<Graph> graph = Graph::of(operands);
  Graph::Lock lock(graph);
  return graph->wrap(
      graph->append(mnemonic, operands, attributes, required)->getResult(0));
}

int64_t normalizeAxis(int64_t axis, int64_t rank, std::string_view function) {
  if (axis < -rank || axis >= rank)
    throw Error(std::string(CalledAs::current(function)) + ": axis " +
                std::to_string(axis) + " is not in a tensor of " +
                std::to_string(rank) + " axes");
  return axis < 0 ? axis + rank : axis;
}

std::vector<int64_t> normalizeAxes(const Axes &axes, int64_t rank,
                                   std::string_view function) {
  std::vector<int64_t> result;
  if (axes.all())
    for (int64_t axis = 0; axis < rank; ++axis)
      result.push_back(axis);
  for (int64_t axis : axes.values())
    result.push_back(normalizeAxis(axis, rank, function));
  std::sort(result.begin(), result.end());
  auto twice = std::adjacent_find(result.begin(), result.end());
  if (twice != result.end())
    throw Error(std::string(CalledAs::current(function)) + ": axis " +
                std::to_string(*twice) + " is given twice");
  return result;
}

void requireTensor(const Tensor &x, std::string_view function,
                   std::string_view argument) {
  if (!x)
    throw Error(std::string(CalledAs::current(function)) + ": " +
                std::string(argument) + " is None");
}

} // namespace keratin::backend
