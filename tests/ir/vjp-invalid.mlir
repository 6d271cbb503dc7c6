// RUN: keratin-opt %s --ktn-expand-gradients --split-input-file --verify-diagnostics

func.func @f(%x: tensor<?x6xf32>) -> tensor<?x6xf32> {
  // expected-error @below {{has no gradient: axis 0 has an unknown extent and stride 2}}
  %0 = ktn.slice %x[0:?:2, 0:6:1] : tensor<?x6xf32> -> tensor<?x6xf32>
  %1 = ktn.gradients %0 wrt %x : tensor<?x6xf32> wrt tensor<?x6xf32>
  return %1 : tensor<?x6xf32>
}

// -----

func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @below {{has no gradient: more than one operand has an unknown extent on axis 0}}
  %0 = ktn.concat %x, %x {axis = 0} : tensor<?xf32>, tensor<?xf32> -> tensor<?xf32>
  %1 = ktn.gradients %0 wrt %x : tensor<?xf32> wrt tensor<?xf32>
  return %1 : tensor<?xf32>
}

// -----

func.func @f(%x: tensor<5x?xf32>, %i: tensor<5xi32>) -> tensor<5x?xf32> {
  // expected-error @below {{has no gradient: only the extent of the first batch axis may be unknown in 'tensor<5x?xf32>' and 'tensor<5xi32>'}}
  %0 = ktn.gather %x, %i {axis = 1, batch_dims = 1} : tensor<5x?xf32>, tensor<5xi32> -> tensor<5xf32>
  %1 = ktn.gradients %0 wrt %x : tensor<5xf32> wrt tensor<5x?xf32>
  return %1 : tensor<5x?xf32>
}

// -----

func.func @f(%x: tensor<2x?x3xf32>, %w: tensor<3x3x6xf32>) -> tensor<2x?x3xf32> {
  // expected-error @below {{has no gradient: spatial axis 0 has an unknown extent in 'tensor<2x?x3xf32>'}}
  %0 = ktn.conv %x, %w strides [1] padding [0, 0] dilation [1] channels_last : tensor<2x?x3xf32>, tensor<3x3x6xf32> -> tensor<2x?x6xf32>
  %1 = ktn.gradients %0 wrt %x : tensor<2x?x6xf32> wrt tensor<2x?x3xf32>
  return %1 : tensor<2x?x3xf32>
}

// -----

func.func @f(%x: tensor<2x?x3xf32>) -> tensor<2x?x3xf32> {
  // expected-error @below {{has no gradient: spatial axis 0 has an unknown extent in 'tensor<2x?x3xf32>'}}
  %0 = ktn.max_pool %x size [2] strides [2] padding [0, 0] channels_last : tensor<2x?x3xf32> -> tensor<2x?x3xf32>
  %1 = ktn.gradients %0 wrt %x : tensor<2x?x3xf32> wrt tensor<2x?x3xf32>
  return %1 : tensor<2x?x3xf32>
}

// -----

func.func @f(%x: tensor<2x9x3xf32>, %w: tensor<3x3x6xf32>) -> tensor<2x9x3xf32> {
  // expected-error @below {{has the padding 'same', which depends on the extents of its spatial axes, and they are not known}}
  %0 = ktn.conv %x, %w strides [2] padding [0, 0] dilation [1] channels_last {same} : tensor<2x9x3xf32>, tensor<3x3x6xf32> -> tensor<2x5x6xf32>
  %1 = ktn.gradients %0 wrt %x : tensor<2x5x6xf32> wrt tensor<2x9x3xf32>
  return %1 : tensor<2x9x3xf32>
}
