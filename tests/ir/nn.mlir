// RUN: keratin-opt %s | keratin-opt | FileCheck %s
// RUN: keratin-opt %s --emit-bytecode | keratin-opt | FileCheck %s

// CHECK-LABEL: func @conv(
// CHECK-SAME:    %[[X:.+]]: tensor<?x8x9x4xf32>, %[[K:.+]]: tensor<3x2x2x6xf32>)
func.func @conv(%x: tensor<?x8x9x4xf32>, %k: tensor<3x2x2x6xf32>) {
  // CHECK: ktn.conv %[[X]], %[[K]] strides [2, 1] padding [1, 0, 0, 1] dilation [1, 2] channels_last {groups = 2 : i64} : tensor<?x8x9x4xf32>, tensor<3x2x2x6xf32> -> tensor<?x4x8x6xf32>
  %0 = ktn.conv %x, %k strides [2, 1] padding [1, 0, 0, 1] dilation [1, 2] channels_last {groups = 2} : tensor<?x8x9x4xf32>, tensor<3x2x2x6xf32> -> tensor<?x4x8x6xf32>
  return
}

// channels_first moves the image's axes, not the kernel's. One group is the
// default.
// CHECK-LABEL: func @conv_channels_first(
func.func @conv_channels_first(%x: tensor<2x3x?xf32>, %k: tensor<5x3x7xf32>) {
  // CHECK: dilation [1] channels_first : tensor<2x3x?xf32>, tensor<5x3x7xf32> -> tensor<2x7x?xf32>
  %0 = ktn.conv %x, %k strides [1] padding [0, 0] dilation [1] channels_first : tensor<2x3x?xf32>, tensor<5x3x7xf32> -> tensor<2x7x?xf32>
  return
}

// Two convolutions of stride 2 give 4 elements, of 7 or of 8: `to` says which,
// and `?` is the least.
// CHECK-LABEL: func @conv_transpose(
// CHECK-SAME:    %[[X:.+]]: tensor<?x4x6xf32>, %[[K:.+]]: tensor<3x5x6xf32>)
func.func @conv_transpose(%x: tensor<?x4x6xf32>, %k: tensor<3x5x6xf32>) {
  // CHECK: ktn.conv_transpose %[[X]], %[[K]] strides [2] padding [1, 1] dilation [1] to [8] channels_last : tensor<?x4x6xf32>, tensor<3x5x6xf32> -> tensor<?x8x5xf32>
  %0 = ktn.conv_transpose %x, %k strides [2] padding [1, 1] dilation [1] to [8] channels_last : tensor<?x4x6xf32>, tensor<3x5x6xf32> -> tensor<?x8x5xf32>
  // CHECK: to [?] channels_last {groups = 2 : i64} : tensor<?x4x6xf32>, tensor<3x5x6xf32> -> tensor<?x7x10xf32>
  %1 = ktn.conv_transpose %x, %k strides [2] padding [1, 1] dilation [1] to [?] channels_last {groups = 2} : tensor<?x4x6xf32>, tensor<3x5x6xf32> -> tensor<?x7x10xf32>
  return
}

// CHECK-LABEL: func @pool(
// CHECK-SAME:    %[[X:.+]]: tensor<?x8x8x4xf32>)
func.func @pool(%x: tensor<?x8x8x4xf32>) {
  // CHECK: ktn.max_pool %[[X]] size [3, 2] strides [2, 2] padding [0, 1, 0, 0] channels_last : tensor<?x8x8x4xf32> -> tensor<?x4x4x4xf32>
  %0 = ktn.max_pool %x size [3, 2] strides [2, 2] padding [0, 1, 0, 0] channels_last : tensor<?x8x8x4xf32> -> tensor<?x4x4x4xf32>
  // CHECK: ktn.avg_pool %[[X]] size [8, 4] strides [1, 1] padding [0, 0, 0, 0] channels_first : tensor<?x8x8x4xf32> -> tensor<?x8x1x1xf32>
  %1 = ktn.avg_pool %x size [8, 4] strides [1, 1] padding [0, 0, 0, 0] channels_first : tensor<?x8x8x4xf32> -> tensor<?x8x1x1xf32>
  return
}

// CHECK-LABEL: func @channels(
// CHECK-SAME:    %[[X:.+]]: tensor<?x8x4xf32>, %[[P:.+]]: tensor<4xf32>)
func.func @channels(%x: tensor<?x8x4xf32>, %p: tensor<4xf32>) {
  // CHECK: ktn.bias_add %[[X]], %[[P]], channels_last : tensor<?x8x4xf32>, tensor<4xf32>
  %0 = ktn.bias_add %x, %p, channels_last : tensor<?x8x4xf32>, tensor<4xf32>
  // CHECK: ktn.batch_norm %[[X]], %[[P]], %[[P]] gamma %[[P]] : tensor<4xf32> beta %[[P]] : tensor<4xf32> {axis = 2 : i64, epsilon = 1.000000e-03 : f64} : tensor<?x8x4xf32>, tensor<4xf32>, tensor<4xf32>
  %1 = ktn.batch_norm %x, %p, %p gamma %p : tensor<4xf32> beta %p : tensor<4xf32> {axis = 2, epsilon = 0.001} : tensor<?x8x4xf32>, tensor<4xf32>, tensor<4xf32>
  // CHECK: ktn.batch_norm %[[X]], %[[P]], %[[P]] beta %[[P]] : tensor<4xf32> {axis
  %2 = ktn.batch_norm %x, %p, %p beta %p : tensor<4xf32> {axis = 2, epsilon = 0.001} : tensor<?x8x4xf32>, tensor<4xf32>, tensor<4xf32>
  // CHECK: ktn.softmax %[[X]] {axis = 2 : i64} : tensor<?x8x4xf32>
  %3 = ktn.softmax %x {axis = 2} : tensor<?x8x4xf32>
  return
}

// The window is given: 5 elements and 2 positions leave open which it is.
// CHECK-LABEL: func @conv_kernel_grad(
// CHECK-SAME:    %[[X:.+]]: tensor<?x5x4xf32>, %[[Z:.+]]: tensor<?x2x6xf32>)
func.func @conv_kernel_grad(%x: tensor<?x5x4xf32>, %z: tensor<?x2x6xf32>) {
  // CHECK: ktn.conv_kernel_grad %[[X]], %[[Z]] window [3] strides [2] padding [0, 0] dilation [1] : tensor<?x5x4xf32>, tensor<?x2x6xf32> -> tensor<3x4x6xf32>
  %0 = ktn.conv_kernel_grad %x, %z window [3] strides [2] padding [0, 0] dilation [1] : tensor<?x5x4xf32>, tensor<?x2x6xf32> -> tensor<3x4x6xf32>
  // CHECK: {groups = 2 : i64} : tensor<?x5x4xf32>, tensor<?x2x6xf32> -> tensor<2x2x6xf32>
  %1 = ktn.conv_kernel_grad %x, %z window [2] strides [2] padding [0, 0] dilation [1] {groups = 2} : tensor<?x5x4xf32>, tensor<?x2x6xf32> -> tensor<2x2x6xf32>
  return
}

// CHECK-LABEL: func @max_pool_index(
// CHECK-SAME:    %[[X:.+]]: tensor<?x5x4xf64>, %[[MAX:.+]]: tensor<?x3x4xf64>)
func.func @max_pool_index(%x: tensor<?x5x4xf64>, %max: tensor<?x3x4xf64>) {
  // CHECK: ktn.max_pool_index %[[X]], %[[MAX]] size [2] strides [2] padding [0, 1] : tensor<?x5x4xf64>, tensor<?x3x4xf64> -> tensor<?x3x4xi32>
  %0 = ktn.max_pool_index %x, %max size [2] strides [2] padding [0, 1] : tensor<?x5x4xf64>, tensor<?x3x4xf64> -> tensor<?x3x4xi32>
  return
}
