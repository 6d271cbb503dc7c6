// RUN: keratin-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: tensor<5x2x6xf32>, %b: tensor<5x6x3xf32>) {
  // expected-error @below {{contracted axis 2 of lhs [5, 2, 6] has 6 elements but axis 2 of rhs [5, 6, 3] has 3}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.dot_general %a, %b batch [0] x [0] contract [2] x [2] : tensor<5x2x6xf32>, tensor<5x6x3xf32> -> tensor<5x2x3xf32>
  return
}

// -----

func.func @f(%a: tensor<5x2x6xf32>, %b: tensor<5x6x3xf32>) {
  // expected-error @below {{batch axis 1 of lhs [5, 2, 6] has 2 elements but axis 0 of rhs [5, 6, 3] has 5}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.dot_general %a, %b batch [1] x [0] contract [2] x [1] : tensor<5x2x6xf32>, tensor<5x6x3xf32> -> tensor<5x2x3xf32>
  return
}

// -----

func.func @f(%a: tensor<5x2x6xf32>, %b: tensor<5x6x3xf32>) {
  // expected-error @below {{lhs has rank 3 but its axis 3 is used}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.dot_general %a, %b batch [0] x [0] contract [3] x [1] : tensor<5x2x6xf32>, tensor<5x6x3xf32> -> tensor<5x2x3xf32>
  return
}

// -----

func.func @f(%a: tensor<5x2x6xf32>, %b: tensor<5x6x3xf32>) {
  // expected-error @below {{axis 0 of rhs is used twice}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.dot_general %a, %b batch [0] x [0] contract [2] x [0] : tensor<5x2x6xf32>, tensor<5x6x3xf32> -> tensor<5x2x3xf32>
  return
}

// -----

func.func @f(%a: tensor<5x2x6xf32>, %b: tensor<5x6x3xf32>) {
  // expected-error @below {{lhs has 2 contracted axes but rhs has 1}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.dot_general %a, %b batch [0] x [0] contract [1, 2] x [1] : tensor<5x2x6xf32>, tensor<5x6x3xf32> -> tensor<5x2x3xf32>
  return
}

// -----

func.func @f(%a: tensor<5xf32>, %b: tensor<5xf64>) {
  // expected-error @below {{operands have the element types 'f32' and 'f64'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = ktn.dot_general %a, %b contract [0] x [0] : tensor<5xf32>, tensor<5xf64> -> tensor<f32>
  return
}
