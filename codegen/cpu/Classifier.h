//===- Classifier.h - finds what the loops of a root are for ----*- C++ -*-===//
//
// What Roles.cpp (lanes, rows and windows) and LoopOrder.cpp (the order of the
// loops, and their blocks) share.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CODEGEN_CPU_CLASSIFIER_H
#define KERATIN_CODEGEN_CPU_CLASSIFIER_H

#include "codegen/cpu/Roles.h"

namespace keratin {

/// A panel is on the stack, which may be small where the code runs.
inline constexpr int64_t panelBytes = 128 << 10;

/// A panel of weights that are widened holds more: between two blocks of a sum
/// all of the results go to memory and back.
inline constexpr int64_t widenedBytes = 192 << 10;

/// One row reads at least so many packed blocks side by side, or one and asks
/// ahead.
inline constexpr int64_t fewestStreams = 4;

/// Bytes between the elements that `access` reads in turns of `loop`; 1 when
/// that is not known.
int64_t bytesApart(const Access &access, unsigned loop);

/// Bytes of `tensor`, of one image where their number is not known.
int64_t bytesOf(mlir::Value tensor);

class Classifier {
public:
  Classifier(Kernel &kernel, mlir::linalg::GenericOp root,
             const VectorUnit &unit)
      : kernel(kernel), root(root), unit(unit),
        accesses(accessesOf(kernel, root)) {}

  std::optional<Tiling> run(bool outputHoldsSums);
  bool canPack(const Access &access, unsigned lane);
  bool canPanel(const Access &access, unsigned lane);

private:
  std::optional<unsigned> innermostOfOutput();
  bool pickLane();
  bool stepsFar(const Access &access);
  bool isOfGradient(const Access &access);
  bool pickPanel(const Access &access);
  bool paysToPack(const Access &access);
  bool reduceLanes();
  bool slides(unsigned loop);
  bool goesThroughImage(unsigned loop);
  void pickWindow();
  int64_t vectorsOfWholeSums();
  void pickProductRow(std::optional<int64_t> vectors);
  int64_t vectorsOfLine();
  int64_t vectorsOfStream();
  unsigned widthOfOneRow(std::optional<int64_t> vectors);
  int64_t tapsAtOnce(unsigned loop);
  std::optional<WindowWay> windowAlong(unsigned loop);
  bool windowsAreApart(llvm::ArrayRef<WindowWay> ways);
  bool takesTurns(llvm::ArrayRef<WindowWay> ways);
  bool pickWindowRows();
  void pickRowsOfWideWindow();
  /// Half of the registers hold sums of rows that are taps.
  int64_t mostTapRows() const { return unit.registers / 2; }
  void pickTapRows(std::optional<int64_t> vectors);
  bool holdsShared(int64_t most);
  bool holdsWeights();
  bool rowsShareSets();
  int64_t bytesRead(const Access &access, llvm::ArrayRef<unsigned> loops);
  int64_t columnsOfWindows();
  std::optional<unsigned> outerLoopOfWindow();
  std::optional<llvm::SmallVector<int64_t>>
  extentsOfCopy(mlir::OpOperand &operand,
                const llvm::DenseMap<unsigned, int64_t> &turns,
                int64_t columns);
  bool readsWideBorder();
  double linesOfWindow(const llvm::DenseMap<unsigned, int64_t> &turns);
  bool copyWindows();
  int64_t bytesOfScalars(llvm::ArrayRef<unsigned> loops);
  int64_t bytesOfRows(llvm::ArrayRef<unsigned> loops);
  void orderBlocked(llvm::ArrayRef<Tiling::Level> inner);
  int64_t tilesOf(const Tiling::Level &level);
  void pickPrefetch();
  void pickRowsAhead();
  void pickAdded();
  void pickFar();
  std::optional<int64_t> elementsOfBlock(const Access &access);
  void pickNextBlocks();
  void pickNextPanel();
  std::optional<unsigned> reductionBeside(const Access &access, unsigned loop);
  std::optional<int64_t> rowsOfColumns(const Access &access);
  llvm::SmallVector<std::pair<unsigned, unsigned>>
  offsetsInColumns(const Access &access);
  bool paysToCopy(const Access &access, int64_t blocks, int64_t steps);
  void pickCopied();
  void pickDirection();
  void pickRuns();
  void pickGroups();
  void pickReductions();
  void orderLoops();
  int64_t turnsInBlock(unsigned loop);
  int64_t bytesWalked(const Access &access);
  int64_t bytesOfBlock();
  void blockReductions();
  void blockRows();
  bool panelFits();
  bool widensBlocks(const Access &access);
  int64_t bytesInBlock();
  int64_t turnsOf(const Tiling::Level &level);
  bool sharesRows();
  bool isWindowOfColumns();
  std::optional<unsigned> pickRowsOfImages(llvm::ArrayRef<int64_t> turns);
  std::optional<unsigned> pickShared();
  std::optional<unsigned> pickOfKnown(llvm::ArrayRef<int64_t> turns);
  bool canShareTwo();
  void pickSharedWith();

  std::optional<int64_t> extent(unsigned loop) {
    int64_t known = staticLoopExtent(root, loop);
    if (mlir::ShapedType::isDynamic(known))
      return std::nullopt;
    return known;
  }
  bool isReduction(unsigned loop) {
    return root.getIteratorTypesArray()[loop] ==
           mlir::utils::IteratorType::reduction;
  }
  bool blockedDependsOn(unsigned loop) {
    return root.getMatchingIndexingMap(tiling.blocked).isFunctionOfDim(loop);
  }
  LaneAccess along(const Access &access, unsigned lane) {
    return laneAccess(llvm::cast<mlir::ShapedType>(access.tensor.getType()),
                      access.position, lane);
  }

  /// Bytes of a block of weights that stays in the second cache beside the
  /// next; less would cut sums within a row of a window.
  int64_t weightBlockBytes() const {
    return std::min<int64_t>(unit.secondCache() / 4, 256 << 10);
  }

  Kernel &kernel;
  mlir::linalg::GenericOp root;
  const VectorUnit &unit;
  llvm::SmallVector<Access> accesses;
  int64_t mostVectors = 8; ///< in a row of a tile
  bool keepsSums = false;  ///< the output can hold them
  bool nearPanel = false;  ///< the panel stays in the first cache
  Tiling tiling;
};

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_CLASSIFIER_H
