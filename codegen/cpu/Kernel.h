//===- Kernel.h - a kernel on its way from tensors to memrefs ---*- C++ -*-===//
//
// What both emitters share: the new function, which memref stands for which
// tensor, and how large things are.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CODEGEN_CPU_KERNEL_H
#define KERATIN_CODEGEN_CPU_KERNEL_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"

#include <map>

namespace keratin {

struct Packing;
struct PairPacking;
struct Packing24;
struct PairedPacking;

/// The name of the attribute that makes a function a kernel.
inline constexpr llvm::StringLiteral kernelAttr = "ktn.kernel";

/// The kernels of `module`, in order.
llvm::SmallVector<mlir::func::FuncOp> kernelsOf(mlir::ModuleOp module);

/// A kernel being rewritten: `from` on tensors, `to` on memrefs. `to` starts
/// with an empty body and takes the place of `from` in `finish`.
class Kernel {
public:
  explicit Kernel(mlir::func::FuncOp from);

  /// The kernel's name for error messages and its place for diagnostics.
  mlir::func::FuncOp from() const { return source; }
  mlir::func::FuncOp to() const { return target; }
  mlir::OpBuilder &builder() { return b; }
  mlir::Location loc() const { return location; }

  /// The values that the kernel returns, in order.
  mlir::ValueRange results();
  /// The memref that result `index` is written to.
  mlir::Value destination(unsigned index);

  /// The memref that holds `tensor`: an argument, or a view of one. Null when
  /// the tensor is computed by the kernel.
  mlir::Value memrefOf(mlir::Value tensor);
  /// Makes `memref` the place of `tensor` from here on.
  void setMemref(mlir::Value tensor, mlir::Value memref);

  /// The value outside of linalg bodies that stands for `value` of `from`: a
  /// constant or arithmetic on sizes.
  mlir::Value scalar(mlir::Value value);
  /// An index constant at the top of the function.
  mlir::Value index(int64_t value);
  /// The sum, the product, the quotient, or the rest, of two indices, and the
  /// smaller one: without an operation where what is known of them tells the
  /// result.
  mlir::Value plus(mlir::Value left, mlir::Value right);
  mlir::Value times(mlir::Value left, mlir::Value right);
  mlir::Value times(mlir::Value value, int64_t factor);
  mlir::Value over(mlir::Value value, mlir::Value divisor, bool rest);
  mlir::Value least(mlir::Value left, mlir::Value right);
  /// Extent of dimension `dim` of `tensor`, wherever it comes from.
  mlir::Value extent(mlir::Value tensor, int64_t dim);
  /// Extent of dimension `dim` of the iteration space of `op`.
  mlir::Value loopExtent(mlir::linalg::GenericOp op, unsigned dim);

  /// Lets a call of the kernel do a part of its work: the function gets the
  /// last arguments `begin`, `end` and `count`, and a call does the parts
  /// begin..end-1 of count. To be called before anything is emitted.
  void allowParts();
  bool hasParts() const { return inParts; }
  /// Notes that threads share the columns, the last axis, of what argument
  /// `number` holds when it is written; and whether that is so of the argument
  /// that `tensor` is, or is a padded form of.
  void setSharedColumns(unsigned number) { sharedColumns.insert(number); }
  bool hasSharedColumns(mlir::Value tensor) const;
  /// Which of nested loops to share among calls: the outermost that has turns
  /// for many, or the one with most. `turns` are ShapedType::kDynamic where
  /// they are not known. Null when there is nothing to share, or no parts.
  std::optional<unsigned> pickShared(llvm::ArrayRef<int64_t> turns) const;
  /// The share that a call has of a loop over `extent`: where it starts and
  /// where it ends. Only the last ends elsewhere than at a multiple of `step`,
  /// whatever the number of parts. Without parts it is all of the loop.
  std::pair<mlir::Value, mlir::Value> share(mlir::Value extent, int64_t step);
  /// Lets the `parts` of the kernel be shares of the rows, axis 0, of all
  /// results, so that it meets in a part no row that another kernel with such
  /// parts has made in another one. They begin at multiples of `unit`. To
  /// be called in place of `allowParts`; emitters that share anything else, or
  /// have memory of their own, are not stopped (see `sharesRows`).
  void allowRows(int64_t rows, int64_t parts, int64_t unit);
  static constexpr int64_t rowsAtOnce = 4;
  /// How many rows there are to share; 0 where that was not asked for.
  int64_t sharedRows() const { return rowsToShare; }
  int64_t unitOfRows() const { return rowsOfUnit; }
  /// The rows that a call has, and how many those may be, in order.
  std::pair<mlir::Value, mlir::Value> shareRows();
  llvm::SmallVector<int64_t> rowsOfCalls() const;
  /// Whether what has been emitted is shared by rows alone.
  bool sharesRows() const { return sharesByRows && !sharesOtherwise; }

  /// Splits the work of a kernel in parts into `count` turns, each in at most
  /// `parts`: none begins before all parts of the one before are done. The
  /// function gets the argument `turn` before `begin`: the only turn to do,
  /// from 1 on, or 0 for one after the other, by a call that does all parts. To
  /// be called once, after `addScratch`.
  void allowTurns(int64_t count, int64_t parts);
  /// Whether this call does all turns, as an i1, or only that of the number.
  mlir::Value doesAllTurns();
  mlir::Value isTurn(int64_t number);
  /// Emits what is done in turn `number`.
  void emitTurn(int64_t number, llvm::function_ref<void()> body);
  /// Emits what cannot be shared, for one call alone to do: the one that does
  /// the last part, or the first.
  void emitOnce(llvm::function_ref<void()> body, bool first = false);

  /// Wants argument `number` packed.
  void setPackedArgument(unsigned number, const Packing &packing);
  void setPackedArgument(unsigned number, const PairPacking &packing);
  void setPackedArgument(unsigned number, const Packing24 &packing);
  void setPackedArgument(unsigned number, const PairedPacking &packing);
  /// Wants argument `number` as `type`, in the order that `packing` tells.
  void setPackedArgument(unsigned number, mlir::MemRefType type,
                         mlir::DictionaryAttr packing);

  /// Tells of the constants that argument `number` is in all calls; and those
  /// that `tensor` is, none where it is no such argument, or that is not known.
  void setValues(unsigned number, llvm::ArrayRef<mlir::ElementsAttr> values) {
    valuesOfArguments[number].assign(values.begin(), values.end());
  }
  llvm::ArrayRef<mlir::ElementsAttr> valuesOf(mlir::Value tensor);

  /// Memory of the arena for each call alone: `count` elements of `type`, whose
  /// values mean nothing before the call. There is a piece for each part, so
  /// that no call waits for one, and the kernel is done in at most `parts`. To
  /// be called once. Returns a memref of one dimension and where in it the
  /// piece of this call begins. Where it `stays`, kernels of a function that
  /// ask for as much have the same memory: a thread finds what it wrote before
  /// in its own cache.
  std::pair<mlir::Value, mlir::Value>
  addScratch(mlir::Type type, int64_t count, int64_t parts, bool stays = false);

  /// The same, but one piece for all calls, each of which writes what it reads
  /// to a place of its own.
  mlir::Value addSharedScratch(mlir::Type type, int64_t count);

  /// Whether a call is to go through its work from the end to the beginning, as
  /// an i1: in turns, so that it begins with what the call before it left in
  /// the cache. A byte of the arena tells, whatever is in it at first. Calls of
  /// some of the parts go forth. To be called once, where a call comes by once.
  mlir::Value goesBack();

  /// Tells of weights of a later kernel that this one has time to ask for: so
  /// many bytes from `from` on, or none. And takes them as an argument, whose
  /// type is told later. To be called once.
  void allowAsking(int64_t from, int64_t bytes) {
    firstToAsk = from;
    bytesToAsk = bytes;
  }
  int64_t firstAhead() const { return firstToAsk; }
  int64_t bytesAhead() const { return bytesToAsk; }
  mlir::Value addWeightsAhead();

  /// Ends the new body and puts the function in the place of the old one.
  mlir::func::FuncOp finish();
  /// Forgets all that was emitted and starts again with an empty body.
  void restart();
  /// Gives up the new function.
  void discard() { target.erase(); }

private:
  void start();
  std::pair<mlir::Value, mlir::Value> shareTurns(mlir::Value extent,
                                                 int64_t step);

  mlir::func::FuncOp source, target;
  mlir::OpBuilder b;
  mlir::Location location;
  llvm::DenseMap<mlir::Value, mlir::Value> memrefs;
  mlir::IRMapping scalars;
  std::map<int64_t, mlir::Value> constants;    ///< a DenseMap lacks two keys
  llvm::SmallDenseSet<unsigned> sharedColumns; ///< numbers of arguments
  std::map<unsigned, llvm::SmallVector<mlir::ElementsAttr>> valuesOfArguments;
  bool inParts = false;
  int64_t mostParts = 1; ///< that are not empty
  int64_t enoughParts = 0;
  bool takesPiece = false; ///< of scratch memory
  int64_t turns = 1;
  int64_t rowsToShare = 0, partsOfRows = 0, rowsOfUnit = rowsAtOnce;
  bool sharesByRows = false, sharesOtherwise = false;
  int64_t firstToAsk = 0, bytesToAsk = 0;
};

/// The attribute of an argument that is memory for the call to work in. A
/// kernel in parts has the number of the piece to take as the argument behind
/// it, and a mark for LLVM IR.
inline constexpr llvm::StringLiteral scratchAttr = "ktn.scratch";
inline constexpr llvm::StringLiteral staysAttr = "ktn.stays";
inline constexpr llvm::StringLiteral sharedScratchAttr = "ktn.shared_scratch";
inline constexpr llvm::StringLiteral pieceMark = "ktn-piece";

/// The attribute of the argument that tells the turn to do, and the number of
/// turns in LLVM IR.
inline constexpr llvm::StringLiteral turnAttr = "ktn.turn";
inline constexpr llvm::StringLiteral turnsMark = "ktn-turns";

/// The attribute of an argument that is memory in which a call leaves something
/// for the next one, if that gets the same arena; and of the tensor for it.
inline constexpr llvm::StringLiteral keptAttr = "ktn.kept";

/// The attribute of an argument that the kernel does not read, but asks for:
/// weights of a later kernel (codegen/cpu/WeightsAhead).
inline constexpr llvm::StringLiteral aheadAttr = "ktn.ahead";

/// Attributes of a kernel that can be done in parts: how many are worth it, and
/// the same to be found in LLVM IR.
inline constexpr llvm::StringLiteral partsAttr = "ktn.parts";
inline constexpr llvm::StringLiteral partsMark = "ktn-parts";

/// The attribute of a kernel whose parts are shares of the columns, the last
/// axis, of its first result.
inline constexpr llvm::StringLiteral columnsAttr = "ktn.shares_columns";

/// The attribute of a loop whose rows threads share (passes/Bands.h).
inline constexpr llvm::StringLiteral sharedRowsAttr = "ktn.shared_rows";

/// Whether the position of an output element tells the parallel loops, so that
/// every element is computed exactly once.
bool tellsItsLoops(mlir::linalg::GenericOp op);

/// Static extent of dimension `dim` of the iteration space of `op`, or
/// ShapedType::kDynamic.
int64_t staticLoopExtent(mlir::linalg::GenericOp op, unsigned dim);

/// The number that takes the place of `number`, from `from` to before `to`,
/// when those are gone through from the last to the first, if `back` says so.
mlir::Value mirrored(Kernel &kernel, mlir::Value number, mlir::Value from,
                     mlir::Value to, mlir::Value back);

/// What fetches ahead by itself does so within a page, and for each run of
/// memory alone: what comes from memory arrives half as fast again in this many
/// runs as in one. Where each vector of weights is multiplied with more rows
/// than `rowsOfRuns`, one run is fast enough and costs less.
inline constexpr int64_t runsAtOnce = 8, rowsOfRuns = 32;

/// The `number`th of `count` things when `runs` equal parts of them, of which
/// there are `count / runs` each, are gone through side by side.
mlir::Value sideBySide(Kernel &kernel, mlir::Value number, int64_t count,
                       int64_t runs);

/// An index that is `value`, of which the compiler does not know that.
mlir::Value hidden(Kernel &kernel, mlir::Value value);

/// What the compiler has in vector registers of an x86-64 without AVX-512 is in
/// memory here, or made again behind this.
void freeRegisters(Kernel &kernel);

/// The elements of `value` in memory, or one that all are; empty where they are
/// not there.
llvm::ArrayRef<char> bytesOfElements(mlir::ElementsAttr value);

/// Emits `for iv = from to to step step` around `body`, which gets the iv and
/// the carried values and returns the next ones. Returns the last ones.
llvm::SmallVector<mlir::Value>
emitLoop(mlir::OpBuilder &b, mlir::Location loc, mlir::Value from,
         mlir::Value to, mlir::Value step, mlir::ValueRange carried,
         llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value,
                                                           mlir::ValueRange)>
             body);

/// How many of `steps`, each of which multiplies vectors of `lanes` f32, follow
/// one question for lines of weights: what finds out for which to ask are ten
/// instructions, and take as long as a step where vectors are short.
int64_t stepsOfQuestion(unsigned lanes, int64_t steps);

/// Emits the steps from `from` to before `to` around `body` as emitLoop does,
/// in turns of so many `together`, of which there are whole ones, with `ask` in
/// front of each.
llvm::SmallVector<mlir::Value>
emitSteps(Kernel &kernel, mlir::Value from, mlir::Value to, int64_t together,
          mlir::ValueRange carried, llvm::function_ref<void(mlir::Value)> ask,
          llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value,
                                                            mlir::ValueRange)>
              body);

/// emitLoop without carried values; without a loop for one turn, and nothing
/// where it is known that there is none.
void emitTurns(Kernel &kernel, mlir::Value from, mlir::Value to, int64_t step,
               llvm::function_ref<void(mlir::Value)> body);

/// `sizes` and `strides` of `scratch`, a memref of one dimension, from `begin`
/// on.
mlir::Value viewOf(Kernel &kernel, mlir::Value scratch, mlir::Value begin,
                   llvm::ArrayRef<int64_t> sizes,
                   llvm::ArrayRef<int64_t> strides);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_KERNEL_H
