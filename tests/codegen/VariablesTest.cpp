//===- VariablesTest.cpp - what becomes of variables and functions --------===//
#include "codegen/Variables.h"

#include "codegen/Compile.h"

#include "mlir/Parser/Parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace keratin;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

class Variables : public testing::Test {
protected:
  Variables()
      : context(makeRegistry()), handler(&context, [&](mlir::Diagnostic &d) {
          error += d.str();
          return mlir::success();
        }) {}

  static mlir::DialectRegistry makeRegistry() {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    return registry;
  }

  llvm::FailureOr<SplitModule> split(llvm::StringRef text) {
    context.loadAllAvailableDialects();
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    if (!module)
      return llvm::failure();
    return splitModule(std::move(module));
  }

  /// Why the text is refused; empty when it is not.
  std::string refusal(llvm::StringRef text) {
    error.clear();
    return llvm::failed(split(text)) ? error : "";
  }

  mlir::MLIRContext context;
  std::string error;
  mlir::ScopedDiagnosticHandler handler;
};

constexpr llvm::StringLiteral counter = R"mlir(
ktn.variable @n : tensor<i64> = dense<0> : tensor<i64>
ktn.variable @by : tensor<i64> = dense<2> : tensor<i64>
func.func @value() -> tensor<i64> {
  %n = ktn.read @n : tensor<i64>
  return %n : tensor<i64>
}
func.func @step(%x: tensor<i64>) -> tensor<i64> {
  %n = ktn.read @n : tensor<i64>
  %by = ktn.read @by : tensor<i64>
  %m = ktn.add %n, %by : tensor<i64>, tensor<i64> -> tensor<i64>
  %new = ktn.assign @n, %m : tensor<i64>
  %again = ktn.read @n : tensor<i64>
  %y = ktn.add %again, %x : tensor<i64>, tensor<i64> -> tensor<i64>
  return %y : tensor<i64>
})mlir";

TEST_F(Variables, AreTheLastArgumentsAndResults) {
  llvm::FailureOr<SplitModule> result = split(counter);
  ASSERT_TRUE(llvm::succeeded(result)) << error;
  ASSERT_EQ(result->variables.size(), 1u)
      << "what nobody assigns is a constant";
  EXPECT_EQ(result->variables[0].name, "n");
  ASSERT_EQ(result->parts.size(), 2u);
  EXPECT_EQ(result->parts[0].entry, "value");
  EXPECT_THAT(result->parts[0].inputState, ElementsAre(0));
  EXPECT_THAT(result->parts[0].outputState, ElementsAre(-1));
  EXPECT_EQ(result->parts[1].entry, "step");
  EXPECT_THAT(result->parts[1].inputState, ElementsAre(-1, 0));
  EXPECT_THAT(result->parts[1].outputState, ElementsAre(-1, 0));
}

TEST_F(Variables, GiveTheValueOfWhereTheyAreRead) {
  llvm::FailureOr<SplitModule> result = split(counter);
  ASSERT_TRUE(llvm::succeeded(result)) << error;
  auto step = *result->parts[1].module->getOps<mlir::func::FuncOp>().begin();
  auto exit = mlir::cast<mlir::func::ReturnOp>(step.front().getTerminator());
  mlir::Operation *y = exit.getOperand(0).getDefiningOp();
  EXPECT_EQ(y->getOperand(0), exit.getOperand(1))
      << "read after it is assigned";
}

TEST_F(Variables, OfOneFunctionThatAssignsNoneAreConstants) {
  llvm::FailureOr<SplitModule> result = split(R"mlir(
    ktn.variable @w : tensor<2xf32> = dense<1.0> : tensor<2xf32>
    func.func @f() -> tensor<2xf32> {
      %w = ktn.read @w : tensor<2xf32>
      return %w : tensor<2xf32>
    })mlir");
  ASSERT_TRUE(llvm::succeeded(result)) << error;
  EXPECT_TRUE(result->variables.empty());
  ASSERT_EQ(result->parts.size(), 1u);
  EXPECT_EQ(result->parts[0].entry, "predict");
}

TEST_F(Variables, ChangeOutsideOfRegionsOnly) {
  EXPECT_THAT(refusal(R"mlir(
    ktn.variable @n : tensor<i64> = dense<0> : tensor<i64>
    func.func @step(%x: tensor<i64>) -> tensor<i64> {
      %y = ktn.scan () init (%s = %x : tensor<i64>) length 5 {
        %a = ktn.assign @n, %s : tensor<i64>
        ktn.yield %a : tensor<i64>
      } -> tensor<i64>
      return %y : tensor<i64>
    })mlir"),
              HasSubstr("variable 'n' is used in a region of function 'step'"));
}

TEST_F(Variables, ChangeInOneBlock) {
  EXPECT_THAT(refusal(R"mlir(
    ktn.variable @n : tensor<i64> = dense<0> : tensor<i64>
    func.func @step(%x: tensor<i64>) -> tensor<i64> {
      %y = ktn.assign @n, %x : tensor<i64>
      cf.br ^exit
    ^exit:
      return %y : tensor<i64>
    })mlir"),
              HasSubstr("assigns variables has one block, which returns"));
}

TEST_F(Variables, LeaveTheNamesOfEveryModelAlone) {
  for (std::string name : {"init", "create", "state_export", "predict_run"})
    EXPECT_THAT(refusal(R"mlir(
      ktn.variable @n : tensor<i64> = dense<0> : tensor<i64>
      func.func @)mlir" +
                        name + R"mlir((%x: tensor<i64>) {
        %y = ktn.assign @n, %x : tensor<i64>
        return
      })mlir"),
                HasSubstr("the function name '" + name + "' is one that"));
}

} // namespace
