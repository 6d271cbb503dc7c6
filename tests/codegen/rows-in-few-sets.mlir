// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=256 vector-registers=16" --split-input-file | FileCheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// Rows of the result are 4096 bytes apart, in one set of the first cache: tiles
// go along rows, while the 32 KB of weights are near.
// CHECK-LABEL: func private @one_set(
// CHECK:         scf.for %[[ROW:.+]] = %c0 to %c{{[0-9]+}} step %c{{[0-9]+}} {
// CHECK:           scf.for %{{.+}} = %c0 to %c{{[0-9]+}} step %c1 {
// CHECK:             vector.store %{{.+}}, %arg2[%[[ROW]], %{{.+}}]
func.func private @one_set(%x: tensor<1024x8xf32>, %w: tensor<8x1024xf32> {ktn.constant}, %out: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1024x8xf32>, tensor<8x1024xf32>) outs(%start : tensor<1024x1024xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1024x1024xf32>
  return %sum : tensor<1024x1024xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// 64 bytes more, and they are in all sets: a block of weights meets all rows.
// CHECK-LABEL: func private @all_sets(
// CHECK:         scf.for %{{.+}} = %c0 to %c{{[0-9]+}} step %c1 {
// CHECK:           scf.for %[[ROW:.+]] = %c0 to %c{{[0-9]+}} step %c{{[0-9]+}} {
// CHECK:             vector.store %{{.+}}, %arg2[%[[ROW]], %{{.+}}]
func.func private @all_sets(%x: tensor<1024x8xf32>, %w: tensor<8x1040xf32> {ktn.constant}, %out: tensor<1024x1040xf32>) -> tensor<1024x1040xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1024x1040xf32>) -> tensor<1024x1040xf32>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1024x8xf32>, tensor<8x1040xf32>) outs(%start : tensor<1024x1040xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1024x1040xf32>
  return %sum : tensor<1024x1040xf32>
}
