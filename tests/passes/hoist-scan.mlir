// RUN: keratin-opt %s --ktn-hoist-scan | FileCheck %s

// Products of inputs and weights, and the bias, are computed for all steps at once.
// The state's product stays.
// CHECK-LABEL: func @recurrent(
// CHECK-SAME:    %[[XS:.+]]: tensor<10x?x8xf32>, %[[S0:.+]]: tensor<?x4xf32>, %[[W:.+]]: tensor<8x4xf32>, %[[U:.+]]: tensor<4x4xf32>, %[[B:.+]]: tensor<4xf32>)
// CHECK:         %[[P:.+]] = ktn.dot_general %[[XS]], %[[W]] contract [2] x [0] : tensor<10x?x8xf32>, tensor<8x4xf32> -> tensor<10x?x4xf32>
// CHECK-NEXT:    %[[PB:.+]] = ktn.add %[[P]], %[[B]]
// CHECK-NEXT:    ktn.scan (%[[Z:.+]] = %[[PB]] : tensor<10x?x4xf32>) init (%[[S:.+]] = %[[S0]] :
// CHECK-NEXT:      %[[Q:.+]] = ktn.dot_general %[[S]], %[[U]]
// CHECK-NEXT:      ktn.add %[[Z]], %[[Q]]
func.func @recurrent(%xs: tensor<10x?x8xf32>, %s0: tensor<?x4xf32>, %w: tensor<8x4xf32>, %u: tensor<4x4xf32>, %b: tensor<4xf32>) -> tensor<?x4xf32> {
  %r = ktn.scan (%x = %xs : tensor<10x?x8xf32>) init (%s = %s0 : tensor<?x4xf32>) {
    %p = ktn.dot_general %x, %w contract [1] x [0] : tensor<?x8xf32>, tensor<8x4xf32> -> tensor<?x4xf32>
    %pb = ktn.add %p, %b : tensor<?x4xf32>, tensor<4xf32> -> tensor<?x4xf32>
    %q = ktn.dot_general %s, %u contract [1] x [0] : tensor<?x4xf32>, tensor<4x4xf32> -> tensor<?x4xf32>
    %n = ktn.add %pb, %q : tensor<?x4xf32>
    ktn.yield %n : tensor<?x4xf32>
  } -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}

// What is the same in every step is computed once.
// CHECK-LABEL: func @invariant(
// CHECK-SAME:    %{{.+}}: tensor<10x4xf32>, %{{.+}}: tensor<4xf32>, %[[W:.+]]: tensor<4xf32>)
// CHECK-NEXT:    %[[E:.+]] = ktn.exp %[[W]]
// CHECK-NEXT:    ktn.scan
// CHECK-NEXT:      ktn.mul %{{.+}}, %[[E]]
func.func @invariant(%xs: tensor<10x4xf32>, %s0: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %r = ktn.scan (%x = %xs : tensor<10x4xf32>) init (%s = %s0 : tensor<4xf32>) {
    %e = ktn.exp %w : tensor<4xf32>
    %n = ktn.mul %s, %e : tensor<4xf32>
    ktn.yield %n : tensor<4xf32>
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// A slice of lower rank than the result keeps its place among the axes.
// CHECK-LABEL: func @lower_rank(
// CHECK:         %[[COLUMN:.+]] = ktn.expand_dims %{{.+}}, [1] : tensor<10x4xf32> -> tensor<10x1x4xf32>
// CHECK:         ktn.mul %[[COLUMN]], %{{.+}} : tensor<10x1x4xf32>, tensor<3x4xf32> -> tensor<10x3x4xf32>
// CHECK:         ktn.scan
func.func @lower_rank(%xs: tensor<10x4xf32>, %s0: tensor<3x4xf32>, %w: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = ktn.scan (%x = %xs : tensor<10x4xf32>) init (%s = %s0 : tensor<3x4xf32>) {
    %p = ktn.mul %x, %w : tensor<4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
    %n = ktn.add %s, %p : tensor<3x4xf32>
    ktn.yield %n : tensor<3x4xf32>
  } -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
