// RUN: keratin-opt %s --ktn-expand-gradients --split-input-file --verify-diagnostics

func.func @no_rule(%x: tensor<3xf32>, %w: tensor<3xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{'ktn.scan' op has no gradient}}
  %r = ktn.scan (%t = %x : tensor<3xf32>) init (%s = %w : tensor<3xf32>) {
    %n = ktn.add %s, %t : tensor<3xf32>, tensor<f32> -> tensor<3xf32>
    ktn.yield %n : tensor<3xf32>
  } -> tensor<3xf32>
  // expected-note @+1 {{needed by this gradient}}
  %dw = ktn.gradients %r wrt %w : tensor<3xf32> wrt tensor<3xf32>
  return %dw : tensor<3xf32>
}

// -----

// A value that the body takes from outside counts as well.
func.func @captured(%x: tensor<3xf32>, %w: tensor<f32>) -> tensor<f32> {
  %zero = ktn.constant dense<0.0> : tensor<f32>
  // expected-error @+1 {{'ktn.scan' op has no gradient}}
  %r = ktn.scan (%t = %x : tensor<3xf32>) init (%s = %zero : tensor<f32>) {
    %n = ktn.add %s, %w : tensor<f32>
    ktn.yield %n : tensor<f32>
  } -> tensor<f32>
  // expected-note @+1 {{needed by this gradient}}
  %dw = ktn.gradients %r wrt %w : tensor<f32> wrt tensor<f32>
  return %dw : tensor<f32>
}
