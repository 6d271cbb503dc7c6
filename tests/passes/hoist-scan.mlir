// RUN: keratin-opt %s --ktn-hoist-scan --canonicalize | FileCheck %s

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
// CHECK:         %[[P:.+]] = ktn.mul %[[COLUMN]], %{{.+}} : tensor<10x1x4xf32>, tensor<3x4xf32> -> tensor<10x3x4xf32>
// CHECK:         %[[Q:.+]] = ktn.dot_general %[[P]], %{{.+}} contract [2] x [0]
// CHECK:         ktn.scan (%{{.+}} = %[[Q]]
func.func @lower_rank(%xs: tensor<10x4xf32>, %s0: tensor<3x4xf32>, %w: tensor<3x4xf32>, %u: tensor<4x4xf32>) -> tensor<3x4xf32> {
  %r = ktn.scan (%x = %xs : tensor<10x4xf32>) init (%s = %s0 : tensor<3x4xf32>) {
    %p = ktn.mul %x, %w : tensor<4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
    %q = ktn.dot_general %p, %u contract [1] x [0] : tensor<3x4xf32>, tensor<4x4xf32> -> tensor<3x4xf32>
    %n = ktn.add %s, %q : tensor<3x4xf32>
    %t = ktn.tanh %n : tensor<3x4xf32>
    ktn.yield %t : tensor<3x4xf32>
  } -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// What computes on single elements of slices stays: it costs no more there, and a
// stack less.
// CHECK-LABEL: func @elementwise(
// CHECK-NEXT:    ktn.scan
// CHECK-NEXT:      ktn.mul
func.func @elementwise(%xs: tensor<10x4xf32>, %ys: tensor<10x4xf32>, %s0: tensor<4xf32>) -> tensor<4xf32> {
  %r = ktn.scan (%x = %xs : tensor<10x4xf32>, %y = %ys : tensor<10x4xf32>) init (%s = %s0 : tensor<4xf32>) {
    %p = ktn.mul %x, %y : tensor<4xf32>
    %n = ktn.mul %s, %p : tensor<4xf32>
    ktn.yield %n : tensor<4xf32>
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// The gradient of weights, a sum of products of all steps, is one product behind
// the loop, over the steps as well; that of a bias one sum.
// CHECK-LABEL: func @sum_of_products(
// CHECK-SAME:    %[[XS:.+]]: tensor<10x5x4xf32>
// CHECK:         %[[LOOP:.+]]:{{.+}} = ktn.scan
// CHECK:           %[[DZ:.+]] = ktn.tanh
// CHECK-NOT:       ktn.dot_general
// CHECK:           ktn.yield {{.+}}, %[[DZ]] :
// CHECK-DAG:     ktn.dot_general %[[XS]], %[[LOOP]]#{{[0-9]+}} contract [0, 1] x [0, 1] : tensor<10x5x4xf32>, tensor<10x5x4xf32> -> tensor<4x4xf32>
// CHECK-DAG:     ktn.sum %[[LOOP]]#{{[0-9]+}}, [0, 1] : tensor<10x5x4xf32> -> tensor<4xf32>
func.func @sum_of_products(%xs: tensor<10x5x4xf32>, %s0: tensor<5x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>) {
  %zeros = ktn.constant dense<0.0> : tensor<4x4xf32>
  %zero = ktn.constant dense<0.0> : tensor<4xf32>
  %r:3 = ktn.scan (%x = %xs : tensor<10x5x4xf32>) init (%s = %s0 : tensor<5x4xf32>, %dw = %zeros : tensor<4x4xf32>, %db = %zero : tensor<4xf32>) reverse {
    %dz = ktn.tanh %s : tensor<5x4xf32>
    %p = ktn.dot_general %x, %dz contract [0] x [0] : tensor<5x4xf32>, tensor<5x4xf32> -> tensor<4x4xf32>
    %dw1 = ktn.add %dw, %p : tensor<4x4xf32>
    %q = ktn.sum %dz, [0] : tensor<5x4xf32> -> tensor<4xf32>
    %db1 = ktn.add %q, %db : tensor<4xf32>
    ktn.yield %dz, %dw1, %db1 : tensor<5x4xf32>, tensor<4x4xf32>, tensor<4xf32>
  } -> (tensor<5x4xf32>, tensor<4x4xf32>, tensor<4xf32>)
  return %r#1, %r#2 : tensor<4x4xf32>, tensor<4xf32>
}

// A sum of what is as large as itself in each step stays, or all would be kept.
// CHECK-LABEL: func @large_terms(
// CHECK-NEXT:    ktn.scan
// CHECK:           ktn.yield %{{.+}} : tensor<4xf32>
func.func @large_terms(%xs: tensor<10x4xf32>, %s0: tensor<4xf32>) -> tensor<4xf32> {
  %r = ktn.scan (%x = %xs : tensor<10x4xf32>) init (%s = %s0 : tensor<4xf32>) {
    %p = ktn.tanh %x : tensor<4xf32>
    %n = ktn.add %s, %p : tensor<4xf32>
    ktn.yield %n : tensor<4xf32>
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
