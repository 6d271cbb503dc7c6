//===- ElementKernel.cpp - one elementwise operation as machine code ------===//
#include "tests/ulp/ElementKernel.h"

#include "codegen/Compile.h"
#include "codegen/Object.h"
#include "codegen/Target.h"
#include "passes/LowerToLlvm.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;

namespace keratin::test {

struct ElementKernel::Code {
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

static std::string replaceAll(std::string text, llvm::StringRef from,
                              llvm::StringRef to) {
  for (size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

static std::string writeModule(llvm::StringRef body, const KernelForm &form) {
  static constexpr llvm::StringLiteral loop = R"(
    func.func @kernel(%as: memref<?xi8>, %bs: memref<?xi8>, %ys: memref<?xi8>,
                      %n: index) {
      %zero = arith.constant 0 : index
      %step = arith.constant LANES : index
      %am = memref.view %as[%zero][%n] : memref<?xi8> to MEMREF
      %bm = memref.view %bs[%zero][%n] : memref<?xi8> to MEMREF
      %ym = memref.view %ys[%zero][%n] : memref<?xi8> to MEMREF
      scf.for %i = %zero to %n step %step {
        %a = LOAD %am[%i] : MEMREFVECTOR
        %b = LOAD %bm[%i] : MEMREFVECTOR
        BODY
        STORE %y, %ym[%i] : MEMREFVECTOR
      }
      return
    })";
  bool scalar = form.lanes == 0;
  std::string type = scalar ? form.element
                            : "vector<" + std::to_string(form.lanes) + "x" +
                                  form.element + ">";
  std::string text = replaceAll(loop.str(), "BODY", body);
  text = replaceAll(text, "VECTOR", scalar ? "" : ", " + type);
  text = replaceAll(text, "MEMREF", "memref<?x" + form.element + ">");
  text = replaceAll(text, "LOAD", scalar ? "memref.load" : "vector.load");
  text = replaceAll(text, "STORE", scalar ? "memref.store" : "vector.store");
  text = replaceAll(text, "LANES", std::to_string(scalar ? 1 : form.lanes));
  text = replaceAll(text, "ONE", scalar ? "1.0 : TYPE" : "dense<1.0> : TYPE");
  text = replaceAll(text, "ZERO", scalar ? "0.0 : TYPE" : "dense<0.0> : TYPE");
  text = replaceAll(text, "BOOLS",
                    scalar ? "i1" : replaceAll(type, form.element, "i1"));
  return replaceAll(text, "TYPE", type);
}

template <typename T> static T orExit(llvm::Expected<T> value) {
  return llvm::cantFail(std::move(value), "the kernel of a test must compile");
}

static llvm::SmallVector<char, 0> compileObject(llvm::StringRef text,
                                                const KernelForm &form) {
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  PassManager passes(&context);
  Target target = orExit(parseTarget("native", /*optimize=*/true));
  PipelineOptions options;
  options.fma = form.fma;
  options.rounding = form.rounding;
  options.avx512 = form.avx512 && target.fma;
  options.divides = form.divides;
  options.permutes = form.permutes && target.fma;
  addLowerToLlvm(passes, options);
  if (!module || failed(passes.run(*module)))
    llvm::report_fatal_error("the kernel of a test must lower");

  llvm::LLVMContext llvmContext;
  CodeUnits units = splitUnits(std::move(module), "kernel", SIZE_MAX);
  std::unique_ptr<llvm::Module> code =
      orExit(translate(*units.modules[0], units, 0, target, llvmContext));
  optimizeCode(*code, target, Effort::Full);
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::cantFail(
      emitCode(*code, target, llvm::CodeGenFileType::ObjectFile, stream),
      "the kernel of a test must compile");
  return object;
}

ElementKernel::ElementKernel(llvm::StringRef body, const KernelForm &form)
    : code(std::make_unique<Code>()) {
  llvm::SmallVector<char, 0> object =
      compileObject(writeModule(body, form), form);
  // No libm is there to be found: a call of it fails here.
  code->jit = orExit(llvm::orc::LLJITBuilder().create());
  llvm::cantFail(code->jit->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(
      StringRef(object.data(), object.size()), "kernel")));
  function = orExit(code->jit->lookup(unitEntrySymbol))
                 .toPtr<void(const void *, const void *, void *, int64_t)>();
}

ElementKernel::~ElementKernel() = default;

} // namespace keratin::test
