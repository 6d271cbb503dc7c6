// RUN: keratin-opt %s | keratin-opt | FileCheck %s

// A target is all numbers, or has extents that an operand gives.
// CHECK-LABEL: func @random(
func.func @random(%s: tensor<2xi64>, %n: tensor<2xi64>) {
  // CHECK: ktn.random %{{.*}} : tensor<2xi64> to [8, 16], f32 : tensor<8x16xf32>
  %0 = ktn.random %s : tensor<2xi64> to [8, 16], f32 : tensor<8x16xf32>
  // CHECK: ktn.random %{{.*}} : tensor<2xi64> shape %{{.*}} : tensor<2xi64> to [?, 16], i32 : tensor<?x16xi32>
  %1 = ktn.random %s : tensor<2xi64> shape %n : tensor<2xi64> to [?, 16], i32 : tensor<?x16xi32>
  return
}
