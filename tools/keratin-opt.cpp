//===- keratin-opt.cpp - runs passes and stages on IR text ----------------===//
#include "IrText.h"
#include "codegen/cpu/CpuPasses.h"
#include "ir/Ktn.h"
#include "passes/Pipelines.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::registerAllPasses();
  keratin::PipelineOptions options;
  options.emitKernels = keratin::addCpuEmitter;
  keratin::registerPassesAndStages(options);
  keratin::registerCpuPasses();

  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<keratin::ktn::KtnDialect>();
  auto [input, output] = mlir::registerAndParseCLIOptions(
      argc, argv, "Keratin optimizer driver\n", registry);
  if (std::string problem = keratin::findUnparsableFile(input);
      input != "-" && !problem.empty()) {
    llvm::errs() << "error: " << problem << '\n';
    return EXIT_FAILURE;
  }
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, input, output, registry));
}
