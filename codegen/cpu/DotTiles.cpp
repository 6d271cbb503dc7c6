//===- DotTiles.cpp - dot products in tile registers ----------------------===//
#include "codegen/cpu/DotTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace keratin {

int64_t evenPart(int64_t depth, int64_t most) {
  for (int64_t part = std::min(depth, most) / 2 * 2; part > 0; part -= 2)
    if (depth % part == 0)
      return part;
  return 0;
}

int64_t tileDepth(int64_t depth) {
  constexpr int64_t least = 12;
  int64_t part = evenPart(depth, mostTileDepth);
  return part < least ? 0 : part;
}

static void call(Kernel &kernel, llvm::StringRef name,
                 ValueRange arguments = {}) {
  OpBuilder &b = kernel.builder();
  LLVM::CallIntrinsicOp::create(
      b, kernel.loc(), b.getStringAttr("llvm.x86." + name.str()), arguments);
}

/// A tile register.
static Value number(Kernel &kernel, int64_t tile) {
  OpBuilder &b = kernel.builder();
  return LLVM::ConstantOp::create(b, kernel.loc(), b.getI8Type(),
                                  b.getI8IntegerAttr(int8_t(tile)));
}

constexpr int64_t shapeBytes = 64;

Value allocateTileShape(Kernel &kernel) {
  OpBuilder &b = kernel.builder();
  return memref::AllocaOp::create(b, kernel.loc(),
                                  MemRefType::get({shapeBytes}, b.getI8Type()),
                                  b.getI64IntegerAttr(shapeBytes));
}

void configureTiles(Kernel &kernel, Value shape, int64_t height,
                    int64_t depth) {
  OpBuilder &b = kernel.builder();
  constexpr size_t bytesAt = 16, rowsAt = 48;
  std::array<int8_t, shapeBytes> bytes = {1}; // the palette
  auto set = [&](size_t tile, int64_t rows, int64_t rowBytes) {
    bytes[bytesAt + 2 * tile] = int8_t(rowBytes);
    bytes[rowsAt + tile] = int8_t(rows);
  };
  for (size_t tile = 0; tile < mostSumTiles; ++tile)
    set(tile, height, dotLanes * 4);
  for (size_t tile : {0, 1}) {
    set(firstRowTile + tile, height, depth * 2);
    set(firstColumnTile + tile, depth / 2, dotLanes * 4);
  }
  auto type = VectorType::get(shapeBytes, b.getI8Type());
  Value table = arith::ConstantOp::create(
      b, kernel.loc(), DenseElementsAttr::get(type, ArrayRef<int8_t>(bytes)));
  Value start = kernel.index(0);
  vector::StoreOp::create(b, kernel.loc(), table, shape, ValueRange{start});
  call(kernel, "ldtilecfg", addressOf(kernel, shape, start));
}

void releaseTiles(Kernel &kernel) { call(kernel, "tilerelease"); }

void zeroTile(Kernel &kernel, int64_t tile) {
  call(kernel, "tilezero", number(kernel, tile));
}

static void move(Kernel &kernel, llvm::StringRef name, int64_t tile,
                 Value memref, Value element, int64_t apart) {
  OpBuilder &b = kernel.builder();
  Value bytes = LLVM::ConstantOp::create(b, kernel.loc(), b.getI64Type(),
                                         b.getI64IntegerAttr(apart));
  call(kernel, name,
       {number(kernel, tile), addressOf(kernel, memref, element), bytes});
}

void loadTile(Kernel &kernel, int64_t tile, Value memref, Value element,
              int64_t apart) {
  move(kernel, "tileloadd64", tile, memref, element, apart);
}

void storeTile(Kernel &kernel, int64_t tile, Value memref, Value element,
               int64_t apart) {
  move(kernel, "tilestored64", tile, memref, element, apart);
}

void addTileDots(Kernel &kernel, int64_t sums, int64_t rows, int64_t columns) {
  call(kernel, "tdpbf16ps",
       {number(kernel, sums), number(kernel, rows), number(kernel, columns)});
}

} // namespace keratin
