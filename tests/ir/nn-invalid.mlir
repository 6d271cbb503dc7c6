// RUN: keratin-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2x8x4xf32>, %k: tensor<3x4x6xf32>) {
  // expected-error @below {{x has 8 channels (channels_first) but the kernel takes 4 in each of 1 group}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.conv %x, %k strides [1] padding [0, 0] dilation [1] channels_first : tensor<2x8x4xf32>, tensor<3x4x6xf32> -> tensor<2x6x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8x4xf32>, %k: tensor<3x4x6xf32>) {
  // expected-error @below {{x has 4 channels (channels_last) but the kernel takes 4 in each of 2 groups}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.conv %x, %k strides [1] padding [0, 0] dilation [1] channels_last {groups = 2} : tensor<2x8x4xf32>, tensor<3x4x6xf32> -> tensor<2x6x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8x4xf32>, %k: tensor<3x1x6xf32>) {
  // expected-error @below {{the kernel has 6 filters, which 4 groups cannot share evenly}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.conv %x, %k strides [1] padding [0, 0] dilation [1] channels_last {groups = 4} : tensor<2x8x4xf32>, tensor<3x1x6xf32> -> tensor<2x6x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8x4xf32>, %k: tensor<3x4x6xf32>) {
  // expected-error @below {{groups is 0 but must be in 1..2147483647}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.conv %x, %k strides [1] padding [0, 0] dilation [1] channels_last {groups = 0} : tensor<2x8x4xf32>, tensor<3x4x6xf32> -> tensor<2x6x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8x4xf32>, %k: tensor<3x4x6xf32>) {
  // expected-error @below {{stride is 0 but must be in 1..2147483647}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.conv %x, %k strides [0] padding [0, 0] dilation [1] channels_last : tensor<2x8x4xf32>, tensor<3x4x6xf32> -> tensor<2x6x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8x4xf32>, %k: tensor<3x4x6xf32>) {
  // expected-error @below {{padding is -1 but must be in 0..2147483647}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.conv %x, %k strides [1] padding [-1, 0] dilation [1] channels_last : tensor<2x8x4xf32>, tensor<3x4x6xf32> -> tensor<2x6x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8x4xf32>, %k: tensor<3x4x6xf32>) {
  // expected-error @below {{padding has 1 entries but must have 2: one for each side of a spatial axis}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.conv %x, %k strides [1] padding [0] dilation [1] channels_last : tensor<2x8x4xf32>, tensor<3x4x6xf32> -> tensor<2x6x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8x4xf32>, %k: tensor<3x4x6xf32>) {
  // expected-error @below {{strides has 2 entries but must have 1: one for each spatial axis}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.conv %x, %k strides [1, 1] padding [0, 0] dilation [1] channels_last : tensor<2x8x4xf32>, tensor<3x4x6xf32> -> tensor<2x6x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8x4xf32>, %k: tensor<3x4x6xf32>) {
  // expected-error @below {{dilation has 0 entries but must have 1: one for each spatial axis}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.conv %x, %k strides [1] padding [0, 0] dilation [] channels_last : tensor<2x8x4xf32>, tensor<3x4x6xf32> -> tensor<2x6x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8x4xf32>, %k: tensor<3x4x6xf32>) {
  // expected-error @below {{a window of extent 11 does not fit into spatial axis 0 with extent 9, padding included}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.conv %x, %k strides [1] padding [0, 1] dilation [5] channels_last : tensor<2x8x4xf32>, tensor<3x4x6xf32> -> tensor<2x6x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8x4xf32>, %k: tensor<0x4x6xf32>) {
  // expected-error @below {{the window has extent 0 on spatial axis 0 but needs an element}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.conv %x, %k strides [1] padding [0, 0] dilation [1] channels_last : tensor<2x8x4xf32>, tensor<0x4x6xf32> -> tensor<2x6x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8x4xf32>, %k: tensor<4x6xf32>) {
  // expected-error @below {{kernel has rank 2 but x has rank 3}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.conv %x, %k strides [1] padding [0, 0] dilation [1] channels_last : tensor<2x8x4xf32>, tensor<4x6xf32> -> tensor<2x6x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8x4xf32>, %k: tensor<3x4x6xf64>) {
  // expected-error @below {{kernel has element type 'f64' but x has 'f32'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.conv %x, %k strides [1] padding [0, 0] dilation [1] channels_last : tensor<2x8x4xf32>, tensor<3x4x6xf64> -> tensor<2x6x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4xf32>) {
  // expected-error @below {{x has rank 2 but must have 1 to 3 spatial axes, a batch and a channel axis}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.conv %x, %x strides [] padding [] dilation [] channels_last : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x6xf32>, %k: tensor<3x5x6xf32>) {
  // expected-error @below {{spatial axis 0 of x has extent 4 but a convolution of extent 9 gives 5}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.conv_transpose %x, %k strides [2] padding [1, 1] dilation [1] to [9] channels_last : tensor<2x4x6xf32>, tensor<3x5x6xf32> -> tensor<2x8x5xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x6xf32>, %k: tensor<3x5x6xf32>) {
  // expected-error @below {{output_shape has 2 entries but must have 1: one for each spatial axis}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.conv_transpose %x, %k strides [2] padding [1, 1] dilation [1] to [8, 8] channels_last : tensor<2x4x6xf32>, tensor<3x5x6xf32> -> tensor<2x8x5xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x6xf32>, %k: tensor<3x5x6xf32>) {
  // expected-error @below {{x has 4 channels (channels_first) but the kernel takes 6}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.conv_transpose %x, %k strides [2] padding [1, 1] dilation [1] to [8] channels_first : tensor<2x4x6xf32>, tensor<3x5x6xf32> -> tensor<2x8x5xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x6xf32>, %k: tensor<3x5x6xf32>) {
  // expected-error @below {{the kernel takes 6 channels, which 4 groups cannot share evenly}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.conv_transpose %x, %k strides [2] padding [1, 1] dilation [1] to [8] channels_last {groups = 4} : tensor<2x4x6xf32>, tensor<3x5x6xf32> -> tensor<2x8x5xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x6xf32>, %k: tensor<3x5x6xf32>) {
  // expected-error @below {{spatial axis 0 of the result has extent -12: x has 4 and the padding takes 18}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.conv_transpose %x, %k strides [1] padding [9, 9] dilation [1] to [?] channels_last : tensor<2x4x6xf32>, tensor<3x5x6xf32> -> tensor<2x8x5xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8x4xf32>) {
  // expected-error @below {{pool_size has 2 entries but must have 1: one for each spatial axis}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.max_pool %x size [2, 2] strides [2] padding [0, 0] channels_last : tensor<2x8x4xf32> -> tensor<2x4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8x4xf32>) {
  // expected-error @below {{pool_size is 0 but must be in 1..2147483647}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.max_pool %x size [0] strides [2] padding [0, 0] channels_last : tensor<2x8x4xf32> -> tensor<2x4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8x4xf32>) {
  // expected-error @below {{padding 2 on spatial axis 0 is not less than the window, which has extent 2}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.avg_pool %x size [2] strides [2] padding [0, 2] channels_last : tensor<2x8x4xf32> -> tensor<2x4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8x4xf32>) {
  // expected-error @below {{a window of extent 9 does not fit into spatial axis 0 with extent 8, padding included}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.avg_pool %x size [9] strides [2] padding [0, 0] channels_last : tensor<2x8x4xf32> -> tensor<2x4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<2x16x8xf32>, %b: tensor<16xf32>) {
  // expected-error @+2 {{bias has 16 channels but x has 8 on axis 2 (channels_last)}}
  // expected-note @below {{axis 1 has that size: is the input channels_first?}}
  %0 = ktn.bias_add %x, %b, channels_last : tensor<2x16x8xf32>, tensor<16xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8xf32>, %b: tensor<2x8xf32>) {
  // expected-error @below {{bias has rank 2 but must have 1}}
  %0 = ktn.bias_add %x, %b, channels_last : tensor<2x8xf32>, tensor<2x8xf32>
  return
}

// -----

func.func @f(%x: tensor<8xf32>, %b: tensor<8xf32>) {
  // expected-error @below {{x has rank 1 but must have a batch and a channel axis}}
  %0 = ktn.bias_add %x, %b, channels_last : tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8xf32>, %b: tensor<8xf64>) {
  // expected-error @below {{bias has element type 'f64' but x has 'f32'}}
  %0 = ktn.bias_add %x, %b, channels_last : tensor<2x8xf32>, tensor<8xf64>
  return
}

// -----

func.func @f(%x: tensor<2x8xf32>, %m: tensor<8xf32>) {
  // expected-error @below {{axis is 2 but the tensor has rank 2}}
  %0 = ktn.batch_norm %x, %m, %m {axis = 2, epsilon = 0.001} : tensor<2x8xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8xf32>, %m: tensor<8xf32>, %g: tensor<2xf32>) {
  // expected-error @below {{gamma has type 'tensor<2xf32>' but x has the type 'tensor<2x8xf32>' and its channels on axis 1}}
  %0 = ktn.batch_norm %x, %m, %m gamma %g : tensor<2xf32> {axis = 1, epsilon = 0.001} : tensor<2x8xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8xf32>) {
  // expected-error @below {{axis is -1 but the tensor has rank 2}}
  %0 = ktn.softmax %x {axis = -1} : tensor<2x8xf32>
  return
}

// -----

func.func @f(%x: tensor<2x5x4xf32>, %z: tensor<2x3x6xf32>) {
  // expected-error @below {{spatial axis 0 of z has extent 3 but the window has 2 positions}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.conv_kernel_grad %x, %z window [3] strides [2] padding [0, 0] dilation [1] : tensor<2x5x4xf32>, tensor<2x3x6xf32> -> tensor<3x4x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x5x4xf32>, %z: tensor<3x2x6xf32>) {
  // expected-error @below {{x has a batch of 2 but z has 3}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.conv_kernel_grad %x, %z window [3] strides [2] padding [0, 0] dilation [1] : tensor<2x5x4xf32>, tensor<3x2x6xf32> -> tensor<3x4x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x5x4xf32>, %z: tensor<2x2x5xf32>) {
  // expected-error @below {{z has 5 channels, which 2 groups cannot share evenly}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.conv_kernel_grad %x, %z window [3] strides [2] padding [0, 0] dilation [1] {groups = 2} : tensor<2x5x4xf32>, tensor<2x2x5xf32> -> tensor<3x2x5xf32>
  return
}

// -----

func.func @f(%x: tensor<2x5x4xf32>, %z: tensor<2x5x4x6xf32>) {
  // expected-error @below {{z has rank 4 but x has rank 3}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.conv_kernel_grad %x, %z window [3] strides [2] padding [0, 0] dilation [1] : tensor<2x5x4xf32>, tensor<2x5x4x6xf32> -> tensor<3x4x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x5x4xf32>, %z: tensor<2x5x4xf32>) {
  // expected-error @below {{window has 2 entries but must have 1: one for each spatial axis}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.conv_kernel_grad %x, %z window [1, 1] strides [1] padding [0, 0] dilation [1] : tensor<2x5x4xf32>, tensor<2x5x4xf32> -> tensor<1x4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<2x5x4xf32>, %max: tensor<2x3x4xf32>) {
  // expected-error @below {{max has the type 'tensor<2x3x4xf32>' but the pool of x has 'tensor<2x2x4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.max_pool_index %x, %max size [2] strides [2] padding [0, 0] : tensor<2x5x4xf32>, tensor<2x3x4xf32> -> tensor<2x3x4xi32>
  return
}

// -----

func.func @f(%x: tensor<2x5x5x4xf32>, %max: tensor<2x1x1x4xf32>) {
  // expected-error @below {{windows have at most 16777216 elements, got a pool_size of 100000, 100000}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.max_pool_index %x, %max size [100000, 100000] strides [100000, 100000] padding [0, 99995, 0, 99995] : tensor<2x5x5x4xf32>, tensor<2x1x1x4xf32> -> tensor<2x1x1x4xi32>
  return
}
