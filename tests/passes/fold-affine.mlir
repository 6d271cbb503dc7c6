// RUN: keratin-opt %s --ktn-fold-affine | FileCheck %s

// Bias, scale and shift become weights times the scale and one shift.
// CHECK-LABEL: func @batch_norm(
// CHECK-SAME:    %[[X:.+]]: tensor<?x8x8x2xf32>)
// CHECK-DAG:     %[[K:.+]] = ktn.constant dense<5.000000e-01> : tensor<1x1x2x2xf32>
// CHECK-DAG:     %[[SCALED:.+]] = ktn.mul %[[K]], %{{.+}} : tensor<1x1x2x2xf32>, tensor<2xf32>
// CHECK:         %[[Y:.+]] = ktn.conv %[[X]], %[[SCALED]]
// CHECK-NEXT:    %[[SHIFTED:.+]] = ktn.add %[[Y]], %{{.+}} : tensor<?x8x8x2xf32>, tensor<2xf32>
// CHECK-NEXT:    return %[[SHIFTED]]
func.func @batch_norm(%x: tensor<?x8x8x2xf32>) -> tensor<?x8x8x2xf32> {
  %k = ktn.constant dense<0.5> : tensor<1x1x2x2xf32>
  %bias = ktn.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %mean = ktn.constant dense<[3.0, 4.0]> : tensor<2xf32>
  %scale = ktn.constant dense<[[[[5.0, 6.0]]]]> : tensor<1x1x1x2xf32>
  %beta = ktn.constant dense<[7.0, 8.0]> : tensor<2xf32>
  %0 = ktn.conv %x, %k strides [1, 1] padding [0, 0, 0, 0] dilation [1, 1] channels_last
      : tensor<?x8x8x2xf32>, tensor<1x1x2x2xf32> -> tensor<?x8x8x2xf32>
  %1 = ktn.bias_add %0, %bias, channels_last : tensor<?x8x8x2xf32>, tensor<2xf32>
  %2 = ktn.sub %1, %mean : tensor<?x8x8x2xf32>, tensor<2xf32> -> tensor<?x8x8x2xf32>
  %3 = ktn.mul %2, %scale : tensor<?x8x8x2xf32>, tensor<1x1x1x2xf32> -> tensor<?x8x8x2xf32>
  %4 = ktn.add %3, %beta : tensor<?x8x8x2xf32>, tensor<2xf32> -> tensor<?x8x8x2xf32>
  return %4 : tensor<?x8x8x2xf32>
}

// With channels first the scale lies along axis 1 of the result and along the last
// of the weights.
// CHECK-LABEL: func @channels_first(
// CHECK-DAG:     %[[SCALE:.+]] = ktn.reshape %{{.+}} to [2] : tensor<2x1xf32> -> tensor<2xf32>
// CHECK-DAG:     %[[SCALED:.+]] = ktn.mul %{{.+}}, %[[SCALE]] : tensor<1x2x2xf32>, tensor<2xf32>
// CHECK:         ktn.conv %{{.+}}, %[[SCALED]]
// CHECK-NEXT:    return
func.func @channels_first(%x: tensor<?x2x8xf32>) -> tensor<?x2x8xf32> {
  %k = ktn.constant dense<0.5> : tensor<1x2x2xf32>
  %scale = ktn.constant dense<[[5.0], [6.0]]> : tensor<2x1xf32>
  %0 = ktn.conv %x, %k strides [1] padding [0, 0] dilation [1] channels_first
      : tensor<?x2x8xf32>, tensor<1x2x2xf32> -> tensor<?x2x8xf32>
  %1 = ktn.mul %0, %scale : tensor<?x2x8xf32>, tensor<2x1xf32> -> tensor<?x2x8xf32>
  return %1 : tensor<?x2x8xf32>
}

// A product is linear in its weights too.
// CHECK-LABEL: func @dense(
// CHECK:         ktn.mul {{.+}} : tensor<4x2xf32>, tensor<2xf32>
// CHECK:         ktn.dot_general
// CHECK-NEXT:    return
func.func @dense(%x: tensor<?x4xf32>) -> tensor<?x2xf32> {
  %w = ktn.constant dense<0.5> : tensor<4x2xf32>
  %scale = ktn.constant dense<[5.0, 6.0]> : tensor<2xf32>
  %0 = ktn.dot_general %x, %w contract [1] x [0] : tensor<?x4xf32>, tensor<4x2xf32> -> tensor<?x2xf32>
  %1 = ktn.mul %0, %scale : tensor<?x2xf32>, tensor<2xf32> -> tensor<?x2xf32>
  return %1 : tensor<?x2xf32>
}

// A second reader wants the result as it is; a scale that is not one a channel,
// or not constant, stays.
// CHECK-LABEL: func @not_foldable(
// CHECK-COUNT-3: ktn.mul {{.+}} : tensor<8x2xf32>
func.func @not_foldable(%x: tensor<8x4xf32>, %s: tensor<2xf32>) -> (tensor<8x2xf32>, tensor<8x2xf32>, tensor<8x2xf32>, tensor<8x2xf32>) {
  %w = ktn.constant dense<0.5> : tensor<4x2xf32>
  %row = ktn.constant dense<[5.0, 6.0]> : tensor<2xf32>
  %column = ktn.constant dense<2.0> : tensor<8x1xf32>
  %0 = ktn.dot_general %x, %w contract [1] x [0] : tensor<8x4xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
  %1 = ktn.mul %0, %row : tensor<8x2xf32>, tensor<2xf32> -> tensor<8x2xf32>
  %2 = ktn.dot_general %x, %w contract [1] x [0] : tensor<8x4xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
  %3 = ktn.mul %2, %column : tensor<8x2xf32>, tensor<8x1xf32> -> tensor<8x2xf32>
  %4 = ktn.dot_general %x, %w contract [1] x [0] : tensor<8x4xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
  %5 = ktn.mul %4, %s : tensor<8x2xf32>, tensor<2xf32> -> tensor<8x2xf32>
  return %0, %1, %3, %5 : tensor<8x2xf32>, tensor<8x2xf32>, tensor<8x2xf32>, tensor<8x2xf32>
}

// What scales the channels of an image scales the weights, which are fewer.
// CHECK-LABEL: func @excite(
// CHECK-SAME:    %[[X:.+]]: tensor<1x8x8x3xf32>, %[[S:.+]]: tensor<1x1x1x3xf32>
// CHECK:         %[[COLUMN:.+]] = ktn.reshape %[[S]] to [1, 1, 3, 1]
// CHECK:         %[[SCALED:.+]] = ktn.mul %{{.+}}, %[[COLUMN]] : tensor<1x1x3x2xf32>, tensor<1x1x3x1xf32>
// CHECK:         %[[Y:.+]] = ktn.conv %[[X]], %[[SCALED]]
// CHECK-NEXT:    return %[[Y]]
func.func @excite(%x: tensor<1x8x8x3xf32>, %s: tensor<1x1x1x3xf32>) -> tensor<1x8x8x2xf32> {
  %k = ktn.constant dense<0.5> : tensor<1x1x3x2xf32>
  %0 = ktn.mul %s, %x : tensor<1x1x1x3xf32>, tensor<1x8x8x3xf32> -> tensor<1x8x8x3xf32>
  %1 = ktn.conv %0, %k strides [1, 1] padding [0, 0, 0, 0] dilation [1, 1] channels_last
      : tensor<1x8x8x3xf32>, tensor<1x1x3x2xf32> -> tensor<1x8x8x2xf32>
  return %1 : tensor<1x8x8x2xf32>
}

// A constant scale always does, here along axis 1 and with padding.
// CHECK-LABEL: func @constant_scale(
// CHECK-SAME:    %[[X:.+]]: tensor<?x3x8xf32>)
// CHECK:         %[[SCALED:.+]] = ktn.mul
// CHECK-NEXT:    %[[Y:.+]] = ktn.conv %[[X]], %[[SCALED]]
// CHECK-NEXT:    return %[[Y]]
func.func @constant_scale(%x: tensor<?x3x8xf32>) -> tensor<?x2x8xf32> {
  %k = ktn.constant dense<0.5> : tensor<3x3x2xf32>
  %s = ktn.constant dense<[[1.0], [2.0], [3.0]]> : tensor<3x1xf32>
  %0 = ktn.mul %x, %s : tensor<?x3x8xf32>, tensor<3x1xf32> -> tensor<?x3x8xf32>
  %1 = ktn.conv %0, %k strides [1] padding [1, 1] dilation [1] channels_first
      : tensor<?x3x8xf32>, tensor<3x3x2xf32> -> tensor<?x2x8xf32>
  return %1 : tensor<?x2x8xf32>
}

// A scale for each image, more weights than pixels, an image that somebody else
// reads, and groups: nothing to fold.
// CHECK-LABEL: func @kept(
// CHECK-COUNT-4: ktn.mul %{{.+}} -> tensor<
func.func @kept(%x: tensor<2x8x8x4xf32>, %s: tensor<2x1x1x4xf32>, %small: tensor<1x2x2x4xf32>, %one: tensor<4xf32>)
    -> (tensor<2x8x8x2xf32>, tensor<1x2x2x8xf32>, tensor<2x8x8x4xf32>, tensor<2x8x8x2xf32>, tensor<2x8x8x2xf32>) {
  %k = ktn.constant dense<0.5> : tensor<1x1x4x2xf32>
  %wide = ktn.constant dense<0.5> : tensor<1x1x4x8xf32>
  %grouped = ktn.constant dense<0.5> : tensor<1x1x2x2xf32>
  %0 = ktn.mul %x, %s : tensor<2x8x8x4xf32>, tensor<2x1x1x4xf32> -> tensor<2x8x8x4xf32>
  %1 = ktn.conv %0, %k strides [1, 1] padding [0, 0, 0, 0] dilation [1, 1] channels_last
      : tensor<2x8x8x4xf32>, tensor<1x1x4x2xf32> -> tensor<2x8x8x2xf32>
  %2 = ktn.mul %small, %one : tensor<1x2x2x4xf32>, tensor<4xf32> -> tensor<1x2x2x4xf32>
  %3 = ktn.conv %2, %wide strides [1, 1] padding [0, 0, 0, 0] dilation [1, 1] channels_last
      : tensor<1x2x2x4xf32>, tensor<1x1x4x8xf32> -> tensor<1x2x2x8xf32>
  %4 = ktn.mul %x, %one : tensor<2x8x8x4xf32>, tensor<4xf32> -> tensor<2x8x8x4xf32>
  %5 = ktn.conv %4, %k strides [1, 1] padding [0, 0, 0, 0] dilation [1, 1] channels_last
      : tensor<2x8x8x4xf32>, tensor<1x1x4x2xf32> -> tensor<2x8x8x2xf32>
  %6 = ktn.mul %x, %one : tensor<2x8x8x4xf32>, tensor<4xf32> -> tensor<2x8x8x4xf32>
  %7 = ktn.conv %6, %grouped strides [1, 1] padding [0, 0, 0, 0] dilation [1, 1] channels_last {groups = 2}
      : tensor<2x8x8x4xf32>, tensor<1x1x2x2xf32> -> tensor<2x8x8x2xf32>
  return %1, %3, %4, %5, %7 : tensor<2x8x8x2xf32>, tensor<1x2x2x8xf32>, tensor<2x8x8x4xf32>, tensor<2x8x8x2xf32>, tensor<2x8x8x2xf32>
}
