// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" --split-input-file | FileCheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>

// The other branch of a residual block is asked for while the product of its
// tile is computed: a row every four steps, a line in each, until all are.
// CHECK-LABEL: func private @residual(
// CHECK-SAME:    tensor<256x512xf32>}, %[[OTHER:[a-z0-9]+]]: memref<256x512xf32>
// CHECK:         scf.for %[[STEP:.+]] = %c0 to %[[ASKED:c[0-9]+]] step %c1 iter_args
// CHECK:           %[[FOURTH:.+]] = arith.shrui %[[STEP]], %c2
// CHECK:           %[[LAST:.+]] = arith.minui %[[FOURTH]], %c{{[0-9]+}}
// CHECK:           %[[ROW:.+]] = arith.addi %{{.+}}, %[[LAST]]
// CHECK:           memref.prefetch %[[OTHER]][%[[ROW]], %{{.+}}], read, locality<3>, data
// CHECK:           scf.yield
// CHECK:         scf.for %{{.+}} = %[[ASKED]] to %c256 step %c1 iter_args
// CHECK-NOT:       memref.prefetch %[[OTHER]]
// CHECK:           scf.yield
func.func private @residual(%x: tensor<256x256xf32>, %w: tensor<256x512xf32> {ktn.constant}, %other: tensor<256x512xf32>, %out: tensor<256x512xf32>) -> tensor<256x512xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x512xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<256x512xf32>) -> tensor<256x512xf32>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<256x256xf32>, tensor<256x512xf32>) outs(%start : tensor<256x512xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<256x512xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %other : tensor<256x512xf32>, tensor<256x512xf32>) outs(%out : tensor<256x512xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %t = arith.addf %l, %r : f32
    linalg.yield %t : f32
  } -> tensor<256x512xf32>
  return %y : tensor<256x512xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
#row = affine_map<(m, n) -> (n)>

// A bias, and what the second cache holds anyway, need no asking.
// CHECK-LABEL: func private @near(
// CHECK-NOT:     memref.prefetch
// CHECK:         return
func.func private @near(%x: tensor<32x32xf32>, %w: tensor<32x64xf32> {ktn.constant}, %other: tensor<32x64xf32>, %bias: tensor<64xf32>, %out: tensor<32x64xf32>) -> tensor<32x64xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<32x32xf32>, tensor<32x64xf32>) outs(%start : tensor<32x64xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<32x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %other, %bias : tensor<32x64xf32>, tensor<32x64xf32>, tensor<64xf32>) outs(%out : tensor<32x64xf32>) {
  ^bb0(%l: f32, %r: f32, %c: f32, %s: f32):
    %t = arith.addf %l, %r : f32
    %u = arith.addf %t, %c : f32
    linalg.yield %u : f32
  } -> tensor<32x64xf32>
  return %y : tensor<32x64xf32>
}
