// RUN: keratin-opt %s --pass-pipeline="builtin.module(ktn-round-factors{narrow=true},func.func(ktn-fuse-elementwise),ktn-form-kernels,canonicalize)" | FileCheck %s

#rows = affine_map<(m, n, k) -> (m, k)>
#columns = affine_map<(m, n, k) -> (k, n)>
#sums = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(m, n) -> (m, n)>

// Both ways of a residual block end in a product. The one that is computed
// first is rounded and waits as bf16; the other one's kernel adds, and rounds
// the sum for the product that reads it.
// CHECK-LABEL: func @block(
// CHECK:         %[[SHORT:.+]] = call @[[FIRST:kernel.matmul]](%{{.+}} -> tensor<16x16xbf16>
// CHECK:         %[[SUM:.+]] = call @[[SECOND:kernel.matmul_0]](%{{.+}}, %{{.+}}, %[[SHORT]], %{{.+}} -> tensor<16x16xbf16>
// CHECK:         call @kernel.matmul_1(%[[SUM]], %{{.+}} -> tensor<16x16xf32>
func.func @block(%x: tensor<16x16xf32>, %y: tensor<16x16xf32>, %w: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %0 = linalg.generic {indexing_maps = [#rows, #columns, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<16x16xf32>, tensor<16x16xf32>) outs(%f : tensor<16x16xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %p, %s : f32
    linalg.yield %t : f32
  } -> tensor<16x16xf32>
  %1 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<16x16xf32>) outs(%e : tensor<16x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.exp %a : f32
    linalg.yield %t : f32
  } -> tensor<16x16xf32>
  %2 = linalg.generic {indexing_maps = [#rows, #columns, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%y, %w : tensor<16x16xf32>, tensor<16x16xf32>) outs(%f : tensor<16x16xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %p, %s : f32
    linalg.yield %t : f32
  } -> tensor<16x16xf32>
  %3 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%2 : tensor<16x16xf32>) outs(%e : tensor<16x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.sin %a : f32
    linalg.yield %t : f32
  } -> tensor<16x16xf32>
  %4 = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%3, %1 : tensor<16x16xf32>, tensor<16x16xf32>) outs(%e : tensor<16x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<16x16xf32>
  %5 = linalg.generic {indexing_maps = [#rows, #columns, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%4, %w : tensor<16x16xf32>, tensor<16x16xf32>) outs(%f : tensor<16x16xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %p, %s : f32
    linalg.yield %t : f32
  } -> tensor<16x16xf32>
  return %5 : tensor<16x16xf32>
}

// A sum that nothing multiplies stays as it is, and so do its parts.
// CHECK-LABEL: func @only_sum(
// CHECK:         %[[ONE:.+]] = call @kernel.matmul_1(%{{.+}} -> tensor<16x16xf32>
// CHECK:         call @kernel.matmul_2(%{{.+}}, %{{.+}}, %[[ONE]], %{{.+}} -> tensor<16x16xf32>
// CHECK:       func private @[[FIRST]](
// CHECK:         math.exp
// CHECK-NEXT:    arith.truncf
// CHECK:       func private @[[SECOND]](
// CHECK:         math.sin
// CHECK-NEXT:    arith.extf
// CHECK-NEXT:    arith.addf
// CHECK-NEXT:    arith.truncf
func.func @only_sum(%x: tensor<16x16xf32>, %y: tensor<16x16xf32>, %w: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %0 = linalg.generic {indexing_maps = [#rows, #columns, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<16x16xf32>, tensor<16x16xf32>) outs(%f : tensor<16x16xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %p, %s : f32
    linalg.yield %t : f32
  } -> tensor<16x16xf32>
  %2 = linalg.generic {indexing_maps = [#rows, #columns, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%y, %w : tensor<16x16xf32>, tensor<16x16xf32>) outs(%f : tensor<16x16xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %p, %s : f32
    linalg.yield %t : f32
  } -> tensor<16x16xf32>
  %4 = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%0, %2 : tensor<16x16xf32>, tensor<16x16xf32>) outs(%e : tensor<16x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<16x16xf32>
  return %4 : tensor<16x16xf32>
}
