// RUN: keratin-opt %s --ktn-split-windows=vector-bits=2048 | FileCheck %s
// RUN: keratin-opt %s --ktn-split-windows=vector-bits=64 | FileCheck %s --check-prefix=NARROW
// RUN: keratin-opt %s --ktn-split-windows | FileCheck %s --check-prefix=NARROW

#x = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 + d3 * 2, d4)>
#w = affine_map<(d0, d1, d2, d3, d4) -> (d3, d4, d2)>
#y = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>
#pixels = affine_map<(n, h, w, o, i, j, c) -> (n, h + i, w + j, c)>
#taps = affine_map<(n, h, w, o, i, j, c) -> (i, j, c, o)>
#output = affine_map<(n, h, w, o, i, j, c) -> (n, h, w, o)>
#far = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 * 2 + d3, d4)>

// Three outputs of four taps: a product with twelve columns, and the sum of
// four of them, two places apart.
// CHECK-DAG:   #[[IN:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
// CHECK-DAG:   #[[WEIGHTS:.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d2)>
// CHECK-DAG:   #[[OUT:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-DAG:   #[[TAPS:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1 + d3 * 2, d3, d2)>
// CHECK-LABEL: func @few(
// CHECK-DAG:     %[[W:.*]] = arith.constant dense_resource<w_columns> : tensor<32x12xf32>
// CHECK-DAG:     %[[E:.*]] = tensor.empty(%{{.*}}) : tensor<?x16x12xf32>
// CHECK:         %[[P:.*]] = linalg.generic {indexing_maps = [#[[IN]], #[[WEIGHTS]], #[[OUT]]], {{.*}}ins(%{{.*}}, %[[W]] : tensor<?x16x32xf32>, tensor<32x12xf32>)
// CHECK:         %[[V:.*]] = tensor.expand_shape %[[P]] {{\[\[}}0], [1], [2, 3]] output_shape [%{{.*}}, 16, 4, 3]
// CHECK:         %[[Y:.*]] = linalg.generic {indexing_maps = [#[[TAPS]], #[[OUT]]], {{.*}}ins(%[[V]] : tensor<?x16x4x3xf32>) outs(%{{.*}} : tensor<?x10x3xf32>)
// CHECK:         return %[[Y]]
//
// Where they fill the lanes, it stays, and where inputs do.
// NARROW-LABEL: func @few(
// NARROW:         linalg.generic {{.*}}ins(%{{.*}}, %{{.*}} : tensor<?x16x32xf32>, tensor<4x32x3xf32>)
// NARROW-NEXT:    ^bb0
func.func @few(%x: tensor<?x16x32xf32>) -> tensor<?x10x3xf32> {
  %c0 = arith.constant 0 : index
  %half = arith.constant 0.5 : f32
  %w = arith.constant dense_resource<w> : tensor<4x32x3xf32>
  %n = tensor.dim %x, %c0 : tensor<?x16x32xf32>
  %e = tensor.empty(%n) : tensor<?x10x3xf32>
  %f = linalg.fill ins(%half : f32) outs(%e : tensor<?x10x3xf32>) -> tensor<?x10x3xf32>
  %0 = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<?x16x32xf32>, tensor<4x32x3xf32>) outs(%f : tensor<?x10x3xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<?x10x3xf32>
  return %0 : tensor<?x10x3xf32>
}

// A window that moves by two would compute twice as much; weights that are not
// known would have to be put in order each time.
// CHECK-LABEL: func @strided(
// CHECK-NOT:     tensor.expand_shape
// CHECK-LABEL: func @unknown(
// CHECK-NOT:     tensor.expand_shape
func.func @strided(%x: tensor<?x16x32xf32>) -> tensor<?x5x3xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense_resource<w> : tensor<4x32x3xf32>
  %n = tensor.dim %x, %c0 : tensor<?x16x32xf32>
  %e = tensor.empty(%n) : tensor<?x5x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x5x3xf32>) -> tensor<?x5x3xf32>
  %0 = linalg.generic {indexing_maps = [#far, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<?x16x32xf32>, tensor<4x32x3xf32>) outs(%f : tensor<?x5x3xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<?x5x3xf32>
  return %0 : tensor<?x5x3xf32>
}

func.func @unknown(%x: tensor<?x16x32xf32>, %w: tensor<4x32x3xf32>) -> tensor<?x10x3xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x16x32xf32>
  %e = tensor.empty(%n) : tensor<?x10x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x10x3xf32>) -> tensor<?x10x3xf32>
  %0 = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<?x16x32xf32>, tensor<4x32x3xf32>) outs(%f : tensor<?x10x3xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<?x10x3xf32>
  return %0 : tensor<?x10x3xf32>
}

// Nor are weights known that a file has only some of.
// CHECK-LABEL: func @damaged(
// CHECK:         linalg.generic
// CHECK-NOT:     linalg.generic
func.func @damaged(%x: tensor<?x16x32xf32>) -> tensor<?x10x3xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense_resource<short> : tensor<4x32x3xf32>
  %n = tensor.dim %x, %c0 : tensor<?x16x32xf32>
  %e = tensor.empty(%n) : tensor<?x10x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x10x3xf32>) -> tensor<?x10x3xf32>
  %0 = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<?x16x32xf32>, tensor<4x32x3xf32>) outs(%f : tensor<?x10x3xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<?x10x3xf32>
  return %0 : tensor<?x10x3xf32>
}

// One output of two inputs, which fill no vector, has the seven taps of a row as
// columns; of three taps each way that gains nothing.
// CHECK-LABEL: func @one(
// CHECK:         linalg.generic {{.*}}ins(%{{.*}}, %{{.*}} : tensor<1x70x70x2xf32>, tensor<7x2x7xf32>)
// CHECK:         tensor.expand_shape {{.*}} : tensor<1x64x70x7xf32> into tensor<1x64x70x7x1xf32>
// CHECK-LABEL: func @one_of_small(
// CHECK-NOT:     tensor.expand_shape
// CHECK:         return
func.func @one(%x: tensor<1x70x70x2xf32>) -> tensor<1x64x64x1xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense_resource<wide> : tensor<7x7x2x1xf32>
  %e = tensor.empty() : tensor<1x64x64x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64x64x1xf32>) -> tensor<1x64x64x1xf32>
  %0 = linalg.generic {indexing_maps = [#pixels, #taps, #output], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x70x70x2xf32>, tensor<7x7x2x1xf32>) outs(%f : tensor<1x64x64x1xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<1x64x64x1xf32>
  return %0 : tensor<1x64x64x1xf32>
}
func.func @one_of_small(%x: tensor<1x66x66x2xf32>) -> tensor<1x64x64x1xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense_resource<small> : tensor<3x3x2x1xf32>
  %e = tensor.empty() : tensor<1x64x64x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64x64x1xf32>) -> tensor<1x64x64x1xf32>
  %0 = linalg.generic {indexing_maps = [#pixels, #taps, #output], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x66x66x2xf32>, tensor<3x3x2x1xf32>) outs(%f : tensor<1x64x64x1xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<1x64x64x1xf32>
  return %0 : tensor<1x64x64x1xf32>
}

{-#
  dialect_resources: {
    builtin: {
      wide: "0x040000000000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f",
      small: "0x040000000000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f",
      short: "0x040000000000803f",
      w: "0x040000000000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f"
    }
  }
#-}
