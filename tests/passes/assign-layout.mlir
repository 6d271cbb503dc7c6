// RUN: keratin-opt %s --ktn-assign-layout | FileCheck %s

// One transpose where the image comes in; between the convolutions they sink
// through the bias, the residual sum and the pad, and the mean needs none.
// CHECK-LABEL: func @residual(
// CHECK-SAME:    %[[X:.+]]: tensor<?x4x8x8xf32>
// CHECK:         %[[T:.+]] = ktn.transpose %[[X]], [0, 2, 3, 1]
// CHECK-NOT:     ktn.transpose
// CHECK:         ktn.pad {{.+}} low [0, 1, 1, 0] high [0, 1, 1, 0]
// CHECK-NOT:     ktn.transpose
// CHECK:         ktn.sum %{{.+}}, [1, 2] : tensor<?x8x8x4xf32>
// CHECK-NEXT:    return
func.func @residual(%x: tensor<?x4x8x8xf32>, %k: tensor<3x3x4x4xf32>, %b: tensor<4xf32>) -> tensor<?x4xf32> {
  %zero = ktn.constant dense<0.0> : tensor<f32>
  %0 = ktn.conv %x, %k strides [1, 1] padding [1, 1, 1, 1] dilation [1, 1] channels_first
      : tensor<?x4x8x8xf32>, tensor<3x3x4x4xf32> -> tensor<?x4x8x8xf32>
  %1 = ktn.bias_add %0, %b, channels_first : tensor<?x4x8x8xf32>, tensor<4xf32>
  %2 = ktn.maximum %1, %zero : tensor<?x4x8x8xf32>, tensor<f32> -> tensor<?x4x8x8xf32>
  %3 = ktn.pad %2 low [0, 0, 1, 1] high [0, 0, 1, 1] value 0.0 : f32 : tensor<?x4x8x8xf32> -> tensor<?x4x10x10xf32>
  %4 = ktn.conv %3, %k strides [1, 1] padding [0, 0, 0, 0] dilation [1, 1] channels_first
      : tensor<?x4x10x10xf32>, tensor<3x3x4x4xf32> -> tensor<?x4x8x8xf32>
  %5 = ktn.add %4, %x : tensor<?x4x8x8xf32>
  %6 = ktn.sum %5, [2, 3] : tensor<?x4x8x8xf32> -> tensor<?x4xf32>
  return %6 : tensor<?x4xf32>
}

// Values of one entry a channel move to the last axis; no element of theirs does.
// CHECK-LABEL: func @scale(
// CHECK:         %[[S:.+]] = ktn.reshape %{{.+}} to [1, 1, 4]
// CHECK:         ktn.mul %{{.+}}, %[[S]] : tensor<?x8x4xf32>
func.func @scale(%x: tensor<?x4x8xf32>, %k: tensor<1x4x4xf32>, %s: tensor<4x1xf32>) -> tensor<?x4x8xf32> {
  %0 = ktn.conv %x, %k strides [1] padding [0, 0] dilation [1] channels_first
      : tensor<?x4x8xf32>, tensor<1x4x4xf32> -> tensor<?x4x8xf32>
  %1 = ktn.mul %0, %s : tensor<?x4x8xf32>, tensor<4x1xf32> -> tensor<?x4x8xf32>
  return %1 : tensor<?x4x8xf32>
}

// Parts are joined along the axis where the channels are now.
// CHECK-LABEL: func @concat(
// CHECK:         ktn.concat %[[P:.+]], %[[P]] {axis = 2 : i64}
// CHECK-NEXT:    ktn.transpose {{.+}}, [0, 2, 1]
func.func @concat(%x: tensor<?x4x8xf32>, %k: tensor<1x4x4xf32>) -> tensor<?x8x8xf32> {
  %0 = ktn.conv %x, %k strides [1] padding [0, 0] dilation [1] channels_first
      : tensor<?x4x8xf32>, tensor<1x4x4xf32> -> tensor<?x4x8xf32>
  %1 = ktn.concat %0, %0 {axis = 1} : tensor<?x4x8xf32>, tensor<?x4x8xf32> -> tensor<?x8x8xf32>
  return %1 : tensor<?x8x8xf32>
}

// One channel: the image is the same bytes either way.
// CHECK-LABEL: func @grey(
// CHECK:         ktn.reshape %{{.+}} to [?, 8, 1]
// CHECK-NEXT:    ktn.max_pool
// CHECK-NEXT:    ktn.reshape %{{.+}} to [?, 1, 4]
func.func @grey(%x: tensor<?x1x8xf32>) -> tensor<?x1x4xf32> {
  %0 = ktn.max_pool %x size [2] strides [2] padding [0, 0] channels_first
      : tensor<?x1x8xf32> -> tensor<?x1x4xf32>
  return %0 : tensor<?x1x4xf32>
}

// Without channels_first ops the transposes are the user's own.
// CHECK-LABEL: func @untouched(
// CHECK-NEXT:    ktn.transpose
// CHECK-NEXT:    ktn.neg
// CHECK-NEXT:    ktn.transpose
func.func @untouched(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = ktn.transpose %x, [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
  %1 = ktn.neg %0 : tensor<8x4xf32>
  %2 = ktn.transpose %1, [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}
