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

// The loop stacks the states before each step. A loop in the other direction takes
// them and sums up the gradient of what the body takes from outside.
// CHECK-LABEL: func @loop(
// CHECK-SAME:    %[[XS:.+]]: tensor<10x4xf32>, %[[S0:.+]]: tensor<4xf32>, %[[W:.+]]: tensor<4xf32>)
// CHECK-DAG:     %[[ZERO:.+]] = ktn.constant dense<0.000000e+00> : tensor<4xf32>
// CHECK:         %[[KEPT:.+]]:2 = ktn.scan (%{{.+}} = %[[XS]] : tensor<10x4xf32>) init (%[[S:.+]] = %[[S0]] : tensor<4xf32>) {
// CHECK:           ktn.yield %{{.+}}, %[[S]]
// CHECK:         ktn.scan (%{{.+}} = %[[KEPT]]#1 : tensor<10x4xf32>) init (%[[DS:.+]] = %{{.+}} : tensor<4xf32>, %[[SUM:.+]] = %[[ZERO]] : tensor<4xf32>) reverse {
// CHECK:           %[[NEXT:.+]] = ktn.add %[[SUM]], %{{.+}}
// CHECK:           ktn.yield %{{.+}}, %[[NEXT]] : tensor<4xf32>, tensor<4xf32>
func.func @loop(%xs: tensor<10x4xf32>, %s0: tensor<4xf32>, %w: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %last = ktn.scan (%x = %xs : tensor<10x4xf32>) init (%s = %s0 : tensor<4xf32>) {
    %p = ktn.mul %s, %w : tensor<4xf32>
    %n = ktn.add %p, %x : tensor<4xf32>
    ktn.yield %n : tensor<4xf32>
  } -> tensor<4xf32>
  %g:2 = ktn.gradients %last wrt %s0, %w : tensor<4xf32> wrt tensor<4xf32>, tensor<4xf32>
  return %g#0, %g#1 : tensor<4xf32>, tensor<4xf32>
}

// The slices' gradients are stacked; a counter has none and goes nowhere.
// CHECK-LABEL: func @slices(
// CHECK-SAME:    %[[XS:.+]]: tensor<?x4xf32>, %{{.+}}: tensor<i32>)
// CHECK:         %[[BACK:.+]]:2 = ktn.scan {{.+}} init (%{{.+}} = %{{.+}} : tensor<4xf32>) reverse {
// CHECK:           ktn.yield %{{.+}}, %{{.+}} : tensor<4xf32>, tensor<4xf32>
// CHECK:         return %[[BACK]]#1
func.func @slices(%xs: tensor<?x4xf32>, %n0: tensor<i32>) -> tensor<?x4xf32> {
  %zero = ktn.constant dense<0.0> : tensor<4xf32>
  %one = ktn.constant dense<1> : tensor<i32>
  %count, %last = ktn.scan (%x = %xs : tensor<?x4xf32>) init (%c = %n0 : tensor<i32>, %s = %zero : tensor<4xf32>) {
    %next = ktn.add %c, %one : tensor<i32>
    %p = ktn.mul %s, %x : tensor<4xf32>
    %t = ktn.tanh %p : tensor<4xf32>
    ktn.yield %next, %t : tensor<i32>, tensor<4xf32>
  } -> (tensor<i32>, tensor<4xf32>)
  %dx = ktn.gradients %last wrt %xs : tensor<4xf32> wrt tensor<?x4xf32>
  return %dx : tensor<?x4xf32>
}

// What comes from neighbouring parts is put together, not padded and added.
// CHECK-LABEL: func @parts(
// CHECK-NOT:     ktn.pad
// CHECK:         ktn.concat %{{.+}}, %{{.+}}, %{{.+}} {axis = 1 : i64} : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x12xf32>
// CHECK:         return
func.func @parts(%x: tensor<?x12xf32>) -> tensor<?x12xf32> {
  %a = ktn.slice %x[0:?:1, 0:4:1] : tensor<?x12xf32> -> tensor<?x4xf32>
  %b = ktn.slice %x[0:?:1, 4:8:1] : tensor<?x12xf32> -> tensor<?x4xf32>
  %c = ktn.slice %x[0:?:1, 8:12:1] : tensor<?x12xf32> -> tensor<?x4xf32>
  %p = ktn.mul %a, %b : tensor<?x4xf32>
  %q = ktn.mul %p, %c : tensor<?x4xf32>
  %g = ktn.gradients %q wrt %x : tensor<?x4xf32> wrt tensor<?x12xf32>
  return %g : tensor<?x12xf32>
}

// Parts with something between them are added.
// CHECK-LABEL: func @far_parts(
// CHECK-COUNT-2: ktn.pad
// CHECK:         ktn.add
// CHECK:         return
func.func @far_parts(%x: tensor<?x12xf32>) -> tensor<?x12xf32> {
  %a = ktn.slice %x[0:?:1, 0:4:1] : tensor<?x12xf32> -> tensor<?x4xf32>
  %c = ktn.slice %x[0:?:1, 8:12:1] : tensor<?x12xf32> -> tensor<?x4xf32>
  %q = ktn.mul %a, %c : tensor<?x4xf32>
  %g = ktn.gradients %q wrt %x : tensor<?x4xf32> wrt tensor<?x12xf32>
  return %g : tensor<?x12xf32>
}
