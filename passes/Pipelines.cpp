//===- Pipelines.cpp - the story of a compilation -------------------------===//
#include "passes/Pipelines.h"

#include "passes/Passes.h"

using namespace mlir;

namespace keratin {

static constexpr llvm::StringLiteral stageNames[] = {
    "graph", "core", "layout", "linalg", "kernels", "loops", "llvm"};

llvm::StringRef stageName(Stage stage) {
  return stageNames[static_cast<unsigned>(stage)];
}

std::optional<Stage> parseStage(llvm::StringRef name) {
  for (auto [index, known] : llvm::enumerate(stageNames))
    if (name == known)
      return static_cast<Stage>(index);
  return std::nullopt;
}

void buildPipeline(OpPassManager &pm, Stage from, Stage to,
                   const PipelineOptions &options) {}

void registerPassesAndStages() { }

} // namespace keratin
