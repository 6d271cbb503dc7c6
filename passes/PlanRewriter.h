//===- PlanRewriter.h - a function on bytes, as planned ---------*- C++ -*-===//
//
// What PlanMemory.cpp (the function) and PlanBands.cpp (its loops over bands)
// share.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_PASSES_PLANREWRITER_H
#define KERATIN_PASSES_PLANREWRITER_H

#include "passes/Bands.h"
#include "passes/BufferPlan.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace keratin {

/// A weight as the artefact stores it.
struct Weight {
  mlir::ElementsAttr value;
  mlir::DictionaryAttr packed;
  BatchSize bytes;
  int64_t offset;
};

/// Writes a function again as calls of kernels on views of bytes: each tensor
/// is where the plan has put it.
class PlanRewriter {
public:
  PlanRewriter(mlir::func::FuncOp function, BufferPlan &plan)
      : old(function), plan(plan), b(function.getContext()) {}

  llvm::LogicalResult run();

private:
  llvm::LogicalResult checkOutputs();
  llvm::LogicalResult emit(mlir::Block &block);
  llvm::LogicalResult emitCall(mlir::func::CallOp call);
  llvm::LogicalResult emitBands(mlir::scf::ForOp loop);
  std::pair<mlir::Value, mlir::Value> beginsAnew(mlir::scf::ForOp loop,
                                                 const BandStart &start);
  llvm::LogicalResult emitStart(mlir::func::CallOp call,
                                mlir::DictionaryAttr fields);
  void moveRows(mlir::Value destination, int64_t count, mlir::Value apart);
  llvm::LogicalResult mapSizes(mlir::scf::ForOp loop);
  void describeLoop(mlir::scf::ForOp loop, mlir::DictionaryAttr fields,
                    llvm::StringRef kind);
  bool canShareRows(mlir::scf::ForOp loop);
  llvm::LogicalResult emitSharedRows(mlir::scf::ForOp loop);
  mlir::func::FuncOp makeFunction(mlir::scf::ForOp loop, llvm::StringRef kind,
                                  mlir::ValueRange arguments);
  llvm::LogicalResult
  fillFunction(mlir::func::FuncOp function, mlir::scf::ForOp loop,
               llvm::function_ref<llvm::LogicalResult(mlir::Block &)> body);
  llvm::LogicalResult emitTurns(mlir::scf::ForOp loop, mlir::Value from,
                                mlir::Value to, mlir::Value step);
  void takeBases(mlir::ValueRange bytes);
  void emitElements(mlir::tensor::FromElementsOp op);
  void emitElement(mlir::tensor::ExtractOp op);
  void emitCopies(mlir::Operation *before);
  mlir::Value rowsOf(const Place &place, BatchSize bytes, mlir::Location loc);
  mlir::Value view(mlir::Value tensor, mlir::MemRefType type,
                   mlir::DictionaryAttr packed, mlir::Location loc);
  mlir::Value viewAt(mlir::Value base, mlir::Value offset,
                     mlir::MemRefType type, llvm::ArrayRef<mlir::Value> sizes,
                     mlir::Location loc);
  mlir::Value bytesOf(const Place &place, BatchSize bytes, mlir::Location loc);
  mlir::Value offsetOf(const Place &place, mlir::Location loc);
  mlir::Value baseOf(const Buffer &buffer);
  mlir::Value materialize(BatchSize size, mlir::Location loc);
  void takePlacedWeights();
  int64_t addWeight(mlir::ElementsAttr value, mlir::DictionaryAttr packed,
                    int64_t bytes);
  void describe(mlir::func::CallOp call);
  void setAttributes(mlir::func::FuncOp function);

  mlir::func::FuncOp old;
  BufferPlan &plan;
  mlir::OpBuilder b;
  mlir::IRMapping scalars;
  mlir::Value weightsBase, arenaBase, batch;
  mlir::Value piece;       ///< of the buffers of a loop over bands
  bool inFunction = false; ///< of a loop
  mlir::Value firstTurn;   ///< of a loop over bands that is done here
  /// Of a loop whose rows threads share: begin, end and count of the parts that
  /// are here, how many rows there are, and from which to which these have.
  llvm::SmallVector<mlir::Value> part;
  int64_t sharedRows = 0;
  mlir::Value firstRow, lastRow;
  llvm::SmallVector<mlir::Value> inputBases, outputBases;
  llvm::MapVector<std::pair<mlir::Attribute, mlir::Attribute>, Weight> weights;
  int64_t weightsBytes = 0;
  llvm::SmallVector<mlir::Attribute> rows;
};

} // namespace keratin

#endif // KERATIN_PASSES_PLANREWRITER_H
