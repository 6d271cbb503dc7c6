// RUN: keratin-opt %s --ktn-emit-plain-loops --split-input-file --verify-diagnostics
// RUN: keratin-opt %s --ktn-emit-tiles --split-input-file --verify-diagnostics

// A kernel writes into its last arguments.
// expected-error @+1 {{result 'tensor<4xf32>' has the destination 'tensor<5xf32>'}}
func.func private @destination(%x: tensor<4xf32>, %out: tensor<5xf32>) -> tensor<4xf32> attributes {ktn.kernel = "elementwise"} {
  return %x : tensor<4xf32>
}

// -----

// A kernel computes; it does not call.
func.func private @f(tensor<4xf32>) -> tensor<4xf32>
func.func private @calls(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32> attributes {ktn.kernel = "elementwise"} {
  // expected-error @+1 {{is not an op of a kernel}}
  %y = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// Values of the kernel have no memory that a view could be of.
func.func private @view(%x: tensor<2x2xf32>, %out: tensor<4xf32>) -> tensor<4xf32> attributes {ktn.kernel = "elementwise"} {
  %e = tensor.empty() : tensor<2x2xf32>
  // expected-error @+1 {{a kernel reshapes nothing but its arguments}}
  %y = tensor.collapse_shape %e [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>
  return %y : tensor<4xf32>
}
