// RUN: keratin-opt %s | keratin-opt | FileCheck %s
// RUN: keratin-opt %s --emit-bytecode | keratin-opt | FileCheck %s

// CHECK-LABEL: func @reductions(
// CHECK-SAME:    %[[X:.+]]: tensor<?x4x8xf32>)
func.func @reductions(%x: tensor<?x4x8xf32>) {
  // CHECK: ktn.sum %[[X]], [0, 2] : tensor<?x4x8xf32> -> tensor<4xf32>
  %0 = ktn.sum %x, [0, 2] : tensor<?x4x8xf32> -> tensor<4xf32>
  // CHECK: ktn.sum %[[X]], [] : tensor<?x4x8xf32> -> tensor<?x4x8xf32>
  %1 = ktn.sum %x, [] : tensor<?x4x8xf32> -> tensor<?x4x8xf32>
  // CHECK: ktn.prod %[[X]], [1] {keepdims = true} : tensor<?x4x8xf32> -> tensor<?x1x8xf32>
  %2 = ktn.prod %x, [1] {keepdims = true} : tensor<?x4x8xf32> -> tensor<?x1x8xf32>
  // CHECK: ktn.max %[[X]], [0, 1, 2] : tensor<?x4x8xf32> -> tensor<f32>
  %3 = ktn.max %x, [0, 1, 2] : tensor<?x4x8xf32> -> tensor<f32>
  // CHECK: ktn.min %[[X]], [0] : tensor<?x4x8xf32> -> tensor<4x8xf32>
  %4 = ktn.min %x, [0] : tensor<?x4x8xf32> -> tensor<4x8xf32>
  return
}

// CHECK-LABEL: func @deviations(
// CHECK-SAME:    %[[X:.+]]: tensor<?x4x8xf32>, %[[M:.+]]: tensor<1x4x1xf32>)
func.func @deviations(%x: tensor<?x4x8xf32>, %m: tensor<1x4x1xf32>) -> tensor<1x4x1xf32> {
  // CHECK: ktn.squared_deviations %[[X]], %[[M]], [0, 2] : tensor<?x4x8xf32>, tensor<1x4x1xf32>
  %0 = ktn.squared_deviations %x, %m, [0, 2] : tensor<?x4x8xf32>, tensor<1x4x1xf32>
  return %0 : tensor<1x4x1xf32>
}

// CHECK-LABEL: func @logical(
// CHECK-SAME:    %[[X:.+]]: tensor<?x4xi1>)
func.func @logical(%x: tensor<?x4xi1>) {
  // CHECK: ktn.any %[[X]], [1] : tensor<?x4xi1> -> tensor<?xi1>
  %0 = ktn.any %x, [1] : tensor<?x4xi1> -> tensor<?xi1>
  // CHECK: ktn.all %[[X]], [1] : tensor<?x4xi1> -> tensor<?xi1>
  %1 = ktn.all %x, [1] : tensor<?x4xi1> -> tensor<?xi1>
  return
}

// CHECK-LABEL: func @positions(
// CHECK-SAME:    %[[X:.+]]: tensor<?x4xi32>)
func.func @positions(%x: tensor<?x4xi32>) {
  // CHECK: ktn.argmax %[[X]] {axis = 1 : i64} : tensor<?x4xi32> -> tensor<?xi64>
  %0 = ktn.argmax %x {axis = 1} : tensor<?x4xi32> -> tensor<?xi64>
  // CHECK: ktn.argmin %[[X]] {axis = 1 : i64, keepdims = true} : tensor<?x4xi32> -> tensor<?x1xi64>
  %1 = ktn.argmin %x {axis = 1, keepdims = true} : tensor<?x4xi32> -> tensor<?x1xi64>
  return
}
