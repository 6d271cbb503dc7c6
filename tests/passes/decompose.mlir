// RUN: keratin-opt %s --ktn-decompose | FileCheck %s
// RUN: keratin-opt %s --ktn-decompose=training=true | FileCheck %s --check-prefix=TRAINING

// CHECK-LABEL: func @softmax(
// CHECK-NOT:     ktn.softmax
// CHECK:         ktn.max
// CHECK:         ktn.exp
// CHECK:         ktn.sum
// CHECK:         ktn.div
func.func @softmax(%x: tensor<?x10xf32>) -> tensor<?x10xf32> {
  %y = ktn.softmax %x {axis = 1} : tensor<?x10xf32>
  return %y : tensor<?x10xf32>
}

// CHECK-LABEL: func @deviations(
// CHECK-SAME:    %[[X:.+]]: tensor<?x10xf32>, %[[M:.+]]: tensor<1x10xf32>)
// CHECK-NEXT:    %[[OFF:.+]] = ktn.sub %[[X]], %[[M]]
// CHECK-NEXT:    %[[SQUARE:.+]] = ktn.mul %[[OFF]], %[[OFF]]
// CHECK-NEXT:    ktn.sum %[[SQUARE]], [0] {keepdims = true}
func.func @deviations(%x: tensor<?x10xf32>, %m: tensor<1x10xf32>) -> tensor<1x10xf32> {
  %y = ktn.squared_deviations %x, %m, [0] : tensor<?x10xf32>, tensor<1x10xf32>
  return %y : tensor<1x10xf32>
}

// CHECK-LABEL: func @phase(
// CHECK-NEXT:    ktn.constant dense<false> : tensor<i1>
// TRAINING-LABEL: func @phase(
// TRAINING-NEXT:    ktn.constant dense<true> : tensor<i1>
func.func @phase() -> tensor<i1> {
  %t = ktn.training_phase : tensor<i1>
  return %t : tensor<i1>
}

// The phase is known, so only one branch is left.
// CHECK-LABEL: func @known_choice(
// CHECK-SAME:    %[[A:.+]]: tensor<4xf32>, %[[B:.+]]: tensor<4xf32>)
// CHECK:         return %[[B]]
// TRAINING-LABEL: func @known_choice(
// TRAINING-SAME:    %[[A:.+]]: tensor<4xf32>, %[[B:.+]]: tensor<4xf32>)
// TRAINING:         return %[[A]]
func.func @known_choice(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %t = ktn.training_phase : tensor<i1>
  %y = ktn.choose %t, %a, %b : tensor<i1>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: func @open_choice(
// CHECK-SAME:    %[[C:.+]]: tensor<i1>, %[[A:.+]]: tensor<4xf32>, %[[B:.+]]: tensor<4xf32>)
// CHECK-NEXT:    ktn.select %[[C]], %[[A]], %[[B]]
func.func @open_choice(%c: tensor<i1>, %a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %y = ktn.choose %c, %a, %b : tensor<i1>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: func @stop(
// CHECK-SAME:    %[[X:.+]]: tensor<4xf32>)
// CHECK-NEXT:    return %[[X]]
func.func @stop(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = ktn.stop_gradient %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

// All phases of a transposed convolution are channels of one convolution of
// stride 1, and are interleaved.
// CHECK-LABEL: func @conv_transpose(
// CHECK:         ktn.conv %{{.+}}, %{{.+}} strides [1] padding [0, 0] dilation [1] channels_last : tensor<?x5x3xf32>, tensor<1x3x8xf32> -> tensor<?x5x8xf32>
// CHECK:         ktn.reshape {{.+}} -> tensor<?x10x4xf32>
func.func @conv_transpose(%x: tensor<?x5x3xf32>, %k: tensor<2x4x3xf32>) -> tensor<?x10x4xf32> {
  %y = ktn.conv_transpose %x, %k strides [2] padding [0, 0] dilation [1] to [10] channels_last
      : tensor<?x5x3xf32>, tensor<2x4x3xf32> -> tensor<?x10x4xf32>
  return %y : tensor<?x10x4xf32>
}

// Enough channels for vectors: all elements of one tap each are a product of the
// pixels and the whole kernel.
// CHECK-LABEL: func @conv_transpose_of_one_tap(
// CHECK-SAME:    %[[X:.+]]: tensor<?x5x3xf32>, %[[K:.+]]: tensor<2x16x3xf32>)
// CHECK:         %[[Y:.+]] = ktn.dot_general %[[X]], %[[K]] contract [2] x [2] : tensor<?x5x3xf32>, tensor<2x16x3xf32> -> tensor<?x5x2x16xf32>
// CHECK:         ktn.reshape {{.+}} -> tensor<?x10x16xf32>
func.func @conv_transpose_of_one_tap(%x: tensor<?x5x3xf32>, %k: tensor<2x16x3xf32>) -> tensor<?x10x16xf32> {
  %y = ktn.conv_transpose %x, %k strides [2] padding [0, 0] dilation [1] to [10] channels_last
      : tensor<?x5x3xf32>, tensor<2x16x3xf32> -> tensor<?x10x16xf32>
  return %y : tensor<?x10x16xf32>
}

// All phases have two taps, but one position in six of each is outside of the
// result.
// CHECK-LABEL: func @conv_transpose_begins_within(
// CHECK-COUNT-2: ktn.conv {{.+}} tensor<2x3x17xf32> -> tensor<?x5x17xf32>
// CHECK:         ktn.concat
func.func @conv_transpose_begins_within(%x: tensor<?x5x3xf32>, %k: tensor<4x17x3xf32>) -> tensor<?x10x17xf32> {
  %y = ktn.conv_transpose %x, %k strides [2] padding [1, 1] dilation [1] to [10] channels_last
      : tensor<?x5x3xf32>, tensor<4x17x3xf32> -> tensor<?x10x17xf32>
  return %y : tensor<?x10x17xf32>
}

// Channels of one phase alone would fill no more than a vector.
// CHECK-LABEL: func @conv_transpose_few_channels(
// CHECK:         ktn.conv {{.+}} tensor<2x3x32xf32> -> tensor<?x6x32xf32>
// CHECK-NOT:     ktn.conv
func.func @conv_transpose_few_channels(%x: tensor<?x5x3xf32>, %k: tensor<4x16x3xf32>) -> tensor<?x10x16xf32> {
  %y = ktn.conv_transpose %x, %k strides [2] padding [1, 1] dilation [1] to [10] channels_last
      : tensor<?x5x3xf32>, tensor<4x16x3xf32> -> tensor<?x10x16xf32>
  return %y : tensor<?x10x16xf32>
}

// A window of 3 at strides of 2 has two taps for one phase and one for the other.
// CHECK-LABEL: func @conv_transpose_by_phases(
// CHECK:         ktn.conv %{{.+}}, %{{.+}} strides [1] padding [1, 0] {{.*}}tensor<2x3x16xf32> -> tensor<?x5x16xf32>
// CHECK:         ktn.conv %{{.+}}, %{{.+}} strides [1] padding [0, 0] {{.*}}tensor<1x3x16xf32> -> tensor<?x5x16xf32>
// CHECK:         ktn.concat %{{.+}} {axis = 2 : i64}
func.func @conv_transpose_by_phases(%x: tensor<?x5x3xf32>, %k: tensor<3x16x3xf32>) -> tensor<?x10x16xf32> {
  %y = ktn.conv_transpose %x, %k strides [2] padding [0, 1] dilation [1] to [10] channels_last
      : tensor<?x5x3xf32>, tensor<3x16x3xf32> -> tensor<?x10x16xf32>
  return %y : tensor<?x10x16xf32>
}
