// RUN: keratin-opt %s --ktn-specialize-shapes=batch=3 --split-input-file --verify-diagnostics

func.func @does_not_fit(%x: tensor<?x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{shapes [3, 8] and [4, 8] do not broadcast}}
  %z = ktn.add %x, %y : tensor<?x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}

// -----

// expected-error @+1 {{'func.func' op has an argument of type 'f32'}}
func.func @no_tensor(%x: f32) -> f32 {
  return %x : f32
}

// -----

func.func @extent_of_a_value(%n: tensor<1xi64>) -> tensor<?xi32> {
  // expected-error @+1 {{'ktn.iota' op has type 'tensor<?xi32>' at run time: an extent depends on values, not on shapes alone}}
  %y = ktn.iota shape %n : tensor<1xi64> to [?], i32 {axis = 0} : tensor<?xi32>
  return %y : tensor<?xi32>
}
