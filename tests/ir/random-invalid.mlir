// RUN: keratin-opt %s --split-input-file --verify-diagnostics

func.func @f(%s: tensor<3xi64>) {
  // expected-error @below {{state has the shape [3] but must be a key and a call: [2]}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.random %s : tensor<3xi64> to [4], f32 : tensor<4xf32>
  return
}

// -----

func.func @f(%s: tensor<2xi64>) {
  // expected-error @below {{target [?] has an unknown extent but there is no shape that gives it}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.random %s : tensor<2xi64> to [?], f32 : tensor<?xf32>
  return
}

// -----

func.func @f(%s: tensor<2xi64>, %n: tensor<1xi64>) {
  // expected-error @below {{shape has type 'tensor<1xi64>' but the target [?, 4] has 2 axes}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.random %s : tensor<2xi64> shape %n : tensor<1xi64> to [?, 4], f32 : tensor<?x4xf32>
  return
}

// -----

func.func @f(%s: tensor<2xi64>) {
  // expected-error @below {{result #0 must be ranked tensor of floats or i32, but got 'tensor<4xi64>'}}
  %0 = ktn.random %s : tensor<2xi64> to [4], i64 : tensor<4xi64>
  return
}
