// RUN: keratin-opt %s --ktn-lower-to-linalg --split-input-file --verify-diagnostics

// An op that an earlier pass must have removed has no lowering.
func.func @undecomposed(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{failed to legalize operation 'ktn.softmax'}}
  %y = ktn.softmax %x {axis = 1} : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// -----

func.func @channels_first(%x: tensor<1x3x8xf32>, %k: tensor<3x3x4xf32>) -> tensor<1x4x6xf32> {
  // expected-error @+2 {{is channels_first; ktn-assign-layout must run before}}
  // expected-error @+1 {{failed to legalize operation 'ktn.conv'}}
  %y = ktn.conv %x, %k strides [1] padding [0, 0] dilation [1] channels_first
      : tensor<1x3x8xf32>, tensor<3x3x4xf32> -> tensor<1x4x6xf32>
  return %y : tensor<1x4x6xf32>
}

// -----

func.func @unknown_window(%x: tensor<1x?x4xf32>) -> tensor<1x?x4xf32> {
  // expected-error @+2 {{padding needs the extent of spatial axis 0, but x has type 'tensor<1x?x4xf32>'}}
  // expected-error @+1 {{failed to legalize operation 'ktn.avg_pool'}}
  %y = ktn.avg_pool %x size [3] strides [1] padding [1, 1] channels_last
      : tensor<1x?x4xf32> -> tensor<1x?x4xf32>
  return %y : tensor<1x?x4xf32>
}
