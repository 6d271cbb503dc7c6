//===- FloatProducts.cpp - sums of products of floats ---------------------===//
#include "ir/FloatProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/LinalgInterfaces.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace keratin {

bool isFloatProduct(linalg::GenericOp generic) {
  return generic.getNumDpsInputs() == 2 && generic.getNumDpsInits() == 1 &&
         linalg::detail::isContractionBody(
             *generic.getBlock(), [](Operation *product, Operation *sum) {
               return isa<arith::MulFOp>(product) && isa<arith::AddFOp>(sum);
             });
}

bool onlyWidensFactors(linalg::GenericOp product) {
  return llvm::all_of(
      product.getBody()->without_terminator(), [](Operation &op) {
        return isa<arith::ExtFOp, arith::MulFOp, arith::AddFOp>(op);
      });
}

/// Whether `generic` sums up products of two numbers of a type in f32.
static bool sumsProductsOf(linalg::GenericOp generic,
                           llvm::function_ref<bool(Type)> isOfFactors) {
  return isFloatProduct(generic) && onlyWidensFactors(generic) &&
         getElementTypeOrSelf(generic.getResult(0)).isF32() &&
         llvm::all_of(generic.getDpsInputs(), [&](Value factor) {
           return isOfFactors(getElementTypeOrSelf(factor));
         });
}

bool isProductOfBf16(linalg::GenericOp generic) {
  return sumsProductsOf(generic, [](Type type) { return type.isBF16(); });
}

bool isProductOfF32(linalg::GenericOp generic) {
  return sumsProductsOf(generic, [](Type type) { return type.isF32(); });
}

bool startsFromZero(linalg::GenericOp generic) {
  auto fill = generic.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  return fill && matchPattern(fill.getInputs()[0], m_AnyZeroFloat());
}

} // namespace keratin
