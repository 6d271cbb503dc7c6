//===- DotTiles.h - dot products in tile registers --------------*- C++ -*-===//
//
// AMX (Intel SDM, volume 1, chapter 18): a tile has up to 16 rows of 64 bytes.
// One of rows of a left factor, 32 bf16 each at most, and one of pairs of a
// right one, 16 columns each, are multiplied and added to one of sums of f32,
// rows by columns. Registers are named here, not by LLVM. All of one kind have
// one shape, so they are configured once.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CODEGEN_CPU_DOTTILES_H
#define KERATIN_CODEGEN_CPU_DOTTILES_H

#include "codegen/cpu/DotLanes.h"

namespace keratin {

/// Registers 0 to 3 hold sums, these two and the next ones rows and columns.
inline constexpr int64_t mostSumTiles = 4, firstRowTile = 4,
                         firstColumnTile = 6;
/// Rows of a tile, and elements of a sum that one instruction takes.
inline constexpr int64_t mostTileRows = 16, mostTileDepth = 32;
/// To set up tiles takes as long as so many products.
inline constexpr int64_t productsOfSetup = 16 << 10;

/// The largest even number that `depth` is a multiple of, `most` at most; 0
/// where there is none.
int64_t evenPart(int64_t depth, int64_t most);

/// How many elements of a sum of `depth` each instruction takes; 0 where tiles
/// would be mostly empty.
int64_t tileDepth(int64_t depth);

/// Memory for configureTiles, to be asked for at the start of a function.
mlir::Value allocateTileShape(Kernel &kernel);
/// Tiles of rows and of sums get `height` rows, and `depth` elements of a sum
/// are taken at once.
void configureTiles(Kernel &kernel, mlir::Value shape, int64_t height,
                    int64_t depth);
void releaseTiles(Kernel &kernel);

void zeroTile(Kernel &kernel, int64_t tile);
/// Rows of `memref` from `element` on, `apart` bytes from each other.
void loadTile(Kernel &kernel, int64_t tile, mlir::Value memref,
              mlir::Value element, int64_t apart);
void storeTile(Kernel &kernel, int64_t tile, mlir::Value memref,
               mlir::Value element, int64_t apart);
void addTileDots(Kernel &kernel, int64_t sums, int64_t rows, int64_t columns);

} // namespace keratin

#endif // KERATIN_CODEGEN_CPU_DOTTILES_H
