// RUN: keratin-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{axes is 2 but the tensor has rank 2}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.sum %x, [2] : tensor<2x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{axes is -1 but the tensor has rank 2}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.max %x, [-1] : tensor<2x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{axes has 0 after 1 but must be sorted and distinct}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.prod %x, [1, 0] : tensor<2x3xf32> -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{operand #0 must be ranked tensor of i1, but got 'tensor<2x3xf32>'}}
  %0 = ktn.any %x, [1] : tensor<2x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{requires attribute 'axis'}}
  %0 = ktn.argmax %x : tensor<2x3xf32> -> tensor<2xi64>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{axis is 2 but the tensor has rank 2}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.argmin %x {axis = 2} : tensor<2x3xf32> -> tensor<2xi64>
  return
}

// -----

// Nothing has no largest element.
func.func @f(%x: tensor<2x0xf32>) {
  // expected-error @below {{axis 1 of [2, 0] is empty but must have an element to find}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.argmax %x {axis = 1} : tensor<2x0xf32> -> tensor<2xi64>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %mean: tensor<3xf32>) {
  // expected-error @below {{mean has type 'tensor<3xf32>' but the mean over these axes has the type 'tensor<1x3xf32>'}}
  %0 = ktn.squared_deviations %x, %mean, [0] : tensor<2x3xf32>, tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %mean: tensor<1x3xf32>) {
  // expected-error @below {{axes is 2 but the tensor has rank 2}}
  %0 = ktn.squared_deviations %x, %mean, [2] : tensor<2x3xf32>, tensor<1x3xf32>
  return
}
