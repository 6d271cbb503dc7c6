//===- IrFile.cpp - models that are IR dumps ------------------------------===//
#include "IrFile.h"

#include "IrText.h"
#include "codegen/Compile.h"
#include "frontend/KernelInfo.h"
#include "frontend/Settings.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

namespace keratin {

struct IrFile::Impl {
  explicit Impl(const std::string &path);

  /// Throws the collected errors, `fallback` when there is none.
  [[noreturn]] void fail(const std::string &fallback) {
    std::string text;
    for (const std::string &error : errors)
      text += (text.empty() ? "" : "\n") + error;
    throw Error(text.empty() ? fallback : text);
  }

  std::vector<std::vector<int64_t>> inputShapes(const NamedShapes &named,
                                                int64_t batch);

  mlir::MLIRContext context;
  std::vector<std::string> errors;
  mlir::ScopedDiagnosticHandler handler;
  std::string path;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

static mlir::DialectRegistry makeRegistry() {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  return registry;
}

/// "file:3:5: message; note" in one line.
static std::string oneLine(const mlir::Diagnostic &diagnostic) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (auto place =
          llvm::dyn_cast<mlir::FileLineColLoc>(diagnostic.getLocation()))
    os << place.getFilename().getValue() << ':' << place.getLine() << ':'
       << place.getColumn() << ": ";
  os << diagnostic;
  for (const mlir::Diagnostic &note : diagnostic.getNotes())
    os << "; " << note;
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

IrFile::Impl::Impl(const std::string &path)
    : context(makeRegistry()),
      handler(&context,
              [this](mlir::Diagnostic &diagnostic) {
                if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
                  errors.push_back(oneLine(diagnostic));
              }),
      path(path) {
  context.printOpOnDiagnostic(false);
  if (std::string problem = findUnparsableFile(path); !problem.empty())
    throw Error(problem);
  module = mlir::parseSourceFile<mlir::ModuleOp>(path, &context);
  if (!module)
    fail(path + ": cannot be read as IR");
}

/// The shapes of all arguments: from `named`, leading `?` from `batch`.
std::vector<std::vector<int64_t>>
IrFile::Impl::inputShapes(const NamedShapes &named, int64_t batch) {
  std::vector<std::vector<int64_t>> shapes;
  if (stageOf(*module) != Stage::Graph) {
    if (!named.empty() || batch >= 0)
      throw Error(path + ": shapes and batch are already fixed at the stage " +
                  stageName(stageOf(*module)).str());
    return shapes;
  }
  size_t used = 0;
  for (auto function : module->getOps<mlir::func::FuncOp>()) {
    if (function.isPrivate() || function.isDeclaration())
      continue;
    for (unsigned index = 0; index < function.getNumArguments(); ++index) {
      auto type = llvm::dyn_cast<mlir::RankedTensorType>(
          function.getArgument(index).getType());
      if (!type)
        throw Error(path + ": input " + std::to_string(index) +
                    " is no ranked tensor");
      auto name =
          function.getArgAttrOfType<mlir::StringAttr>(index, "ktn.name");
      auto given = named.find(name ? name.str() : "");
      if (given != named.end()) {
        shapes.push_back(given->second);
        if (!shapes.back().empty() && shapes.back()[0] < 0)
          shapes.back()[0] = batch;
        ++used;
        continue;
      }
      std::vector<int64_t> shape(type.getShape());
      for (int64_t &extent : shape)
        if (mlir::ShapedType::isDynamic(extent))
          extent = -1;
      if (!shape.empty() && shape[0] < 0)
        shape[0] = batch;
      shapes.push_back(std::move(shape));
    }
  }
  if (used != named.size())
    throw Error(path +
                ": --input-shape names an input that the function has not");
  return shapes;
}

IrFile::IrFile(const std::string &path) : impl(new Impl(path)) {}
IrFile::~IrFile() = default;

std::vector<backend::KernelInfo>
IrFile::save(const std::string &prefix, const backend::SaveOptions &options,
             const NamedShapes &shapes) {
  CompileOptions compile = backend::compileOptions(options, prefix, "model");
  compile.inputShapes = impl->inputShapes(shapes, options.batch);
  std::optional<Emit> emit = parseEmit(options.emit);
  if (!emit)
    throw Error("unknown product '" + options.emit + "'");
  if (std::optional<Stage> stage = stageOf(*emit)) {
    if (failed(runPipeline(*impl->module, *stage, compile)) ||
        failed(writeIr(*impl->module, prefix, /*withWeights=*/true)))
      impl->fail(impl->path + ": could not be lowered");
    return {};
  }
  std::unique_ptr<CompiledModel> model =
      keratin::compile(std::move(impl->module), compile);
  if (!model || failed(model->write(*emit, prefix)))
    impl->fail(impl->path + ": could not be compiled");
  return backend::kernelsOf(*model);
}

} // namespace keratin
