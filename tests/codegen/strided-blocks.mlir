// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 winograd=off" --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=256 vector-registers=16 winograd=off" --split-input-file | FileCheck %s --check-prefix=SMALL

#x = affine_map<(n, h, w, k, a, b, c) -> (n, 2 * h + a, 2 * w + b, c)>
#w = affine_map<(n, h, w, k, a, b, c) -> (a, b, c, k)>
#y = affine_map<(n, h, w, k, a, b, c) -> (n, h, w, k)>

// Every other pixel each way is 290 KB of an image of 1 MB: all of it stays in
// the second cache while the weights go by once.
// CHECK-LABEL: func private @every_other_pixel(
// CHECK-SAME:    memref<13x1x1x728x80xf32>
// CHECK:         scf.for %{{.+}} = %c0 to %c12 step %c1 {
// CHECK:           scf.for %{{.+}} = %c0 to %c10 step %c1 {
// CHECK-NEXT:        scf.for %{{.+}} = %c0 to %c10 step %c5 {
func.func private @every_other_pixel(%x: tensor<1x19x19x728xf32>, %w: tensor<1x1x728x1024xf32> {ktn.constant}, %out: tensor<1x10x10x1024xf32>) -> tensor<1x10x10x1024xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x10x10x1024xf32>) -> tensor<1x10x10x1024xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x19x19x728xf32>, tensor<1x1x728x1024xf32>) outs(%start : tensor<1x10x10x1024xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x10x10x1024xf32>
  return %sum : tensor<1x10x10x1024xf32>
}

// -----

#x = affine_map<(n, h, w, k, a, b, c) -> (n, 2 * h + a, 2 * w + b, c)>
#w = affine_map<(n, h, w, k, a, b, c) -> (a, b, c, k)>
#y = affine_map<(n, h, w, k, a, b, c) -> (n, h, w, k)>

// Behind each pixel of 1 KB the next one begins to be fetched ahead, so that
// all of them are more than the cache holds: some rows at a time.
// CHECK-LABEL: func private @small_pixels(
// CHECK:         scf.for %{{.+}} = %c0 to %c28 step %c14 {
// CHECK:           scf.for %{{.+}} = %c0 to %c{{[0-9]+}} step %c1 {
func.func private @small_pixels(%x: tensor<1x56x56x256xf32>, %w: tensor<1x1x256x512xf32> {ktn.constant}, %out: tensor<1x28x28x512xf32>) -> tensor<1x28x28x512xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x28x28x512xf32>) -> tensor<1x28x28x512xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x56x56x256xf32>, tensor<1x1x256x512xf32>) outs(%start : tensor<1x28x28x512xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x28x28x512xf32>
  return %sum : tensor<1x28x28x512xf32>
}

// -----

#x = affine_map<(y, x, o, i, j, c) -> (y + i, x + j, c)>
#w = affine_map<(y, x, o, i, j, c) -> (i, j, c, o)>
#z = affine_map<(y, x, o, i, j, c) -> (y, x, o)>

// Rows of windows that a small second cache does not hold beside the weights
// go in blocks, though each block reads all weights again: nothing fetches them
// ahead.
// CHECK-LABEL: func private @rows_of_windows(
// CHECK:         scf.for %{{.+}} = %c0 to %c8 step %c1 {
// SMALL-LABEL: func private @rows_of_windows(
// SMALL:         scf.for %[[ROW:.+]] = %c0 to %c14 step %c4
// SMALL:           %[[END:.+]] = arith.minui
// SMALL:           scf.for %{{.+}} = %c0 to %c16 step %c1
// SMALL:             scf.for %{{.+}} = %[[ROW]] to %[[END]] step %c1
func.func private @rows_of_windows(%x: tensor<16x16x256xf32>, %w: tensor<3x3x256x256xf32> {ktn.constant}, %out: tensor<14x14x256xf32>) -> tensor<14x14x256xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<14x14x256xf32>) -> tensor<14x14x256xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #z], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<16x16x256xf32>, tensor<3x3x256x256xf32>) outs(%start : tensor<14x14x256xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<14x14x256xf32>
  return %sum : tensor<14x14x256xf32>
}
