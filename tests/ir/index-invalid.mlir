// RUN: keratin-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<5x100xf32>, %i: tensor<4x3xi32>) {
  // expected-error @below {{axis is 2 but the tensor has rank 2}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.gather %x, %i {axis = 2} : tensor<5x100xf32>, tensor<4x3xi32> -> tensor<5x4x3xf32>
  return
}

// -----

func.func @f(%x: tensor<5x100xf32>, %i: tensor<4x3xi32>) {
  // expected-error @below {{batch_dims is 1 but the axis is 0 and the indices have rank 2}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.gather %x, %i {axis = 0, batch_dims = 1} : tensor<5x100xf32>, tensor<4x3xi32> -> tensor<5x4x3xf32>
  return
}

// -----

func.func @f(%x: tensor<5x100xf32>, %i: tensor<4x3xi32>) {
  // expected-error @below {{batch axis 0 has 5 elements in x and 4 in indices}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.gather %x, %i {axis = 1, batch_dims = 1} : tensor<5x100xf32>, tensor<4x3xi32> -> tensor<5x3xf32>
  return
}

// -----

func.func @f(%x: tensor<0x5xf32>, %i: tensor<3xi32>) {
  // expected-error @below {{axis 0 of [0, 5] is empty but must have an element to gather}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.gather %x, %i {axis = 0} : tensor<0x5xf32>, tensor<3xi32> -> tensor<3x5xf32>
  return
}

// -----

func.func @f(%x: tensor<5xf32>) {
  // expected-error @below {{operand #1 must be ranked tensor of integers, but got 'tensor<5xf32>'}}
  %0 = ktn.gather %x, %x {axis = 0} : tensor<5xf32>, tensor<5xf32> -> tensor<5xf32>
  return
}

// -----

func.func @f(%x: tensor<100x16xf32>, %i: tensor<3xi32>, %u: tensor<4x16xf32>) {
  // expected-error @below {{updates have the shape [4, 16] but x and indices ask for [3, 16]}}
  %0 = ktn.scatter_add %x, %i, %u : tensor<100x16xf32>, tensor<3xi32>, tensor<4x16xf32>
  return
}

// -----

func.func @f(%x: tensor<100x16xf32>, %i: tensor<3xi32>, %u: tensor<3x16xf64>) {
  // expected-error @below {{x has element type 'f32' but updates have 'f64'}}
  %0 = ktn.scatter_add %x, %i, %u : tensor<100x16xf32>, tensor<3xi32>, tensor<3x16xf64>
  return
}

// -----

func.func @f(%x: tensor<f32>, %i: tensor<i32>) {
  // expected-error @below {{x has rank 0 but must have an axis to scatter into}}
  %0 = ktn.scatter_add %x, %i, %x : tensor<f32>, tensor<i32>, tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<0xf32>, %i: tensor<2xi32>, %u: tensor<2xf32>) {
  // expected-error @below {{x has the shape [0] but must have an element to scatter into}}
  %0 = ktn.scatter_add %x, %i, %u : tensor<0xf32>, tensor<2xi32>, tensor<2xf32>
  return
}

// -----

func.func @f() {
  // expected-error @below {{target [?] has an unknown extent but there is no shape that gives it}}
  // expected-error @below {{failed to infer returned types}}
  %0 = "ktn.iota"() <{target = array<i64: -9223372036854775808>, axis = 0 : i64, dtype = f32}> : () -> tensor<?xf32>
  return
}

// -----

func.func @f() {
  // expected-error @below {{axis is 1 but the tensor has rank 1}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.iota [4], f32 {axis = 1} : tensor<4xf32>
  return
}

// -----

func.func @f() {
  // expected-error @below {{shape [-4] has the negative extent -4}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.iota [-4], f32 {axis = 0} : tensor<4xf32>
  return
}

// -----

func.func @f(%v: tensor<7xf32>, %r: tensor<6xi32>) {
  // expected-error @below {{values have the shape [7], rows [6] and columns [6] but must be lists of one length}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.sparse %v at %r, %r to [4, 5] : tensor<7xf32> at tensor<6xi32>, tensor<6xi32> -> tensor<4x5xf32>
  return
}

// -----

func.func @f(%v: tensor<7xf32>, %r: tensor<7xi32>) {
  // expected-error @below {{target [4, 0] must be two known extents of 1 or more}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.sparse %v at %r, %r to [4, 0] : tensor<7xf32> at tensor<7xi32>, tensor<7xi32> -> tensor<4x0xf32>
  return
}
