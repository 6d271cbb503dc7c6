//===- Rebuild.cpp - an op again, on other operands -----------------------===//
#include "passes/Rebuild.h"

#include "mlir/Interfaces/InferTypeOpInterface.h"

using namespace mlir;

namespace keratin {

FailureOr<Operation *> rebuild(OpBuilder &b, Operation *op, ValueRange operands,
                               ArrayRef<NamedAttribute> attributes) {
  auto inferable = op->getName().getInterface<InferTypeOpInterface>();
  if (!inferable)
    return failure();
  NamedAttrList list(op->getAttrs());
  for (NamedAttribute attribute : attributes)
    list.set(attribute.getName(), attribute.getValue());

  Operation *copy = op->clone(Operation::CloneOptions().cloneRegions(false));
  copy->setOperands(operands);
  copy->setAttrs(list);
  SmallVector<Type> types;
  // No location: what does not fit is no error, the op just stays as it is.
  if (failed(inferable->inferReturnTypes(
          op->getContext(), std::nullopt, copy->getOperands(),
          copy->getDiscardableAttrDictionary(), copy->getPropertiesStorage(),
          copy->getRegions(), types))) {
    copy->destroy();
    return failure();
  }
  for (auto [result, type] : llvm::zip_equal(copy->getResults(), types))
    result.setType(type);
  b.insert(copy);
  return copy;
}

} // namespace keratin
