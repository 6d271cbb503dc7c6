// RUN: keratin-opt %s | keratin-opt | FileCheck %s
// RUN: keratin-opt %s --emit-bytecode | keratin-opt | FileCheck %s

// CHECK-LABEL: func @dot(
// CHECK-SAME:    %[[A:.+]]: tensor<?x784xf32>, %[[B:.+]]: tensor<784x10xf32>)
func.func @dot(%a: tensor<?x784xf32>, %b: tensor<784x10xf32>) {
  // CHECK: ktn.dot_general %[[A]], %[[B]] contract [1] x [0] : tensor<?x784xf32>, tensor<784x10xf32> -> tensor<?x10xf32>
  %0 = ktn.dot_general %a, %b contract [1] x [0] : tensor<?x784xf32>, tensor<784x10xf32> -> tensor<?x10xf32>
  return
}

// The result has the batch axes, then those of lhs, then those of rhs.
// CHECK-LABEL: func @batch(
// CHECK-SAME:    %[[A:.+]]: tensor<7x?x3x2xf32>, %[[B:.+]]: tensor<3x5x7x9xf32>)
func.func @batch(%a: tensor<7x?x3x2xf32>, %b: tensor<3x5x7x9xf32>) {
  // CHECK: ktn.dot_general %[[A]], %[[B]] batch [2, 0] x [0, 2] contract [1] x [1] : tensor<7x?x3x2xf32>, tensor<3x5x7x9xf32> -> tensor<3x7x2x9xf32>
  %0 = ktn.dot_general %a, %b batch [2, 0] x [0, 2] contract [1] x [1] : tensor<7x?x3x2xf32>, tensor<3x5x7x9xf32> -> tensor<3x7x2x9xf32>
  return
}

// An outer product contracts nothing.
// CHECK-LABEL: func @outer(
func.func @outer(%a: tensor<3xi32>, %b: tensor<5xi32>) {
  // CHECK: contract [] x [] : tensor<3xi32>, tensor<5xi32> -> tensor<3x5xi32>
  %0 = ktn.dot_general %a, %b contract [] x [] : tensor<3xi32>, tensor<5xi32> -> tensor<3x5xi32>
  return
}
