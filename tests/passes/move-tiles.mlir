// RUN: keratin-opt %s --ktn-form-kernels | FileCheck %s

// The vectors that a product ends with are written where another order of the
// axes in front of the last wants them, by one kernel.
// CHECK-LABEL: func @moved(
// CHECK:         call @[[KERNEL:.+]](%{{.+}}, %{{.+}}, %{{.+}}) {{.+}} -> tensor<2x5x16xf32>
// CHECK-NOT:     call
// CHECK:         return
func.func @moved(%x: tensor<5x8xf32>, %w: tensor<2x16x8xf32>) -> tensor<2x5x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x2x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x2x16xf32>) -> tensor<5x2x16xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(m, i, n, k) -> (m, k)>, affine_map<(m, i, n, k) -> (i, n, k)>, affine_map<(m, i, n, k) -> (m, i, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<5x8xf32>, tensor<2x16x8xf32>) outs(%f : tensor<5x2x16xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %p, %s : f32
    linalg.yield %t : f32
  } -> tensor<5x2x16xf32>
  %o = tensor.empty() : tensor<2x5x16xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, m, n) -> (m, i, n)>, affine_map<(i, m, n) -> (i, m, n)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0 : tensor<5x2x16xf32>) outs(%o : tensor<2x5x16xf32>) {
  ^bb0(%a: f32, %q: f32):
    %t = math.exp %a : f32
    linalg.yield %t : f32
  } -> tensor<2x5x16xf32>
  return %1 : tensor<2x5x16xf32>
}

// Lanes stay together: a transpose of the last axis is a kernel of its own.
// CHECK-LABEL: func @transposed(
// CHECK-COUNT-2: call
// CHECK:         return
func.func @transposed(%x: tensor<5x8xf32>, %w: tensor<8x16xf32>) -> tensor<16x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x16xf32>) -> tensor<5x16xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<5x8xf32>, tensor<8x16xf32>) outs(%f : tensor<5x16xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %p, %s : f32
    linalg.yield %t : f32
  } -> tensor<5x16xf32>
  %o = tensor.empty() : tensor<16x5xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(n, m) -> (m, n)>, affine_map<(n, m) -> (n, m)>], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<5x16xf32>) outs(%o : tensor<16x5xf32>) {
  ^bb0(%a: f32, %q: f32):
    %t = math.exp %a : f32
    linalg.yield %t : f32
  } -> tensor<16x5xf32>
  return %1 : tensor<16x5xf32>
}
