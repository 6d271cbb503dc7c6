//===- BufferPlan.h - which tensors share a buffer, and where ---*- C++ -*-===//
#ifndef KERATIN_PASSES_BUFFERPLAN_H
#define KERATIN_PASSES_BUFFERPLAN_H

#include "passes/ArenaLayout.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace keratin {

/// Alignment in bytes of buffers and weights.
inline constexpr int64_t bufferAlignment = 64;

/// Bytes of one element in memory; a bool takes one.
int64_t elementBytes(mlir::Type type);

/// The constant that `tensor` is, seen through reshapes; or null.
mlir::ElementsAttr constantBehind(mlir::Value tensor);

/// The one tensor that a call of a kernel, which takes memrefs, makes where
/// nothing is yet.
std::optional<unsigned> onlyDestination(mlir::func::CallOp call);

/// What a buffer is part of.
enum class Storage { Arena, Weights, Input, Output };

struct Buffer {
  Storage storage = Storage::Arena;
  unsigned index = 0; ///< of the input or output
  BatchSize bytes;
  BatchSize offset;          ///< within its region, but for weights
  mlir::ElementsAttr weight; ///< the elements, of weights
  BufferLife life;
  bool isKept = false; ///< from one run to the next: nothing else is there
  mlir::Block *block = nullptr;     ///< where it is written first
  mlir::Operation *maker = nullptr; ///< what stands before that, if known
  /// How many of it there are, one after the other: for turns of a loop over
  /// bands that are done at the same time.
  int64_t pieces = 1;
  unsigned reads = 0;
  /// The buffer that it lies over, or may lie over, and how many bytes behind
  /// the beginning of that. In a loop over bands it is in the memory of that
  /// buffer, and has none of its own.
  std::optional<unsigned> over = {};
  int64_t bytesBehind = 0;
};

/// Where the elements of a tensor are: in a buffer, `index * stride` bytes
/// after its start for each step.
struct Place {
  unsigned buffer = 0;
  llvm::SmallVector<std::pair<mlir::OpFoldResult, BatchSize>, 2> steps;
  /// Elements from one to the next along each axis; none where that is dense.
  llvm::SmallVector<int64_t> strides;
};

/// Elements that are copied to a place: of a value, from where it is or from
/// where they have been put aside.
struct BufferCopy {
  mlir::Value value;
  Place to;
  std::optional<Place> from;
};

/// Gives each tensor between the kernels of a function, whose kernels take
/// memrefs already, a place: in the arena, among the weights, or in an input or
/// output. Views share the place of what they view; states of a loop have one
/// buffer for all its turns. Turns of a loop over bands (passes/Bands.h) have
/// buffers of their own.
class BufferPlan {
public:
  explicit BufferPlan(mlir::func::FuncOp function) : function(function) {}

  /// Problems are diagnostics.
  llvm::LogicalResult run();

  const Buffer &bufferAt(const Place &place) const {
    return buffers[place.buffer];
  }
  /// Null for constants, which have no place but among the weights.
  const Place *find(mlir::Value value) const {
    auto it = places.find(value);
    return it == places.end() ? nullptr : &it->second;
  }
  /// Copies that must be made just before an operation.
  llvm::ArrayRef<BufferCopy> copiesBefore(mlir::Operation *op) const {
    auto it = copies.find(op);
    return it == copies.end() ? llvm::ArrayRef<BufferCopy>()
                              : llvm::ArrayRef(it->second);
  }
  /// The argument of the function that a result may be written over, or -1: the
  /// one in the result's attribute `ktn.updates`, where nothing reads that once
  /// the result is written.
  llvm::SmallVector<int64_t> inPlace;
  /// Arguments of kernels that are not the only ones to their memory then.
  llvm::SmallVector<std::pair<mlir::func::FuncOp, unsigned>> shared;
  ArenaLayout layout;

private:
  /// A call that may write its destination over what it reads, from so many
  /// bytes behind the beginning of that buffer on.
  struct Behind {
    mlir::func::CallOp call;
    unsigned read, made; ///< operands
    unsigned buffer;     ///< that is made
    int64_t bytes;
  };

  void findInPlace();
  void makeInPlace();
  std::optional<Behind> findBehind(mlir::func::CallOp call, unsigned read);
  void layBehind(llvm::ArrayRef<Behind> found);
  bool isKeptInTurns(unsigned buffer);
  bool isReadLastBy(mlir::func::CallOp call, unsigned buffer);
  std::optional<unsigned> argumentInPlace(mlir::func::CallOp call,
                                          unsigned number);
  bool isInPlace(unsigned result, unsigned argument);
  std::optional<std::pair<mlir::func::CallOp, unsigned>>
  onlyWriter(unsigned buffer, mlir::Block *block);
  bool readsInPlace(mlir::func::CallOp writer, unsigned destination,
                    unsigned old);
  bool goesOnInPlace(mlir::scf::ForOp loop, unsigned number,
                     const Place &state);
  llvm::LogicalResult visit(mlir::Block &block);
  llvm::LogicalResult visit(mlir::Operation *op);
  llvm::LogicalResult visitLoop(mlir::scf::ForOp loop);
  void keepInTurns(mlir::scf::ForOp loop, unsigned begin, unsigned known);
  llvm::FailureOr<Place> destinationOf(mlir::tensor::InsertSliceOp insert);
  bool staysAsItIs(mlir::Value tensor) const;
  llvm::LogicalResult visitInsert(mlir::tensor::InsertSliceOp insert);
  llvm::LogicalResult visitSlice(mlir::tensor::ExtractSliceOp extract);
  llvm::LogicalResult visitMemory(mlir::UnrealizedConversionCastOp cast);
  llvm::LogicalResult visitCall(mlir::func::CallOp call);
  llvm::LogicalResult visitView(mlir::Operation *view);
  llvm::LogicalResult visitReturn(mlir::func::ReturnOp op);

  llvm::FailureOr<unsigned> makeBuffer(mlir::Value tensor);
  llvm::FailureOr<Place> placeOf(mlir::Value tensor);
  llvm::FailureOr<Place> slice(mlir::Operation *op, Place place,
                               mlir::Value whole,
                               llvm::ArrayRef<mlir::OpFoldResult> offsets,
                               llvm::ArrayRef<mlir::OpFoldResult> sizes,
                               llvm::ArrayRef<mlir::OpFoldResult> steps);
  void touch(mlir::Value value);
  void touch(const Place &place);
  llvm::LogicalResult copy(mlir::Operation *before, mlir::Value from,
                           const Place &to);

  mlir::func::FuncOp function;
  llvm::SmallVector<Buffer> buffers;
  llvm::DenseMap<mlir::Value, Place> places;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<BufferCopy, 1>> copies;
  /// Buffers of a block that are used in loops within it live to their end.
  llvm::SmallVector<std::pair<mlir::scf::ForOp, unsigned>> openLoops;
  llvm::DenseMap<mlir::Operation *, llvm::SetVector<unsigned>> usedInLoop;
  llvm::MapVector<mlir::Operation *, unsigned> calls; ///< of kernels, and when
  unsigned now = 0;
};

} // namespace keratin

#endif // KERATIN_PASSES_BUFFERPLAN_H
