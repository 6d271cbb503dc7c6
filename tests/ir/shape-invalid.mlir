// RUN: keratin-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2x6xf32>) {
  // expected-error @below {{cannot reshape [2, 6] with 12 elements to [5, 2]}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.reshape %x to [5, 2] : tensor<2x6xf32> -> tensor<5x2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>) {
  // expected-error @below {{cannot reshape [2, 6] with 12 elements to [?, 5]}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.reshape %x to [?, 5] : tensor<2x6xf32> -> tensor<?x5xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>) {
  // expected-error @below {{target [?, ?] has 2 unknown extents but only one follows from the element count}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.reshape %x to [?, ?] : tensor<2x6xf32> -> tensor<?x?xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>) {
  // expected-error @below {{the unknown extent of target [?, 0] does not follow from the element count, as another extent is 0}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.reshape %x to [?, 0] : tensor<2x6xf32> -> tensor<?x0xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>) {
  // expected-error @below {{target [-3, 4] has the negative extent -3}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.reshape %x to [-3, 4] : tensor<2x6xf32> -> tensor<3x4xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>) {
  // expected-error @below {{shape [4611686018427387904, 4] has more than 2^63 - 1 elements}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.reshape %x to [4611686018427387904, 4] : tensor<2x6xf32> -> tensor<4611686018427387904x4xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>, %s: tensor<3xi64>) {
  // expected-error @below {{shape has type 'tensor<3xi64>' but the target [?, ?] has 2 axes}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.reshape %x shape %s : tensor<3xi64> to [?, ?] : tensor<2x6xf32> -> tensor<?x?xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>) {
  // expected-error @below {{permutation has 1 entries but must have 2: one for each axis}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.transpose %x, [0] : tensor<2x6xf32> -> tensor<2x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>) {
  // expected-error @below {{permutation is 2 but the tensor has rank 2}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.transpose %x, [0, 2] : tensor<2x6xf32> -> tensor<2x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>) {
  // expected-error @below {{permutation [1, 1] has axis 1 twice}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.transpose %x, [1, 1] : tensor<2x6xf32> -> tensor<6x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>) {
  // expected-error @below {{cannot broadcast [2, 6] to [6] of smaller rank}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.broadcast_to %x to [6] : tensor<2x6xf32> -> tensor<6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>) {
  // expected-error @below {{cannot broadcast [2, 6] to [4, 6]: axis 0 has 2 and 4}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.broadcast_to %x to [4, 6] : tensor<2x6xf32> -> tensor<4x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>) {
  // expected-error @below {{extent 0 of target [?, 2, 6] is unknown but [2, 6] has no axis there}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.broadcast_to %x to [?, 2, 6] : tensor<2x6xf32> -> tensor<?x2x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>) {
  // expected-error @below {{axes is 3 but the tensor has rank 3}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.expand_dims %x, [3] : tensor<2x6xf32> -> tensor<2x6x1xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>) {
  // expected-error @below {{cannot squeeze axis 0 of [2, 6]: its extent is 2}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.squeeze %x, [0] : tensor<2x6xf32> -> tensor<6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>) {
  // expected-error @below {{axis is 2 but the tensor has rank 2}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.concat %x, %x {axis = 2} : tensor<2x6xf32>, tensor<2x6xf32> -> tensor<2x12xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>, %y: tensor<3x6xf32>) {
  // expected-error @below {{cannot concatenate along axis 1: axis 0 has 2 and 3}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.concat %x, %y {axis = 1} : tensor<2x6xf32>, tensor<3x6xf32> -> tensor<2x12xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>, %y: tensor<2xf32>) {
  // expected-error @below {{operands have the ranks 2 and 1}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.concat %x, %y {axis = 1} : tensor<2x6xf32>, tensor<2xf32> -> tensor<2x12xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>, %y: tensor<2x6xf64>) {
  // expected-error @below {{operands have the element types 'f32' and 'f64'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.concat %x, %y {axis = 1} : tensor<2x6xf32>, tensor<2x6xf64> -> tensor<2x12xf32>
  return
}

// -----

func.func @f() {
  // expected-error @below {{there is no tensor to concatenate}}
  // expected-error @below {{failed to infer returned types}}
  %0 = "ktn.concat"() <{axis = 0 : i64}> : () -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<9223372036854775807xi8>) {
  // expected-error @below {{the extents 9223372036854775807 and 9223372036854775807 of axis 0 overflow}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.concat %x, %x {axis = 0} : tensor<9223372036854775807xi8>, tensor<9223372036854775807xi8> -> tensor<2xi8>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>) {
  // expected-error @below {{starts has 1 entries but must have 2: one for each axis}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.slice %x[0:2:1] : tensor<2x6xf32> -> tensor<2x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>) {
  // expected-error @below {{slice ends at 3 but the axis has extent 2}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.slice %x[0:3:1, 0:6:1] : tensor<2x6xf32> -> tensor<3x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>) {
  // expected-error @below {{slice starts at 2 but ends at 1}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.slice %x[2:1:1, 0:6:1] : tensor<2x6xf32> -> tensor<0x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>) {
  // expected-error @below {{slice starts at 0 with stride 0 but needs a start of at least 0 and a stride of at least 1}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.slice %x[0:2:0, 0:6:1] : tensor<2x6xf32> -> tensor<2x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>) {
  // expected-error @below {{low has 1 entries but must have 2: one for each axis}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.pad %x low [0] high [0, 0] value 0.0 : f32 : tensor<2x6xf32> -> tensor<2x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>) {
  // expected-error @below {{padding is 0 and -1 but must not be negative}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.pad %x low [0, 0] high [0, -1] value 0.0 : f32 : tensor<2x6xf32> -> tensor<2x5xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>) {
  // expected-error @below {{the extent 2 and the padding 9223372036854775807 and 0 overflow}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.pad %x low [9223372036854775807, 0] high [0, 0] value 0.0 : f32 : tensor<2x6xf32> -> tensor<2x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>) {
  // expected-error @below {{value has type 'f64' but x has element type 'f32'}}
  %0 = ktn.pad %x low [0, 0] high [0, 1] value 0.0 : f64 : tensor<2x6xf32> -> tensor<2x7xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>) {
  // expected-error @below {{axes is 2 but the tensor has rank 2}}
  %0 = ktn.reverse %x, [0, 2] : tensor<2x6xf32>
  return
}
