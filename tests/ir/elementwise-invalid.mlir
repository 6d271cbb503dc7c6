// RUN: keratin-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: tensor<2x3xf32>, %b: tensor<4xf32>) {
  // expected-error @below {{shapes [2, 3] and [4] do not broadcast}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.add %a, %b : tensor<2x3xf32>, tensor<4xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%a: tensor<2xf32>, %b: tensor<2xi32>) {
  // expected-error @below {{operands have the element types 'f32' and 'i32'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.mul %a, %b : tensor<2xf32>, tensor<2xi32> -> tensor<2xf32>
  return
}

// -----

// A written result type is checked against the inferred one.
func.func @f(%a: tensor<2x3xf32>, %b: tensor<3xf32>) {
  // expected-error @below {{inferred type(s) 'tensor<2x3xf32>' are incompatible with return type(s) of operation 'tensor<2x4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.sub %a, %b : tensor<2x3xf32>, tensor<3xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @f(%a: tensor<2xi32>) {
  // expected-error @below {{operand #0 must be ranked tensor of floats, but got 'tensor<2xi32>'}}
  %0 = ktn.exp %a : tensor<2xi32>
  return
}

// -----

// ui8 is a storage type.
func.func @f(%a: tensor<2xui8>) {
  // expected-error @below {{must be ranked tensor of floats or signless integers, but got 'tensor<2xui8>'}}
  %0 = ktn.add %a, %a : tensor<2xui8>
  return
}

// -----

func.func @f(%a: tensor<2xi32>) {
  // expected-error @below {{must be ranked tensor of i1, but got 'tensor<2xi32>'}}
  %0 = ktn.logical_and %a, %a : tensor<2xi32>
  return
}

// -----

func.func @f(%a: tensor<3xf32>, %b: tensor<2xf32>) {
  // expected-error @below {{shapes [3] and [2] do not broadcast}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.less %a, %b : tensor<3xf32>, tensor<2xf32> -> tensor<3xi1>
  return
}

// -----

func.func @f(%p: tensor<2xf32>, %a: tensor<2xf32>) {
  // expected-error @below {{operand #0 must be ranked tensor of i1, but got 'tensor<2xf32>'}}
  %0 = ktn.select %p, %a, %a : tensor<2xf32>, tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>
  return
}

// -----

func.func @f(%p: tensor<i1>, %a: tensor<2xf32>, %b: tensor<2xf64>) {
  // expected-error @below {{operands have the element types 'f32' and 'f64'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.select %p, %a, %b : tensor<i1>, tensor<2xf32>, tensor<2xf64> -> tensor<2xf32>
  return
}

// -----

func.func @f(%a: tensor<2xf32>) {
  // expected-error @below {{'tensor<2xf32>' is no element type}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.cast %a to tensor<2xf32> : tensor<2xf32> -> tensor<2xf32>
  return
}

// -----

func.func @f(%a: tensor<*xf32>) {
  // expected-error @below {{expected builtin.tensor, but found 'tensor<*xf32>'}}
  %0 = ktn.neg %a : tensor<*xf32>
  return
}

// -----

// The byte size is checked before anything is allocated.
func.func @f(%a: tensor<4294967296x1xf32>, %b: tensor<2147483648xf32>) {
  // expected-error @below {{a tensor of shape [4294967296, 2147483648] and element type 'f32' has more than 2^63 - 1 bytes}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.add %a, %b : tensor<4294967296x1xf32>, tensor<2147483648xf32> -> tensor<4294967296x2147483648xf32>
  return
}
