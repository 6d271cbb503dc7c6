//===- WeightsTest.cpp - constants as bytes -------------------------------===//
#include "codegen/Weights.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace keratin;
using namespace mlir;

namespace {
class CopyElements : public testing::Test {
protected:
  RankedTensorType tensor(ArrayRef<int64_t> shape, Type element) {
    return RankedTensorType::get(shape, element);
  }

  template <typename T>
  std::vector<T> copy(ElementsAttr elements, size_t count) {
    std::vector<T> values(count);
    EXPECT_TRUE(succeeded(copyElements(
        elements, MutableArrayRef(reinterpret_cast<char *>(values.data()),
                                  count * sizeof(T)))));
    return values;
  }

  MLIRContext context;
  Builder b{&context};
};
} // namespace

TEST_F(CopyElements, CopiesDenseValues) {
  auto elements = DenseElementsAttr::get(tensor({2, 2}, b.getF32Type()),
                                         ArrayRef<float>{1, 2, 3, 4});
  EXPECT_EQ(copy<float>(elements, 4), (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(CopyElements, RepeatsSplats) {
  auto elements =
      DenseElementsAttr::get(tensor({3}, b.getI64Type()), int64_t(7));
  EXPECT_EQ(copy<int64_t>(elements, 3), (std::vector<int64_t>{7, 7, 7}));
}

TEST_F(CopyElements, GivesABoolAByte) {
  SmallVector<bool> values = {true,  false, true,  true, false,
                              false, true,  false, true};
  auto elements = DenseElementsAttr::get(tensor({9}, b.getI1Type()), values);
  EXPECT_EQ(copy<char>(elements, 9),
            (std::vector<char>{1, 0, 1, 1, 0, 0, 1, 0, 1}));
  auto splat = DenseElementsAttr::get(tensor({2}, b.getI1Type()), true);
  EXPECT_EQ(copy<char>(splat, 2), (std::vector<char>{1, 1}));
}

TEST_F(CopyElements, CopiesResources) {
  std::vector<float> values = {1, 2, 3};
  auto elements = DenseResourceElementsAttr::get(
      tensor({3}, b.getF32Type()), "w",
      HeapAsmResourceBlob::allocateAndCopyInferAlign(ArrayRef<float>(values)));
  EXPECT_EQ(copy<float>(elements, 3), values);
}

/// The weights of a function that wants a constant in blocks; null if refused.
static std::unique_ptr<llvm::WritableMemoryBuffer>
collectPacked(MLIRContext &context, int64_t block, const std::string &more = "",
              const std::string &type = "tensor<2x4xf32>") {
  context.loadDialect<func::FuncDialect>();
  std::string text = "func.func @f() attributes {ktn.weights = [{offset = 0, "
                     "bytes = 64, value = dense<1.0> : " +
                     type + ", packed = {dim = 1, type = " + type +
                     ", block = " + std::to_string(block) + more +
                     "}}]} { return }";
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) {});
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(text, ParserConfig(&context));
  return collectWeights(*module->getOps<func::FuncOp>().begin(), 64);
}

// A block of 8 columns of 2 rows is 64 bytes; so is, counted in 64 bits, one of
// 2^61 + 8.
TEST_F(CopyElements, PacksIntoBlocksThatFit) {
  EXPECT_TRUE(collectPacked(context, 8));
  EXPECT_FALSE(collectPacked(context, (int64_t(1) << 61) + 8));
  EXPECT_FALSE(collectPacked(context, 0));
}

TEST_F(CopyElements, InterleavesBlocksThatHaveHalves) {
  EXPECT_TRUE(collectPacked(context, 8, ", interleaved"));
  EXPECT_TRUE(collectPacked(context, 1, "", "tensor<16x1xf32>"));
  EXPECT_FALSE(collectPacked(context, 1, ", interleaved", "tensor<16x1xf32>"));
}

/// Whether a constant of `type`, a matrix, is packed as integers of 24 bits
/// into 448 bytes: those of one step of a block, or of none and its scales.
static bool collects24(MLIRContext &context, const std::string &type,
                       const std::string &roles) {
  context.loadDialect<func::FuncDialect>();
  std::string text = "func.func @f() attributes {ktn.weights = [{offset = 0, "
                     "bytes = 448, value = dense<1.0> : " +
                     type + ", packed = {type = " + type + ", " + roles +
                     "}}]} { return }";
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) {});
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(text, ParserConfig(&context));
  return bool(collectWeights(*module->getOps<func::FuncOp>().begin(), 448));
}

// 2^60 steps are, counted in 64 bits, none.
TEST_F(CopyElements, Packs24BitsIntoBlocksThatFit) {
  auto roles = [](const std::string &columns, const std::string &sums) {
    return "columns24 = " + columns + ", outer = array<i64>, sums = array<i64" +
           sums + ">";
  };
  EXPECT_TRUE(collects24(context, "tensor<1x9xf32>", roles("1", ": 0")));
  EXPECT_FALSE(collects24(context, "tensor<1x9xf32>", roles("2", ": 0")));
  EXPECT_FALSE(collects24(context, "tensor<1x9xf32>", roles("-1", ": 0")));
  EXPECT_FALSE(collects24(context, "tensor<1x9xf32>", roles("1", "")));
  EXPECT_FALSE(collects24(context, "tensor<1x9xf32>", roles("1", ": 0, 0")));
  EXPECT_FALSE(collects24(context, "tensor<1x9xf64>", roles("1", ": 0")));
  EXPECT_FALSE(collects24(context, "tensor<0x9xf32>", roles("1", ": 0")));
  EXPECT_FALSE(collects24(context, "tensor<1152921504606846977x1xf32>",
                          roles("1", ": 0")));
}

/// Two weights of a function at these offsets, of 8 bytes each, in 256.
static std::string collectTwo(MLIRContext &context, int first, int second,
                              unsigned &done) {
  context.loadDialect<func::FuncDialect>();
  auto row = [](int offset, const char *value) {
    return "{offset = " + std::to_string(offset) +
           ", bytes = 8, value = dense<" + value + "> : tensor<8xi8>}";
  };
  std::string text = "func.func @f() attributes {ktn.weights = [" +
                     row(first, "97") + ", " + row(second, "98") +
                     "]} { return }";
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(text, ParserConfig(&context));
  auto bytes = collectWeights(*module->getOps<func::FuncOp>().begin(), 256,
                              [&](ElementsAttr) { ++done; });
  return std::string(bytes->getBufferStart(), bytes->getBufferSize());
}

TEST_F(CopyElements, LeavesZerosBetweenWeightsInAnyOrder) {
  unsigned done = 0;
  std::string expected(256, '\0');
  expected.replace(64, 8, std::string(8, 'a'));
  expected.replace(192, 8, std::string(8, 'b'));
  EXPECT_EQ(collectTwo(context, 64, 192, done), expected);
  expected.replace(64, 8, std::string(8, 'b'));
  expected.replace(192, 8, std::string(8, 'a'));
  EXPECT_EQ(collectTwo(context, 192, 64, done), expected);
  EXPECT_EQ(done, 4u);
}

TEST_F(CopyElements, RefusesOtherSizes) {
  auto elements = DenseElementsAttr::get(tensor({2}, b.getF32Type()), 1.0f);
  std::vector<char> bytes(12);
  EXPECT_TRUE(failed(copyElements(elements, bytes)));
}
