// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 dots=tiles" | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 dots=vectors" | FileCheck %s --check-prefix=VECTORS

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// A number of f32 is its upper 16 bits, and those of what they leave, twice: of 96 elements three steps, of 50 rows four
// tiles of 13. Six of nine products are added up: the first parts, then those of the first one of a row with the others
// of a column, and the other way round.
// CHECK-LABEL: func private @rows(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<50x96xf32>, %[[W:[a-z0-9]+]]: memref<2x3x3x16x32x2xbf16> {ktn.constant, ktn.packed = {block = 32 : i64, dim = 1 : i64, outer = array<i64>, pairs = array<i64: 0>, split}, ktn.unpacked_type = tensor<96x64xf32>}
// CHECK-SAME:    %[[SPLIT:[a-z0-9]+]]: memref<14976xbf16> {ktn.scratch}
// CHECK-SAME:    ktn.kernel = "tiles6"
// CHECK:         llvm.call_intrinsic "llvm.x86.ldtilecfg"
// CHECK:         scf.for %{{.+}} = %c0 to %c13
// CHECK:           scf.for %{{.+}} = %c0 to %c3
// CHECK-COUNT-2:     llvm.load %{{.+}} : !llvm.ptr -> vector<16xf32>
// CHECK:             arith.andi
// CHECK:             arith.shrui
// CHECK:             arith.ori
// CHECK:             llvm.store %{{.+}} : vector<16xi32>
// CHECK-COUNT-2:     arith.subf
// CHECK:             llvm.store %{{.+}} : vector<16xi32>
// CHECK-COUNT-2:     arith.subf
// CHECK:             llvm.store %{{.+}} : vector<16xi32>
// CHECK:         scf.for
// CHECK-COUNT-4:   llvm.call_intrinsic "llvm.x86.tilezero"
// CHECK:           scf.for %{{.+}} = %c0 to %c3
// CHECK-COUNT-3:     llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK-COUNT-2:     llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK:             llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK-COUNT-2:     llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK-COUNT-2:     llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK-COUNT-4:     llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK-COUNT-2:     llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK-COUNT-4:     llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK-COUNT-3:     llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK-COUNT-2:     llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK:             llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK-COUNT-2:     llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK:             llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK-COUNT-2:     llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK:             llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK-COUNT-2:     llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK-COUNT-2:     llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK-COUNT-4:     llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK-NOT:         llvm.call_intrinsic
// CHECK:           llvm.call_intrinsic "llvm.x86.tilestored64"
// VECTORS-LABEL: func private @rows(
// VECTORS-NOT:   ktn.kernel = "tiles6"
func.func private @rows(%x: tensor<50x96xf32>, %w: tensor<96x64xf32> {ktn.constant}, %out: tensor<50x64xf32>) -> tensor<50x64xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<50x64xf32>) -> tensor<50x64xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<50x96xf32>, tensor<96x64xf32>) outs(%start : tensor<50x64xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<50x64xf32>
  return %y : tensor<50x64xf32>
}

// A long sum has blocks of 32 steps, between which sums wait behind the rows: loaded but in the first block, written to
// the square in the last one. Weights that no near cache has are asked for as four runs of lines.
// CHECK-LABEL: func private @deep(
// CHECK-SAME:    memref<204800xbf16> {ktn.scratch}
// CHECK:         scf.for %[[BLOCK:.+]] = %c0 to %c3 step
// CHECK:           %[[FIRST:.+]] = arith.cmpi eq, %[[BLOCK]], %c0
// CHECK:           scf.if %[[FIRST]] {
// CHECK-COUNT-4:     llvm.call_intrinsic "llvm.x86.tilezero"
// CHECK:           } else {
// CHECK-COUNT-4:     llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK:           scf.for %{{.+}} = %c0 to %c32
// CHECK-COUNT-48:    llvm.intr.prefetch
// CHECK:             llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK:           %[[LAST:.+]] = arith.cmpi eq, %[[BLOCK]], %c2
// CHECK:           scf.if %[[LAST]] {
// CHECK:             memref.store
// CHECK:           } else {
// CHECK-COUNT-4:     llvm.call_intrinsic "llvm.x86.tilestored64"
func.func private @deep(%x: tensor<64x3072xf32>, %w: tensor<3072x64xf32> {ktn.constant}, %out: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<64x3072xf32>, tensor<3072x64xf32>) outs(%start : tensor<64x64xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// Few rows do not pay, nor do few columns or a short sum, of which a step would be half empty.
// CHECK-LABEL: func private @few_rows(
// CHECK-NOT:     ktn.kernel = "tiles6"
func.func private @few_rows(%x: tensor<31x96xf32>, %w: tensor<96x64xf32> {ktn.constant}, %out: tensor<31x64xf32>) -> tensor<31x64xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<31x64xf32>) -> tensor<31x64xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<31x96xf32>, tensor<96x64xf32>) outs(%start : tensor<31x64xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<31x64xf32>
  return %y : tensor<31x64xf32>
}
// CHECK-LABEL: func private @short(
// CHECK-NOT:     ktn.kernel = "tiles6"
func.func private @short(%x: tensor<50x16xf32>, %w: tensor<16x64xf32> {ktn.constant}, %out: tensor<50x64xf32>) -> tensor<50x64xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<50x64xf32>) -> tensor<50x64xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<50x16xf32>, tensor<16x64xf32>) outs(%start : tensor<50x64xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<50x64xf32>
  return %y : tensor<50x64xf32>
}
