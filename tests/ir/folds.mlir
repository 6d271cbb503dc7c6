// RUN: keratin-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: func @involutions(
// CHECK-SAME:    %[[X:.+]]: tensor<4xf32>, %[[P:.+]]: tensor<4xi1>)
// CHECK-NEXT:    return %[[X]], %[[P]]
func.func @involutions(%x: tensor<4xf32>, %p: tensor<4xi1>) -> (tensor<4xf32>, tensor<4xi1>) {
  %0 = ktn.neg %x : tensor<4xf32>
  %1 = ktn.neg %0 : tensor<4xf32>
  %2 = ktn.logical_not %p : tensor<4xi1>
  %3 = ktn.logical_not %2 : tensor<4xi1>
  return %1, %3 : tensor<4xf32>, tensor<4xi1>
}

// Ops that change nothing go, with unknown extents too.
// CHECK-LABEL: func @identities(
// CHECK-SAME:    %[[X:.+]]: tensor<?x4xf32>)
// CHECK-NEXT:    return %[[X]]
func.func @identities(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = ktn.cast %x to f32 : tensor<?x4xf32> -> tensor<?x4xf32>
  %1 = ktn.transpose %0, [0, 1] : tensor<?x4xf32> -> tensor<?x4xf32>
  %2 = ktn.reshape %1 to [?, 4] : tensor<?x4xf32> -> tensor<?x4xf32>
  %3 = ktn.broadcast_to %2 to [?, 4] : tensor<?x4xf32> -> tensor<?x4xf32>
  %4 = ktn.expand_dims %3, [] : tensor<?x4xf32> -> tensor<?x4xf32>
  %5 = ktn.squeeze %4, [] : tensor<?x4xf32> -> tensor<?x4xf32>
  return %5 : tensor<?x4xf32>
}

// A reshape to the same type moves elements when two extents are unknown.
// CHECK-LABEL: func @not_an_identity(
// CHECK:         %[[Y:.+]] = ktn.reshape
// CHECK:         return %[[Y]]
func.func @not_an_identity(%x: tensor<?x?xf32>, %s: tensor<2xi64>) -> tensor<?x?xf32> {
  %0 = ktn.reshape %x shape %s : tensor<2xi64> to [?, ?] : tensor<?x?xf32> -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// CHECK-LABEL: func @inverses(
// CHECK-SAME:    %[[X:.+]]: tensor<?x1x4xf32>)
// CHECK-NEXT:    return %[[X]], %[[X]], %[[X]]
func.func @inverses(%x: tensor<?x1x4xf32>) -> (tensor<?x1x4xf32>, tensor<?x1x4xf32>, tensor<?x1x4xf32>) {
  %0 = ktn.transpose %x, [2, 0, 1] : tensor<?x1x4xf32> -> tensor<4x?x1xf32>
  %1 = ktn.transpose %0, [1, 2, 0] : tensor<4x?x1xf32> -> tensor<?x1x4xf32>
  %2 = ktn.squeeze %x, [1] : tensor<?x1x4xf32> -> tensor<?x4xf32>
  %3 = ktn.expand_dims %2, [1] : tensor<?x4xf32> -> tensor<?x1x4xf32>
  %4 = ktn.expand_dims %x, [0, 3] : tensor<?x1x4xf32> -> tensor<1x?x1x1x4xf32>
  %5 = ktn.squeeze %4, [0, 3] : tensor<1x?x1x1x4xf32> -> tensor<?x1x4xf32>
  return %1, %3, %5 : tensor<?x1x4xf32>, tensor<?x1x4xf32>, tensor<?x1x4xf32>
}

// CHECK-LABEL: func @chains(
// CHECK-SAME:    %[[X:.+]]: tensor<2x3x4xf32>)
// CHECK-DAG:     %[[T:.+]] = ktn.transpose %[[X]], [2, 1, 0]
// CHECK-DAG:     %[[R:.+]] = ktn.reshape %[[X]] to [4, 6]
// CHECK:         return %[[T]], %[[R]]
func.func @chains(%x: tensor<2x3x4xf32>) -> (tensor<4x3x2xf32>, tensor<4x6xf32>) {
  %0 = ktn.transpose %x, [1, 2, 0] : tensor<2x3x4xf32> -> tensor<3x4x2xf32>
  %1 = ktn.transpose %0, [1, 0, 2] : tensor<3x4x2xf32> -> tensor<4x3x2xf32>
  %2 = ktn.reshape %x to [24] : tensor<2x3x4xf32> -> tensor<24xf32>
  %3 = ktn.reshape %2 to [4, 6] : tensor<24xf32> -> tensor<4x6xf32>
  return %1, %3 : tensor<4x3x2xf32>, tensor<4x6xf32>
}

// CHECK-LABEL: func @known_shape(
// CHECK:         %[[S:.+]] = ktn.constant dense<[2, 3]> : tensor<2xi64>
// CHECK:         return %[[S]]
func.func @known_shape(%x: tensor<2x3xf32>) -> tensor<2xi64> {
  %0 = ktn.shape %x : tensor<2x3xf32> -> tensor<2xi64>
  return %0 : tensor<2xi64>
}

// Two placeholders of one name stay two; a read stays behind an assignment.
// CHECK-LABEL: func @effects(
// CHECK:         ktn.placeholder
// CHECK:         ktn.placeholder
// CHECK:         ktn.read
// CHECK:         ktn.assign
// CHECK:         ktn.read
ktn.variable @w : tensor<4xf32> = dense<0.0> : tensor<4xf32>
func.func @effects() -> (tensor<4xf32>, tensor<4xf32>) {
  %x = ktn.placeholder "x" : tensor<4xf32>
  %y = ktn.placeholder "x" : tensor<4xf32>
  %0 = ktn.read @w : tensor<4xf32>
  %1 = ktn.add %x, %y : tensor<4xf32>
  ktn.assign @w, %1 : tensor<4xf32>
  %2 = ktn.read @w : tensor<4xf32>
  return %0, %2 : tensor<4xf32>, tensor<4xf32>
}

// A loop loses the states, outputs and slices that no result needs, and what only
// they need. The state that the other one reads stays.
// CHECK-LABEL: func @unused_parts_of_a_loop(
// CHECK-SAME:    %[[XS:.+]]: tensor<10x4xf32>, %{{.+}}: tensor<10x4xf32>, %[[A:.+]]: tensor<4xf32>
// CHECK-NEXT:    %[[R:.+]]:2 = ktn.scan (%[[X:.+]] = %[[XS]] : tensor<10x4xf32>) init (%[[S:.+]] = %[[A]] : tensor<4xf32>, %[[T:.+]] = %[[A]] : tensor<4xf32>) {
// CHECK-NEXT:      %[[N:.+]] = ktn.mul %[[S]], %[[T]]
// CHECK-NEXT:      %[[M:.+]] = ktn.add %[[T]], %[[X]]
// CHECK-NEXT:      ktn.yield %[[N]], %[[M]]
// CHECK:         return %[[R]]#0
func.func @unused_parts_of_a_loop(%xs: tensor<10x4xf32>, %ys: tensor<10x4xf32>, %a: tensor<4xf32>) -> tensor<4xf32> {
  %r:4 = ktn.scan (%x = %xs : tensor<10x4xf32>, %y = %ys : tensor<10x4xf32>) init (%s = %a : tensor<4xf32>, %t = %a : tensor<4xf32>, %u = %a : tensor<4xf32>) {
    %n = ktn.mul %s, %t : tensor<4xf32>
    %m = ktn.add %t, %x : tensor<4xf32>
    %k = ktn.mul %u, %y : tensor<4xf32>
    ktn.yield %n, %m, %k, %k : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  } -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<10x4xf32>)
  return %r#0 : tensor<4xf32>
}

// A slice stays where it alone tells the number of steps.
// CHECK-LABEL: func @counted_by_a_slice(
// CHECK-NEXT:    ktn.scan (%{{.+}} = %{{.+}} : tensor<?xf32>) init (%[[S:.+]] = %{{.+}} : tensor<4xf32>) {
// CHECK-NEXT:      ktn.mul %[[S]], %[[S]]
func.func @counted_by_a_slice(%xs: tensor<?xf32>, %a: tensor<4xf32>) -> tensor<4xf32> {
  %r = ktn.scan (%x = %xs : tensor<?xf32>) init (%s = %a : tensor<4xf32>) {
    %n = ktn.mul %s, %s : tensor<4xf32>
    ktn.yield %n : tensor<4xf32>
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// Two slices of one tensor are one; a state that stays what it is is no state.
// CHECK-LABEL: func @repeated_parts_of_a_loop(
// CHECK-SAME:    %[[XS:.+]]: tensor<10x4xf32>, %[[A:.+]]: tensor<4xf32>)
// CHECK-NEXT:    %[[R:.+]] = ktn.scan (%[[X:.+]] = %[[XS]] : tensor<10x4xf32>) init () {
// CHECK-NEXT:      %[[P:.+]] = ktn.mul %[[X]], %[[X]]
// CHECK-NEXT:      %[[Q:.+]] = ktn.add %[[P]], %[[A]]
// CHECK:         return %[[A]], %[[R]]
func.func @repeated_parts_of_a_loop(%xs: tensor<10x4xf32>, %a: tensor<4xf32>) -> (tensor<4xf32>, tensor<10x4xf32>) {
  %r:2 = ktn.scan (%x = %xs : tensor<10x4xf32>, %y = %xs : tensor<10x4xf32>) init (%s = %a : tensor<4xf32>) {
    %p = ktn.mul %x, %y : tensor<4xf32>
    %q = ktn.add %p, %s : tensor<4xf32>
    ktn.yield %s, %q : tensor<4xf32>, tensor<4xf32>
  } -> (tensor<4xf32>, tensor<10x4xf32>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<10x4xf32>
}

// What has one value has it in any shape; what would be large stays an op.
// CHECK-LABEL: func @broadcasts_of_one_value(
// CHECK-DAG:     %[[SMALL:.+]] = ktn.constant dense<2.500000e+00> : tensor<8x4xf32>
// CHECK-DAG:     %[[LARGE:.+]] = ktn.broadcast_to %{{.+}} to [512, 512]
// CHECK:         return %[[SMALL]], %[[LARGE]]
func.func @broadcasts_of_one_value() -> (tensor<8x4xf32>, tensor<512x512xf32>) {
  %v = ktn.constant dense<2.5> : tensor<f32>
  %row = ktn.constant dense<2.5> : tensor<1x4xf32>
  %small = ktn.broadcast_to %row to [8, 4] : tensor<1x4xf32> -> tensor<8x4xf32>
  %large = ktn.broadcast_to %v to [512, 512] : tensor<f32> -> tensor<512x512xf32>
  return %small, %large : tensor<8x4xf32>, tensor<512x512xf32>
}

// A product of matrices reads what its factors are transposes of, by the axes
// there; but weights, which are transposed when this is compiled, and where
// axes that are one for the product would be apart.
// CHECK-LABEL: func @products_of_transposes(
// CHECK-SAME:    %[[X:.+]]: tensor<?x5x2x8xf32>, %[[Y:.+]]: tensor<?x6x2x8xf32>)
// CHECK-DAG:     %[[W:.+]] = ktn.transpose %{{.+}}, [1, 0]
// CHECK-DAG:     %[[MOVED:.+]] = ktn.transpose %[[X]], [0, 2, 1, 3]
// CHECK-DAG:     ktn.dot_general %[[X]], %[[Y]] batch [0, 2] x [0, 2] contract [3] x [3]
// CHECK-DAG:     ktn.dot_general %[[MOVED]], %[[W]] contract [3] x [0]
// CHECK-DAG:     %[[JOINED:.+]] = ktn.transpose %[[X]], [0, 1, 3, 2]
// CHECK-DAG:     ktn.dot_general %[[JOINED]], %{{.+}} contract [2, 3] x [0, 1]
// CHECK:         return
func.func @products_of_transposes(%x: tensor<?x5x2x8xf32>, %y: tensor<?x6x2x8xf32>) -> (tensor<?x2x5x6xf32>, tensor<?x2x5x3xf32>, tensor<?x5x3xf32>) {
  %w = ktn.constant dense<[[1., 2., 3., 4., 5., 6., 7., 8.], [1., 0., 0., 0., 0., 0., 0., 0.], [0., 1., 0., 0., 0., 0., 0., 0.]]> : tensor<3x8xf32>
  %q = ktn.transpose %x, [0, 2, 1, 3] : tensor<?x5x2x8xf32> -> tensor<?x2x5x8xf32>
  %k = ktn.transpose %y, [0, 2, 3, 1] : tensor<?x6x2x8xf32> -> tensor<?x2x8x6xf32>
  %scores = ktn.dot_general %q, %k batch [0, 1] x [0, 1] contract [3] x [2] : tensor<?x2x5x8xf32>, tensor<?x2x8x6xf32> -> tensor<?x2x5x6xf32>
  %t = ktn.transpose %w, [1, 0] : tensor<3x8xf32> -> tensor<8x3xf32>
  %z = ktn.dot_general %q, %t contract [3] x [0] : tensor<?x2x5x8xf32>, tensor<8x3xf32> -> tensor<?x2x5x3xf32>
  %joined = ktn.transpose %x, [0, 1, 3, 2] : tensor<?x5x2x8xf32> -> tensor<?x5x8x2xf32>
  %v = ktn.constant dense<1.> : tensor<8x2x3xf32>
  %heads = ktn.dot_general %joined, %v contract [2, 3] x [0, 1] : tensor<?x5x8x2xf32>, tensor<8x2x3xf32> -> tensor<?x5x3xf32>
  return %scores, %z, %heads : tensor<?x2x5x6xf32>, tensor<?x2x5x3xf32>, tensor<?x5x3xf32>
}

// Powers by small known numbers are products, quotients and roots.
// CHECK-LABEL: func @powers(
// CHECK-SAME:    %[[X:.+]]: tensor<?x4xf32>, %[[H:.+]]: tensor<4xbf16>)
// CHECK-DAG:     %[[ONE:.+]] = ktn.constant dense<1.000000e+00>
// CHECK-DAG:     %[[INF:.+]] = ktn.constant dense<0x7F800000>
// CHECK-DAG:     %[[LEAST:.+]] = ktn.constant dense<0xFF800000>
// CHECK:         %[[SQUARE:.+]] = ktn.mul %[[X]], %[[X]]
// CHECK:         %[[B:.+]] = ktn.mul %[[X]], %[[X]]
// CHECK:         %[[CUBE:.+]] = ktn.mul %[[B]], %[[X]]
// CHECK:         %[[S:.+]] = ktn.mul %[[X]], %[[X]]
// CHECK:         %[[FOURTH:.+]] = ktn.mul %[[S]], %[[S]]
// CHECK:         %[[INVERSE:.+]] = ktn.div %[[ONE]], %[[X]]
// CHECK:         %[[ZERO:.+]] = ktn.add %[[X]], %{{.+}}
// CHECK:         %[[SQRT:.+]] = ktn.sqrt %[[ZERO]]
// CHECK:         %[[IS:.+]] = ktn.equal %[[X]], %[[LEAST]]
// CHECK:         %[[ROOT:.+]] = ktn.select %[[IS]], %[[INF]], %[[SQRT]]
// CHECK:         %[[OTHER:.+]] = ktn.pow %[[X]]
// CHECK:         %[[HALF:.+]] = ktn.mul %[[H]], %[[H]]
// CHECK:         %[[ROUNDED:.+]] = ktn.pow %[[H]]
// CHECK:         return %[[SQUARE]], %[[CUBE]], %[[FOURTH]], %[[INVERSE]], %[[ROOT]], %[[OTHER]], %[[HALF]], %[[ROUNDED]]
func.func @powers(%x: tensor<?x4xf32>, %h: tensor<4xbf16>) -> (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<4xbf16>, tensor<4xbf16>) {
  %c2 = ktn.constant dense<2.0> : tensor<f32>
  %c3 = ktn.constant dense<3.0> : tensor<4xf32>
  %c4 = ktn.constant dense<4.0> : tensor<f32>
  %m1 = ktn.constant dense<-1.0> : tensor<f32>
  %half = ktn.constant dense<0.5> : tensor<f32>
  %some = ktn.constant dense<2.3> : tensor<f32>
  %h2 = ktn.constant dense<2.0> : tensor<bf16>
  %h3 = ktn.constant dense<3.0> : tensor<bf16>
  %0 = ktn.pow %x, %c2 : tensor<?x4xf32>, tensor<f32> -> tensor<?x4xf32>
  %1 = ktn.pow %x, %c3 : tensor<?x4xf32>, tensor<4xf32> -> tensor<?x4xf32>
  %2 = ktn.pow %x, %c4 : tensor<?x4xf32>, tensor<f32> -> tensor<?x4xf32>
  %3 = ktn.pow %x, %m1 : tensor<?x4xf32>, tensor<f32> -> tensor<?x4xf32>
  %4 = ktn.pow %x, %half : tensor<?x4xf32>, tensor<f32> -> tensor<?x4xf32>
  %5 = ktn.pow %x, %some : tensor<?x4xf32>, tensor<f32> -> tensor<?x4xf32>
  %6 = ktn.pow %h, %h2 : tensor<4xbf16>, tensor<bf16> -> tensor<4xbf16>
  %7 = ktn.pow %h, %h3 : tensor<4xbf16>, tensor<bf16> -> tensor<4xbf16>
  return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<4xbf16>, tensor<4xbf16>
}

// The result has the shape of the exponent here.
// CHECK-LABEL: func @more_than_x(
// CHECK:         ktn.pow
func.func @more_than_x(%x: tensor<f32>) -> tensor<4xf32> {
  %c2 = ktn.constant dense<2.0> : tensor<4xf32>
  %0 = ktn.pow %x, %c2 : tensor<f32>, tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
