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

// -----

// The kind is what tables of kernels say.
// expected-error @+1 {{the kind of a kernel is a string}}
func.func private @kind(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32> attributes {ktn.kernel} {
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{a kernel has a destination for each result}}
func.func private @no_result(%x: tensor<4xf32>) attributes {ktn.kernel = "elementwise"} {
  return
}

// -----

// expected-error @+1 {{a kernel ends in a return}}
func.func private @no_return(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32> attributes {ktn.kernel = "elementwise"} {
  llvm.unreachable
}

// -----

// expected-error @+1 {{argument #0 is a 'memref<4xf32>', neither a number nor a tensor of numbers}}
func.func private @memref(%x: memref<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32> attributes {ktn.kernel = "elementwise"} {
  return %out : tensor<4xf32>
}

// -----

// expected-error @+1 {{argument #0 is a 'tensor<*xf32>', neither a number nor a tensor of numbers}}
func.func private @unranked(%x: tensor<*xf32>, %out: tensor<4xf32>) -> tensor<4xf32> attributes {ktn.kernel = "elementwise"} {
  return %out : tensor<4xf32>
}

// -----

// expected-error @+1 {{argument #0 is a 'tensor<4xcomplex<f32>>', neither a number nor a tensor of numbers}}
func.func private @complex(%x: tensor<4xcomplex<f32>>, %out: tensor<4xf32>) -> tensor<4xf32> attributes {ktn.kernel = "elementwise"} {
  return %out : tensor<4xf32>
}

// -----

// A destination is written, and by nobody else.
// expected-error @+1 {{the destination of result #0 is a constant}}
func.func private @constant(%x: tensor<4xf32>, %out: tensor<4xf32> {ktn.constant}) -> tensor<4xf32> attributes {ktn.kernel = "elementwise"} {
  return %x : tensor<4xf32>
}

// -----

func.func private @swapped(%x: tensor<4xf32>, %a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {ktn.kernel = "elementwise"} {
  // expected-error @+1 {{reads the destination of result #0, which has no elements yet}}
  return %b, %a : tensor<4xf32>, tensor<4xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>

func.func private @reads_destination(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32> attributes {ktn.kernel = "elementwise"} {
  // expected-error @+1 {{reads the destination of result #0, which has no elements yet}}
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%out : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// A view has its place before anything is computed.
func.func private @computed_view(%x: tensor<?xf32>, %out: tensor<?x4xf32>) -> tensor<?x4xf32> attributes {ktn.kernel = "elementwise"} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %out, %c0 : tensor<?x4xf32>
  // expected-error @+1 {{a kernel computes no extents of its views}}
  %y = tensor.expand_shape %x [[0, 1]] output_shape [%n, 4] : tensor<?xf32> into tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// -----

func.func private @axis(%x: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32> attributes {ktn.kernel = "elementwise"} {
  %c7 = arith.constant 7 : index
  // expected-error @+1 {{is not the extent of a known axis}}
  %n = tensor.dim %x, %c7 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  return %e : tensor<?xf32>
}

// -----

func.func private @computed_axis(%axis: index, %x: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32> attributes {ktn.kernel = "elementwise"} {
  // expected-error @+1 {{is not the extent of a known axis}}
  %n = tensor.dim %x, %axis : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  return %e : tensor<?xf32>
}

// -----

func.func private @crop(%x: tensor<8xf32>, %out: tensor<5xf32>) -> tensor<5xf32> attributes {ktn.kernel = "pad"} {
  %c = arith.constant 0.0 : f32
  // expected-error @+1 {{has a border of -3 elements}}
  %y = tensor.pad %x low[-3] high[0] {
  ^bb0(%i: index):
    tensor.yield %c : f32
  } : tensor<8xf32> to tensor<5xf32>
  return %y : tensor<5xf32>
}

// -----

func.func private @pad_of_elements(%x: tensor<8xf32>, %out: tensor<9xf32>) -> tensor<9xf32> attributes {ktn.kernel = "pad"} {
  %y = tensor.pad %x low[1] high[0] {
  ^bb0(%i: index):
    // expected-error @+1 {{is not an op of the body of a kernel's op}}
    %v = tensor.extract %x[%i] : tensor<8xf32>
    tensor.yield %v : f32
  } : tensor<8xf32> to tensor<9xf32>
  return %y : tensor<9xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>

// Bodies compute numbers from numbers.
func.func private @branch(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32> attributes {ktn.kernel = "elementwise"} {
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%out : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.constant true
    %c0 = arith.constant 0 : index
    // expected-error @+1 {{is not an op of the body of a kernel's op}}
    %v = scf.if %t -> f32 {
      %w = tensor.extract %x[%c0] : tensor<4xf32>
      scf.yield %w : f32
    } else {
      scf.yield %a : f32
    }
    linalg.yield %v : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>

func.func private @body_of_tensors(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32> attributes {ktn.kernel = "elementwise"} {
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%out : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    // expected-error @+1 {{is not an op of the body of a kernel's op}}
    %t = arith.addf %x, %x : tensor<4xf32>
    linalg.yield %a : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>

func.func private @constant_of_body(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32> attributes {ktn.kernel = "elementwise"} {
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%out : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %c0 = arith.constant 0 : index
    // expected-error @+1 {{is not an op of the body of a kernel's op}}
    %t = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %v = tensor.extract %t[%c0] : tensor<2xf32>
    linalg.yield %v : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>

func.func private @f(f32) -> f32
func.func private @call_in_body(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32> attributes {ktn.kernel = "elementwise"} {
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%out : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    // expected-error @+1 {{is not an op of the body of a kernel's op}}
    %v = func.call @f(%a) : (f32) -> f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// What a kernel writes to is nobody's yet.
func.func @in_place(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{the destination of result #0 is no tensor.empty}}
  %y = call @copy(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func private @copy(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32> attributes {ktn.kernel = "elementwise"} {
  return %x : tensor<4xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>

// No position is a quotient by zero.
func.func private @quotient(%x: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32> attributes {ktn.kernel = "elementwise"} {
  // expected-error @+1 {{reads at positions that are not of any tensor}}
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0 mod 0)>, #id], iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%out : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>

func.func private @far(%x: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32> attributes {ktn.kernel = "elementwise"} {
  // expected-error @+1 {{reads at positions that are not of any tensor}}
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0 + 9223372036854775807)>, #id], iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%out : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

func.func private @wide_border(%x: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32> attributes {ktn.kernel = "pad"} {
  %c = arith.constant 0.0 : f32
  // expected-error @+1 {{has a border of 9223372036854775807 elements}}
  %y = tensor.pad %x low[0] high[9223372036854775807] {
  ^bb0(%i: index):
    tensor.yield %c : f32
  } : tensor<?xf32> to tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// expected-error @+1 {{argument #0 is a 'tensor<3037000500x3037000500xf32>', more bytes than a process can address}}
func.func private @huge(%x: tensor<3037000500x3037000500xf32>, %out: tensor<4xf32>) -> tensor<4xf32> attributes {ktn.kernel = "elementwise"} {
  return %out : tensor<4xf32>
}

// -----

func.func private @huge_inside(%x: tensor<?x?xf32>, %out: tensor<4xf32>) -> tensor<4xf32> attributes {ktn.kernel = "elementwise"} {
  // expected-error @+1 {{has a 'tensor<3037000500x3037000500xf32>', more bytes than a process can address}}
  %0 = tensor.empty() : tensor<3037000500x3037000500xf32>
  return %out : tensor<4xf32>
}
