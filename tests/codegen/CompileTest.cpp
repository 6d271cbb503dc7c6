//===- CompileTest.cpp - models compiled and run in process ---------------===//
#include "codegen/Compile.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace keratin;
using testing::ElementsAre;
using testing::HasSubstr;

// y = x W + 1, then its maximum: two outputs, one of another shape.
static const char *affine = R"(
func.func @affine(%x: tensor<?x2xf32> {ktn.name = "x"})
    -> (tensor<?x3xf32> {ktn.name = "y"}, tensor<?xf32> {ktn.name = "top"}) {
  %w = ktn.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %one = ktn.constant dense<1.0> : tensor<f32>
  %xw = ktn.dot_general %x, %w contract [1] x [0] : tensor<?x2xf32>, tensor<2x3xf32> -> tensor<?x3xf32>
  %y = ktn.add %xw, %one : tensor<?x3xf32>, tensor<f32> -> tensor<?x3xf32>
  %top = ktn.max %y, [1] : tensor<?x3xf32> -> tensor<?xf32>
  return %y, %top : tensor<?x3xf32>, tensor<?xf32>
}
)";

namespace {
class Compile : public testing::Test {
protected:
  Compile()
      : context(makeRegistry()),
        handler(&context, [this](mlir::Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
            error = diagnostic.str();
        }) {
    options.name = "affine";
  }

  static mlir::DialectRegistry makeRegistry() {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    return registry;
  }

  std::unique_ptr<CompiledModel> compileText(llvm::StringRef text) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    return module ? compile(std::move(module), options) : nullptr;
  }

  mlir::MLIRContext context;
  std::string error;
  mlir::ScopedDiagnosticHandler handler;
  CompileOptions options;
};

/// What holds at -O0 and at -O2.
class CompileAt : public Compile, public testing::WithParamInterface<bool> {};

/// One call of affine with a batch of 2.
struct Call {
  alignas(KTN_ALIGNMENT) char arena[4096] = {};
  alignas(KTN_ALIGNMENT) float x[4] = {1, 0, 1, 1};
  float y[6] = {}, top[2] = {};

  ktn_status_t operator()(const ktn_model_info_t &info) {
    const void *inputs[] = {x};
    void *outputs[] = {y, top};
    return info.run(info.weights, arena, 2, inputs, outputs);
  }
};
} // namespace

INSTANTIATE_TEST_SUITE_P(Levels, CompileAt, testing::Bool(),
                         [](const auto &info) {
                           return info.param ? "O2" : "O0";
                         });

TEST_P(CompileAt, ComputesInProcess) {
  options.optimize = GetParam();
  std::unique_ptr<CompiledModel> model = compileText(affine);
  ASSERT_TRUE(model) << error;
  const ktn_model_info_t *info = model->load();
  ASSERT_TRUE(info) << error;
  Call call;
  ASSERT_LE(info->arena_bytes[0] + 2 * info->arena_bytes[1], 4096);
  ASSERT_EQ(call(*info), KTN_OK);
  EXPECT_THAT(call.y, ElementsAre(2, 3, 4, 6, 8, 10));
  EXPECT_THAT(call.top, ElementsAre(4, 10));
  EXPECT_EQ(model->load(), info) << "the code is loaded once";
}

TEST_P(CompileAt, DescribesTheModel) {
  options.optimize = GetParam();
  std::unique_ptr<CompiledModel> model = compileText(affine);
  ASSERT_TRUE(model) << error;
  const ktn_model_info_t &info = *model->load();
  EXPECT_EQ(info.abi_version, unsigned(KTN_ABI_VERSION));
  EXPECT_EQ(info.struct_size, sizeof(ktn_model_info_t));
  EXPECT_STREQ(info.name, "affine");
  EXPECT_THAT(info.compiler, HasSubstr("keratin "));
  EXPECT_THAT(info.options, HasSubstr(GetParam() ? "-O2" : "-O0"));
  EXPECT_EQ(info.batch, -1);
  ASSERT_EQ(info.num_inputs, 1);
  EXPECT_STREQ(info.inputs[0].name, "x");
  EXPECT_EQ(info.inputs[0].dtype, KTN_F32);
  EXPECT_EQ(info.inputs[0].rank, 2);
  EXPECT_EQ(info.inputs[0].shape[0], -1);
  EXPECT_EQ(info.inputs[0].shape[1], 2);
  ASSERT_EQ(info.num_outputs, 2);
  EXPECT_STREQ(info.outputs[1].name, "top");
  EXPECT_EQ(info.outputs[1].rank, 1);
  EXPECT_GT(info.num_kernels, 0);
  EXPECT_EQ(info.weights_hash, ktn_hash(info.weights, info.weights_bytes));
  EXPECT_EQ(info.set_profile, nullptr);
}

TEST_P(CompileAt, CallsTheProfileHookAroundEachKernel) {
  options.optimize = GetParam();
  options.profile = true;
  std::unique_ptr<CompiledModel> model = compileText(affine);
  ASSERT_TRUE(model) << error;
  std::vector<std::pair<int, int>> events;
  model->setProfileHook(
      [](void *user, int32_t kernel, int32_t isEnd) {
        static_cast<std::vector<std::pair<int, int>> *>(user)->emplace_back(
            kernel, isEnd);
      },
      &events);
  Call call;
  ASSERT_EQ(call(*model->load()), KTN_OK);
  std::vector<std::pair<int, int>> expected;
  for (int kernel = 0; kernel < model->load()->num_kernels; ++kernel) {
    expected.emplace_back(kernel, 0);
    expected.emplace_back(kernel, 1);
  }
  EXPECT_EQ(events, expected);
  model->setProfileHook(nullptr, nullptr);
  ASSERT_EQ(call(*model->load()), KTN_OK);
  EXPECT_EQ(events, expected);
}

TEST_F(Compile, RefusesBadCallsAndWritesNothing) {
  std::unique_ptr<CompiledModel> model = compileText(affine);
  ASSERT_TRUE(model) << error;
  const ktn_model_info_t &info = *model->load();
  Call call;
  const void *inputs[] = {call.x};
  void *outputs[] = {call.y, nullptr};
  const void *weights = info.weights;
  EXPECT_EQ(info.run(weights, call.arena, 2, inputs, outputs),
            KTN_INVALID_ARGUMENT);
  outputs[1] = call.top;
  EXPECT_EQ(info.run(nullptr, call.arena, 2, inputs, outputs),
            KTN_INVALID_ARGUMENT);
  EXPECT_EQ(info.run(weights, nullptr, 2, inputs, outputs),
            KTN_INVALID_ARGUMENT);
  EXPECT_EQ(info.run(weights, call.arena, 2, nullptr, outputs),
            KTN_INVALID_ARGUMENT);
  EXPECT_EQ(info.run(weights, call.arena + 8, 2, inputs, outputs),
            KTN_ARENA_MISALIGNED);
  EXPECT_EQ(info.run(weights, call.arena, 0, inputs, outputs),
            KTN_BATCH_OUT_OF_RANGE);
  EXPECT_EQ(info.run(weights, call.arena, INT64_MAX, inputs, outputs),
            KTN_BATCH_OUT_OF_RANGE);
  EXPECT_THAT(call.y, ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST_F(Compile, PinsTheShapesThatAreGiven) {
  options.inputShapes = {{2, 2}};
  std::unique_ptr<CompiledModel> model = compileText(affine);
  ASSERT_TRUE(model) << error;
  const ktn_model_info_t &info = *model->load();
  EXPECT_EQ(info.batch, 2);
  EXPECT_EQ(info.inputs[0].shape[0], 2);
  EXPECT_EQ(info.arena_bytes[1], 0);
  Call call;
  EXPECT_EQ(call(info), KTN_OK);
  const void *inputs[] = {call.x};
  void *outputs[] = {call.y, call.top};
  EXPECT_EQ(info.run(info.weights, call.arena, 1, inputs, outputs),
            KTN_BATCH_OUT_OF_RANGE);
}

TEST_F(Compile, RefusesShapesThatDoNotFit) {
  options.inputShapes = {{2, 3}};
  EXPECT_FALSE(compileText(affine));
  EXPECT_NE(error, "");
  options.inputShapes = {{2, 2}, {2, 2}};
  EXPECT_FALSE(compileText(affine));
  EXPECT_THAT(error, HasSubstr("1 inputs, but 2 shapes"));
}

TEST_F(Compile, DoesNotLoadCodeOfOtherMachines) {
#ifdef __x86_64__
  options.target = "aarch64-linux-gnu";
#else
  options.target = "x86-64";
#endif
  std::unique_ptr<CompiledModel> model = compileText(affine);
  ASSERT_TRUE(model) << error;
  EXPECT_EQ(model->load(), nullptr);
  EXPECT_THAT(error, HasSubstr("cannot run in this process"));
}

TEST_F(Compile, WantsAPublicFunction) {
  EXPECT_FALSE(compileText("func.func private @f()"));
  EXPECT_THAT(error, HasSubstr("no public function"));
}

TEST_F(Compile, RefusesBadNamesAndTargets) {
  options.name = "3d";
  EXPECT_FALSE(compileText(affine));
  EXPECT_THAT(error, HasSubstr("not a C identifier"));
  options.name = "affine";
  options.target = "vax";
  EXPECT_FALSE(compileText(affine));
  EXPECT_THAT(error, HasSubstr("unknown target 'vax'"));
}

TEST_F(Compile, ReportsProgress) {
  std::vector<std::string> steps;
  unsigned total = 0;
  options.progress = [&](llvm::StringRef what, unsigned done, unsigned all) {
    EXPECT_LE(done, all);
    steps.push_back(what.str());
    total = all;
  };
  auto model = compileText(affine);
  ASSERT_TRUE(model) << error;
  EXPECT_THAT(steps,
              ElementsAre("core", "layout", "linalg", "kernels", "loops"));
  // LLVM runs when somebody wants what it makes.
  ASSERT_TRUE(model->load()) << error;
  EXPECT_EQ(steps.back(), "generate code");
  EXPECT_EQ(total, steps.size());
}

TEST_F(Compile, ReportsWhatLoopsLacks) {
  EXPECT_FALSE(compileText(R"(module attributes {ktn.stage = "loops"} {
    func.func @f(%w: memref<?xi8>, %a: memref<?xi8>, %b: index) { return }
  })"));
  EXPECT_THAT(error, HasSubstr("needs the attribute 'ktn.weights_bytes'"));
  EXPECT_FALSE(compileText(R"(module attributes {ktn.stage = "llvm"} {
    llvm.func @f() { llvm.return }
  })"));
  EXPECT_THAT(error, HasSubstr("start from the stage loops or before"));
}

TEST(EmitNames, AreReadBack) {
  for (const std::string &name : emitNames())
    EXPECT_TRUE(parseEmit(name)) << name;
  EXPECT_FALSE(parseEmit("elf"));
  EXPECT_EQ(stageOf(Emit::Linalg), Stage::Linalg);
  EXPECT_EQ(stageOf(Emit::Llvm), std::nullopt);
  EXPECT_EQ(stageOf(Emit::So), std::nullopt);
}
