// RUN: keratin-opt %s --ktn-decompose --split-input-file --verify-diagnostics

func.func @choose(%c: tensor<i1>, %a: tensor<2xf32>, %b: tensor<3xf32>) -> tensor<?xf32> {
  // expected-error @+2 {{one choice has shape 'tensor<2xf32>' and the other 'tensor<3xf32>' but the condition is not known}}
  // expected-note @+1 {{compiled code chooses between tensors of one shape}}
  %y = ktn.choose %c, %a, %b : tensor<i1>, tensor<2xf32>, tensor<3xf32> -> tensor<?xf32>
  return %y : tensor<?xf32>
}
