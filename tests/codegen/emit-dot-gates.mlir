// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 dots=vectors" | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 dots=tiles" | FileCheck %s --check-prefix=TILES

#x = affine_map<(m, g, n, k) -> (m, k)>
#w = affine_map<(m, g, n, k) -> (k, g, n)>
#sums = affine_map<(m, g, n, k) -> (m, g, n)>
#first = affine_map<(m, n) -> (m, 0, n)>
#last = affine_map<(m, n) -> (m, 1, n)>
#y = affine_map<(m, n) -> (m, n)>

// A step has the pairs of one gate after those of another: each is loaded once for all rows, and each pair of a row
// once for all gates. What follows is as with other factors.
// CHECK-LABEL: func private @rows(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<4x32xbf16>, %[[W:[a-z0-9]+]]: memref<2x16x2x16x2xbf16> {ktn.constant, ktn.packed = {block = 16 : i64, dim = 2 : i64, inner = array<i64: 1>, outer = array<i64>, pairs = array<i64: 0>}, {{.+}} attributes {ktn.kernel = "dots"}
// CHECK:         scf.for %{{.+}} = %c0 to %c32 step %c16 iter_args
// CHECK:           vector.broadcast %{{.+}} : i32 to vector<16xi32>
// CHECK-COUNT-2:   llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// CHECK:           vector.broadcast %{{.+}} : i32 to vector<16xi32>
// CHECK-COUNT-2:   llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// CHECK:           vector.broadcast %{{.+}} : i32 to vector<16xi32>
// CHECK-COUNT-2:   llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// CHECK:           vector.broadcast %{{.+}} : i32 to vector<16xi32>
// CHECK-COUNT-2:   llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// CHECK-COUNT-56:  llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// CHECK-NOT:       llvm.call_intrinsic
// CHECK:         math.exp %{{.+}} : vector<64xf32>
// CHECK-NOT:     arith.extf
func.func private @rows(%x: tensor<4x32xbf16>, %w: tensor<32x2x32xbf16> {ktn.constant}, %out: tensor<4x32xf32>) -> tensor<4x32xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x2x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<4x2x32xf32>) -> tensor<4x2x32xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #sums], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x32xbf16>, tensor<32x2x32xbf16>) outs(%start : tensor<4x2x32xf32>) {
  ^bb0(%a: bf16, %c: bf16, %s: f32):
    %l = arith.extf %a : bf16 to f32
    %r = arith.extf %c : bf16 to f32
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<4x2x32xf32>
  %y = linalg.generic {indexing_maps = [#first, #last, #y], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %sum : tensor<4x2x32xf32>, tensor<4x2x32xf32>) outs(%out : tensor<4x32xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %g = math.exp %a : f32
    %p = arith.mulf %g, %c : f32
    linalg.yield %p : f32
  } -> tensor<4x32xf32>
  return %y : tensor<4x32xf32>
}

// One row has two vectors of units.
// CHECK-LABEL: func private @row(
// CHECK-SAME:    memref<2x16x2x32x2xbf16> {ktn.constant, ktn.packed = {block = 32 : i64
// CHECK:         llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
func.func private @row(%x: tensor<1x32xbf16>, %w: tensor<32x2x40xbf16> {ktn.constant}, %out: tensor<1x40xf32>) -> tensor<1x40xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x40xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<1x2x40xf32>) -> tensor<1x2x40xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #sums], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x32xbf16>, tensor<32x2x40xbf16>) outs(%start : tensor<1x2x40xf32>) {
  ^bb0(%a: bf16, %c: bf16, %s: f32):
    %l = arith.extf %a : bf16 to f32
    %r = arith.extf %c : bf16 to f32
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x2x40xf32>
  %y = linalg.generic {indexing_maps = [#first, #last, #y], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %sum : tensor<1x2x40xf32>, tensor<1x2x40xf32>) outs(%out : tensor<1x40xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %g = math.exp %a : f32
    %p = arith.mulf %g, %c : f32
    linalg.yield %p : f32
  } -> tensor<1x40xf32>
  return %y : tensor<1x40xf32>
}

// The last step of an odd sum has half a pair of each row, and a zero.
// CHECK-LABEL: func private @odd(
// CHECK-SAME:    memref<2x17x2x16x2xbf16> {{.+}} attributes {ktn.kernel = "dots"}
// CHECK:         scf.for %{{.+}} = %c0 to %c32 step %c16 iter_args
// CHECK-COUNT-64:  llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// CHECK:         arith.extui %{{.+}} : i16 to i32
// CHECK-COUNT-8: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// CHECK:         math.exp
func.func private @odd(%x: tensor<4x33xbf16>, %w: tensor<33x2x32xbf16> {ktn.constant}, %out: tensor<4x32xf32>) -> tensor<4x32xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x2x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<4x2x32xf32>) -> tensor<4x2x32xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #sums], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x33xbf16>, tensor<33x2x32xbf16>) outs(%start : tensor<4x2x32xf32>) {
  ^bb0(%a: bf16, %c: bf16, %s: f32):
    %l = arith.extf %a : bf16 to f32
    %r = arith.extf %c : bf16 to f32
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<4x2x32xf32>
  %y = linalg.generic {indexing_maps = [#first, #last, #y], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %sum : tensor<4x2x32xf32>, tensor<4x2x32xf32>) outs(%out : tensor<4x32xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %g = math.exp %a : f32
    %p = arith.mulf %g, %c : f32
    linalg.yield %p : f32
  } -> tensor<4x32xf32>
  return %y : tensor<4x32xf32>
}

// In tile registers two tiles of rows meet both gates at once. Their sums go to memory, four bytes of 16 units of two
// gates a row, and what follows is computed from there: of 8 groups of rows 4 in each step of the next sums, where sums
// are kept, and behind all blocks the last ones.
// CHECK-LABEL: func private @tiles(
// CHECK-SAME:    attributes {ktn.kernel = "dots"}
// TILES-LABEL: func private @row(
// TILES-SAME:    ktn.packed = {block = 32 : i64, dim = 2 : i64, interleaved}
// TILES-NOT:     llvm.call_intrinsic
// TILES-LABEL: func private @tiles(
// TILES-SAME:    memref<2x32x2x16x2xbf16> {ktn.constant, ktn.packed = {block = 16 : i64, {{.+}} attributes {ktn.kernel = "tiles"}
// TILES:         %[[SUMS:.+]] = memref.alloca() {{.+}} : memref<1024xf32>
// TILES:         llvm.call_intrinsic "llvm.x86.ldtilecfg"
// TILES:         %[[KEPT:.+]] = memref.alloca() {{.+}} : memref<3xindex>
// TILES:         scf.for %{{.+}} = %c0 to %{{.+}} step %c1 {
// TILES-COUNT-4:   llvm.call_intrinsic "llvm.x86.tilezero"
// TILES:           scf.for %{{.+}} = %c0 to %c64 step %c32
// TILES-COUNT-3:     llvm.call_intrinsic "llvm.x86.tileloadd64"
// TILES-COUNT-2:     llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// TILES:             llvm.call_intrinsic "llvm.x86.tileloadd64"
// TILES-COUNT-2:     llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// TILES:             arith.muli %{{.+}}, %c4
// TILES:             %[[IS_KEPT:.+]] = memref.load %[[KEPT]][%c0]
// TILES:             %[[HAS:.+]] = arith.cmpi ne, %[[IS_KEPT]], %c0
// TILES:             scf.if %[[HAS]] {
// TILES:               scf.for
// TILES:                 vector.load %[[SUMS]]
// TILES:                 math.exp %{{.+}} : vector<64xf32>
// TILES-COUNT-4:   llvm.call_intrinsic "llvm.x86.tilestored64"
// TILES:           memref.store %c1, %[[KEPT]][%c0]
// TILES:         scf.for %{{.+}} = %c0 to %c8
// TILES:           vector.load %[[SUMS]]
// TILES:         llvm.call_intrinsic "llvm.x86.tilerelease"
func.func private @tiles(%x: tensor<32x64xbf16>, %w: tensor<64x2x32xbf16> {ktn.constant}, %out: tensor<32x32xf32>) -> tensor<32x32xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x2x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<32x2x32xf32>) -> tensor<32x2x32xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #sums], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<32x64xbf16>, tensor<64x2x32xbf16>) outs(%start : tensor<32x2x32xf32>) {
  ^bb0(%a: bf16, %c: bf16, %s: f32):
    %l = arith.extf %a : bf16 to f32
    %r = arith.extf %c : bf16 to f32
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<32x2x32xf32>
  %y = linalg.generic {indexing_maps = [#first, #last, #y], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %sum : tensor<32x2x32xf32>, tensor<32x2x32xf32>) outs(%out : tensor<32x32xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %g = math.exp %a : f32
    %p = arith.mulf %g, %c : f32
    linalg.yield %p : f32
  } -> tensor<32x32xf32>
  return %y : tensor<32x32xf32>
}
