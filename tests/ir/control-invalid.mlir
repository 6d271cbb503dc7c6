// RUN: keratin-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{has type 'tensor<2xf32>' but its initial value has 'tensor<3xf32>'}}
ktn.variable @w : tensor<2xf32> = dense<0.0> : tensor<3xf32>

// -----

func.func @f() {
  // expected-error @below {{there is no variable @w}}
  %0 = ktn.read @w : tensor<2xf32>
  return
}

// -----

// expected-note @below {{the variable is here}}
ktn.variable @w : tensor<2xf32> = dense<0.0> : tensor<2xf32>
func.func @f(%x: tensor<3xf32>) {
  // expected-error @below {{has type 'tensor<3xf32>' but variable @w has 'tensor<2xf32>'}}
  ktn.assign @w, %x : tensor<3xf32>
  return
}

// -----

func.func @f() {
  // expected-error @below {{value has type 'vector<2xf32>' but must be a ranked tensor}}
  %0 = ktn.constant dense<0.0> : vector<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @below {{there is no target to differentiate}}
  // expected-error @below {{failed to infer returned types}}
  %0 = "ktn.gradients"(%x) <{operandSegmentSizes = array<i32: 0, 1>}> : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<f32>) {
  // expected-error @below {{cannot scan a scalar: it has no time axis}}
  ktn.scan (%t = %x : tensor<f32>) init () {
    ktn.yield
  }
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @below {{a scan without xs must have a length}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.scan () init (%s = %x : tensor<2xf32>) {
    ktn.yield %s : tensor<2xf32>
  } -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @below {{length is -1 but must not be negative}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.scan () init (%s = %x : tensor<2xf32>) length -1 {
    ktn.yield %s : tensor<2xf32>
  } -> tensor<2xf32>
  return
}

// -----

func.func @f(%a: tensor<3xf32>, %b: tensor<4xf32>) {
  // expected-error @below {{the time axes have 3 and 4 steps}}
  // expected-error @below {{failed to infer returned types}}
  ktn.scan (%x = %a : tensor<3xf32>, %y = %b : tensor<4xf32>) init () {
    ktn.yield
  }
  return
}

// -----

func.func @f(%a: tensor<3xf32>) {
  // expected-error @below {{the body does not end in ktn.yield}}
  // expected-error @below {{failed to infer returned types}}
  ktn.scan (%x = %a : tensor<3xf32>) init () {
    llvm.unreachable
  }
  return
}

// -----

func.func @f(%a: tensor<3xf32>) {
  // expected-error @below {{the body yields 0 values but there are 1 states}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.scan (%x = %a : tensor<3xf32>) init (%s = %a : tensor<3xf32>) {
    ktn.yield
  } -> tensor<3xf32>
  return
}

// -----

func.func @f(%a: tensor<3xf32>) {
  // expected-error @below {{the body yields the states 'tensor<f32>' but they start as 'tensor<3xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.scan (%x = %a : tensor<3xf32>) init (%s = %a : tensor<3xf32>) {
    ktn.yield %x : tensor<f32>
  } -> tensor<3xf32>
  return
}

// -----

func.func @f(%a: tensor<3xf32>) {
  // expected-error @below {{the body takes 'tensor<3xf32>' but the slices and states are 'tensor<f32>'}}
  // expected-error @below {{failed to infer returned types}}
  "ktn.scan"(%a) <{operandSegmentSizes = array<i32: 1, 0>}> ({
  ^bb0(%x: tensor<3xf32>):
    ktn.yield
  }) : (tensor<3xf32>) -> ()
  return
}

// -----

// The stacked outputs have the time axis of xs.
func.func @f(%a: tensor<3xf32>) {
  // expected-error @below {{inferred type(s) 'tensor<3xf32>' are incompatible with return type(s) of operation 'tensor<4xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.scan (%x = %a : tensor<3xf32>) init () {
    ktn.yield %x : tensor<f32>
  } -> tensor<4xf32>
  return
}

// -----

func.func @f() {
  // expected-error @below {{expects parent op 'ktn.scan'}}
  ktn.yield
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @below {{keeps states every 0 steps but must do so every 1 or more}}
  %0 = ktn.scan () init (%s = %x : tensor<2xf32>) length 3 attributes {checkpoint_every = 0 : i64} {
    ktn.yield %s : tensor<2xf32>
  } -> tensor<2xf32>
  return
}

// -----

func.func @f(%c: tensor<i1>, %a: tensor<2xf32>, %b: tensor<2x3xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{one choice has shape 'tensor<2xf32>' and the other 'tensor<2x3xf32>': they must have the same number of axes}}
  %0 = ktn.choose %c, %a, %b : tensor<i1>, tensor<2xf32>, tensor<2x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @f(%c: tensor<i1>, %a: tensor<2xf32>, %b: tensor<2xf64>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{one choice has dtype 'f32' and the other 'f64'}}
  %0 = ktn.choose %c, %a, %b : tensor<i1>, tensor<2xf32>, tensor<2xf64> -> tensor<2xf32>
  return
}
