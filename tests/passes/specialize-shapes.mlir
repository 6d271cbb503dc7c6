// RUN: keratin-opt %s --ktn-specialize-shapes=batch=3 | FileCheck %s

// Every type follows from those of the arguments, and the signature from the
// results.
// CHECK-LABEL: func @dense(
// CHECK-SAME:    %{{.+}}: tensor<3x8xf32>, %{{.+}}: tensor<8x4xf32>) -> tensor<12xf32>
// CHECK:         ktn.dot_general {{.+}} -> tensor<3x4xf32>
// CHECK:         ktn.reshape {{.+}} : tensor<3x4xf32> -> tensor<12xf32>
func.func @dense(%x: tensor<?x8xf32>, %w: tensor<8x4xf32>) -> tensor<?xf32> {
  %y = ktn.dot_general %x, %w contract [1] x [0] : tensor<?x8xf32>, tensor<8x4xf32> -> tensor<?x4xf32>
  %flat = ktn.reshape %y to [?] : tensor<?x4xf32> -> tensor<?xf32>
  return %flat : tensor<?xf32>
}

// Shape arithmetic is folded, and the state of a loop and its body follow.
// CHECK-LABEL: func @recurrent(
// CHECK-NOT:     ktn.shape
// CHECK:         ktn.constant dense<0.000000e+00> : tensor<6x8xf32>
// CHECK:         ktn.scan
// CHECK:           ktn.add {{.+}} : tensor<6x8xf32>
// CHECK:         -> tensor<6x8xf32>
func.func @recurrent(%x: tensor<?x2x8xf32>, %xs: tensor<10x6x8xf32>) -> tensor<?x8xf32> {
  %zero = ktn.constant dense<0.0> : tensor<f32>
  %two = ktn.constant dense<2> : tensor<i64>
  %units = ktn.constant dense<[8]> : tensor<1xi64>
  %shape = ktn.shape %x : tensor<?x2x8xf32> -> tensor<3xi64>
  %batch = ktn.slice %shape[0:1:1] : tensor<3xi64> -> tensor<1xi64>
  %twice = ktn.mul %batch, %two : tensor<1xi64>, tensor<i64> -> tensor<1xi64>
  %target = ktn.concat %twice, %units {axis = 0} : tensor<1xi64>, tensor<1xi64> -> tensor<2xi64>
  %s0 = ktn.broadcast_to %zero shape %target : tensor<2xi64> to [?, 8] : tensor<f32> -> tensor<?x8xf32>
  %r = ktn.scan (%t = %xs : tensor<10x6x8xf32>) init (%s = %s0 : tensor<?x8xf32>) {
    %n = ktn.add %s, %s : tensor<?x8xf32>
    ktn.yield %n : tensor<?x8xf32>
  } -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}

// Conversions between integers are arithmetic of shapes too.
// CHECK-LABEL: func @positions(
// CHECK-NOT:     ktn.shape
// CHECK:         ktn.iota [3], i32 {{.+}} : tensor<3xi32>
func.func @positions(%x: tensor<?x8xf32>) -> tensor<?xi32> {
  %shape = ktn.shape %x : tensor<?x8xf32> -> tensor<2xi64>
  %narrow = ktn.cast %shape to i32 : tensor<2xi64> -> tensor<2xi32>
  %batch = ktn.slice %narrow[0:1:1] : tensor<2xi32> -> tensor<1xi32>
  %n = ktn.cast %batch to i64 : tensor<1xi32> -> tensor<1xi64>
  %y = ktn.iota shape %n : tensor<1xi64> to [?], i32 {axis = 0} : tensor<?xi32>
  return %y : tensor<?xi32>
}

// The number of elements of a shape, and what is left of it for one extent.
// CHECK-LABEL: func @inferred_extent(
// CHECK:         ktn.reshape %{{.+}} to [3, 6, 1] :
func.func @inferred_extent(%x: tensor<?x6xf32>) -> tensor<?x?x1xf32> {
  %shape = ktn.shape %x : tensor<?x6xf32> -> tensor<2xi64>
  %all = ktn.prod %shape, [0] : tensor<2xi64> -> tensor<i64>
  %rows = ktn.slice %shape[0:1:1] : tensor<2xi64> -> tensor<1xi64>
  %row_count = ktn.squeeze %rows, [0] : tensor<1xi64> -> tensor<i64>
  %rest = ktn.floordiv %all, %row_count : tensor<i64>
  %columns = ktn.reshape %rest to [1] : tensor<i64> -> tensor<1xi64>
  %one = ktn.constant dense<1> : tensor<1xi64>
  %target = ktn.concat %rows, %columns, %one {axis = 0 : i64} : tensor<1xi64>, tensor<1xi64>, tensor<1xi64> -> tensor<3xi64>
  %y = ktn.reshape %x shape %target : tensor<3xi64> to [?, ?, 1] : tensor<?x6xf32> -> tensor<?x?x1xf32>
  return %y : tensor<?x?x1xf32>
}

// The padding "same" of windows follows from the extents.
// CHECK-LABEL: func @same(
// CHECK-NOT:     same}
// CHECK:         ktn.conv {{.+}} strides [2] padding [0, 1] dilation [1] channels_last : tensor<3x8x3xf32>
// CHECK:         ktn.max_pool {{.+}} strides [3] padding [1, 1] channels_last : tensor<3x4x6xf32> -> tensor<3x2x6xf32>
func.func @same(%x: tensor<?x8x3xf32>, %w: tensor<3x3x6xf32>) -> tensor<?x2x6xf32> {
  %y = ktn.conv %x, %w strides [2] padding [0, 0] dilation [1] channels_last {same} : tensor<?x8x3xf32>, tensor<3x3x6xf32> -> tensor<?x4x6xf32>
  %z = ktn.max_pool %y size [3] strides [3] padding [0, 0] channels_last {same} : tensor<?x4x6xf32> -> tensor<?x2x6xf32>
  return %z : tensor<?x2x6xf32>
}

// So does that of a transposed convolution, whose extent is computed.
// CHECK-LABEL: func @transposed(
// CHECK:         ktn.conv_transpose %{{.+}}, %{{.+}} strides [2] padding [0, 1] dilation [1] to [8] channels_last : tensor<3x4x6xf32>, tensor<3x5x6xf32> -> tensor<3x8x5xf32>
func.func @transposed(%x: tensor<?x4x6xf32>, %w: tensor<3x5x6xf32>) -> tensor<?x?x5xf32> {
  %two = ktn.constant dense<2> : tensor<i64>
  %shape = ktn.shape %x : tensor<?x4x6xf32> -> tensor<3xi64>
  %extent = ktn.slice %shape[1:2:1] : tensor<3xi64> -> tensor<1xi64>
  %twice = ktn.mul %extent, %two : tensor<1xi64>, tensor<i64> -> tensor<1xi64>
  %y = ktn.conv_transpose %x, %w shape %twice : tensor<1xi64> strides [2] padding [0, 0] dilation [1] to [?] channels_last {same} : tensor<?x4x6xf32>, tensor<3x5x6xf32> -> tensor<?x?x5xf32>
  return %y : tensor<?x?x5xf32>
}

// Of a shape some extents are known, and others not.
// CHECK-LABEL: func @known_part(
// CHECK:         ktn.constant dense<0.000000e+00> : tensor<2x8xf32>
func.func @known_part(%x: tensor<2x?xf32>) -> tensor<?x8xf32> {
  %zero = ktn.constant dense<0.0> : tensor<f32>
  %units = ktn.constant dense<[8]> : tensor<1xi64>
  %all = ktn.shape %x : tensor<2x?xf32> -> tensor<2xi64>
  %narrow = ktn.cast %all to i32 : tensor<2xi64> -> tensor<2xi32>
  %first = ktn.slice %narrow[0:1:1] : tensor<2xi32> -> tensor<1xi32>
  %wide = ktn.cast %first to i64 : tensor<1xi32> -> tensor<1xi64>
  %target = ktn.concat %wide, %units {axis = 0} : tensor<1xi64>, tensor<1xi64> -> tensor<2xi64>
  %z = ktn.broadcast_to %zero shape %target : tensor<2xi64> to [?, 8] : tensor<f32> -> tensor<?x8xf32>
  return %z : tensor<?x8xf32>
}
