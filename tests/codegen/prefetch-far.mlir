// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 asks-next-rows" --split-input-file | FileCheck %s --check-prefix=ROWS

// The gradient of a 1x1 kernel sums over pixels, of which a tile reads 56 bytes
// of one factor and two lines of the other: what it reads some pixels on is asked
// for. Of the larger factor so is the run that the next 7 rows of pixels are,
// 4 elements in each of their steps.
// CHECK-LABEL: func private @kernel_gradient(
// CHECK-SAME:    %[[X:[^:]+]]: memref<1x28x28x256xf32>, %[[G:[^:]+]]: memref<1x28x28x128xf32>
// CHECK:         %[[FLAT:.+]] = memref.collapse_shape %[[X]] {{.+}} into memref<200704xf32>
// CHECK:         scf.for %[[FROM:.+]] = %c0 to %c28 step %c{{[0-9]+}} {
// CHECK:           %[[TO:.+]] = arith.minui
// CHECK:         scf.for %[[W:.+]] = %c0 to %c28 step %c1 iter_args({{.+}}
// CHECK:           %[[AHEAD:.+]] = arith.addi %{{.+}}, %c16
// CHECK-COUNT-2:   memref.prefetch %[[X]][%c0, %{{.+}}, %[[AHEAD]], %{{.+}}], read, locality<3>, data
// CHECK-COUNT-2:   memref.prefetch %[[G]][%c0, %{{.+}}, %[[AHEAD]], %{{.+}}], read, locality<3>, data
// CHECK:           arith.muli %[[TO]], %c7168
// CHECK:           memref.prefetch %[[FLAT]][%{{.+}}], read, locality<2>, data
// CHECK-NOT:       memref.prefetch
// CHECK:           scf.yield
func.func private @kernel_gradient(%x: tensor<1x28x28x256xf32>, %g: tensor<1x28x28x128xf32>, %out: tensor<256x128xf32>) -> tensor<256x128xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<256x128xf32>) -> tensor<256x128xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, o, n, h, w) -> (n, h, w, i)>, affine_map<(i, o, n, h, w) -> (n, h, w, o)>, affine_map<(i, o, n, h, w) -> (i, o)>], iterator_types = ["parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %g : tensor<1x28x28x256xf32>, tensor<1x28x28x128xf32>) outs(%start : tensor<256x128xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<256x128xf32>
  return %sum : tensor<256x128xf32>
}

// -----

// Pixels that follow each other are fetched ahead anyway.
// CHECK-LABEL: func private @few_channels(
// CHECK-NOT:     memref.prefetch
// CHECK:         return
func.func private @few_channels(%x: tensor<1x128x128x16xf32>, %g: tensor<1x128x128x16xf32>, %out: tensor<16x16xf32>) -> tensor<16x16xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<16x16xf32>) -> tensor<16x16xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, o, n, h, w) -> (n, h, w, i)>, affine_map<(i, o, n, h, w) -> (n, h, w, o)>, affine_map<(i, o, n, h, w) -> (i, o)>], iterator_types = ["parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %g : tensor<1x128x128x16xf32>, tensor<1x128x128x16xf32>) outs(%start : tensor<16x16xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<16x16xf32>
  return %sum : tensor<16x16xf32>
}

// -----

// Rows of 32 elements, of which the second cache has all: where the target
// gains by it, the first cache is asked for those of the next tile, as one run.
// CHECK-LABEL: func private @short_rows(
// CHECK-NOT:     memref.prefetch
// ROWS-LABEL:  func private @short_rows(
// ROWS-SAME:     %[[X:[^:]+]]: memref<4096x32xf32>
// ROWS:          %[[ALL:.+]] = memref.collapse_shape %[[X]] {{.+}} into memref<131072xf32>
// ROWS:          memref.prefetch %[[ALL]]{{.+}} read, locality<3>
// ROWS:          return
func.func private @short_rows(%x: tensor<4096x32xf32>, %w: tensor<32x16xf32> {ktn.constant}, %out: tensor<4096x16xf32>) -> tensor<4096x16xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<4096x16xf32>) -> tensor<4096x16xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4096x32xf32>, tensor<32x16xf32>) outs(%start : tensor<4096x16xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<4096x16xf32>
  return %sum : tensor<4096x16xf32>
}
