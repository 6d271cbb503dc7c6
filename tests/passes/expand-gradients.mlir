// RUN: keratin-opt %s --ktn-expand-gradients --canonicalize | FileCheck %s

// Two paths to %x add up: d(x * x + x) = x + x + 1.
// CHECK-LABEL: func @two_paths(
// CHECK-SAME:    %[[X:.+]]: tensor<2x3xf32>)
// CHECK-NOT:     ktn.gradients
// CHECK:         %[[ONE:.+]] = ktn.constant dense<1.000000e+00> : tensor<2x3xf32>
// CHECK:         %[[LEFT:.+]] = ktn.mul %{{.+}}, %{{.+}} : tensor<2x3xf32>
// CHECK:         %[[SUM:.+]] = ktn.add %{{.+}}, %{{.+}} : tensor<2x3xf32>
// CHECK:         %[[DX:.+]] = ktn.add {{.*}}%[[SUM]]{{.*}} : tensor<2x3xf32>
// CHECK:         return %[[DX]]
func.func @two_paths(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %square = ktn.mul %x, %x : tensor<2x3xf32>
  %y = ktn.add %square, %x : tensor<2x3xf32>
  %dx = ktn.gradients %y wrt %x : tensor<2x3xf32> wrt tensor<2x3xf32>
  return %dx : tensor<2x3xf32>
}

// What the target does not depend on has the gradient zero, of a shape that is
// known at run time if need be.
// CHECK-LABEL: func @unconnected(
// CHECK-SAME:    %[[X:.+]]: tensor<?x3xf32>, %[[Z:.+]]: tensor<?x4xf32>)
// CHECK-DAG:     %[[ZERO:.+]] = ktn.constant dense<0.000000e+00> : tensor<f32>
// CHECK-DAG:     %[[SHAPE:.+]] = ktn.shape %[[Z]]
// CHECK:         %[[DZ:.+]] = ktn.broadcast_to %[[ZERO]] shape %[[SHAPE]]
// CHECK:         return %[[DZ]]
func.func @unconnected(%x: tensor<?x3xf32>, %z: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %y = ktn.neg %x : tensor<?x3xf32>
  %dz = ktn.gradients %y wrt %z : tensor<?x3xf32> wrt tensor<?x4xf32>
  return %dz : tensor<?x4xf32>
}

// A gradient of a gradient is more graph.
// CHECK-LABEL: func @second_order(
// CHECK-NOT:     ktn.gradients
// CHECK:         return
func.func @second_order(%x: tensor<3xf32>) -> tensor<3xf32> {
  %y = ktn.exp %x : tensor<3xf32>
  %dx = ktn.gradients %y wrt %x : tensor<3xf32> wrt tensor<3xf32>
  %ddx = ktn.gradients %dx wrt %x : tensor<3xf32> wrt tensor<3xf32>
  return %ddx : tensor<3xf32>
}
