// RUN: keratin-opt %s --ktn-expand-gradients --allow-unregistered-dialect --split-input-file --verify-diagnostics

// An op that is on the way and has no rule is named.
func.func @no_rule(%x: tensor<3xf32>, %w: tensor<3xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{'test.unknown' op has no gradient}}
  %r = "test.unknown"(%x, %w) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  // expected-note @+1 {{needed by this gradient}}
  %dw = ktn.gradients %r wrt %w : tensor<3xf32> wrt tensor<3xf32>
  return %dw : tensor<3xf32>
}

// -----

// So is one in the body of a loop, on the way to what the body takes from outside.
func.func @in_a_loop(%x: tensor<3xf32>, %w: tensor<f32>) -> tensor<f32> {
  %zero = ktn.constant dense<0.0> : tensor<f32>
  // expected-note @+1 {{needed by this gradient}}
  %r = ktn.scan (%t = %x : tensor<3xf32>) init (%s = %zero : tensor<f32>) {
    // expected-error @+1 {{'test.unknown' op has no gradient}}
    %n = "test.unknown"(%s, %w) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    ktn.yield %n : tensor<f32>
  } -> tensor<f32>
  %dw = ktn.gradients %r wrt %w : tensor<f32> wrt tensor<f32>
  return %dw : tensor<f32>
}
