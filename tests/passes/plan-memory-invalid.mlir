// RUN: keratin-opt %s --ktn-plan-memory --split-input-file --verify-diagnostics

// Only kernels have their results in buffers of the caller.
func.func @calls_a_function(%x: tensor<4xf32> {ktn.name = "x"}) -> (tensor<4xf32> {ktn.name = "y"}) {
  %out = tensor.empty() : tensor<4xf32>
  // expected-error @+1 {{calls @other, which is no kernel}}
  %y = call @other(%x, %out) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func private @other(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
