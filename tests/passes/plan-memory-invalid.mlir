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

// -----

// expected-error @+1 {{a buffer holds a tensor of numbers, not a 'index'}}
func.func @argument(%i: index) -> tensor<4xf32> {
  %c = arith.constant dense<0.0> : tensor<4xf32>
  return %c : tensor<4xf32>
}

// -----

// expected-error @+1 {{a buffer holds a tensor of numbers, not a 'tensor<4xcomplex<f32>>'}}
func.func @complex(%x: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  return %x : tensor<4xcomplex<f32>>
}

// -----

// expected-error @+1 {{a buffer holds a tensor of numbers, not a 'tensor<*xf32>'}}
func.func @unranked(%x: tensor<*xf32>) -> tensor<*xf32> {
  return %x : tensor<*xf32>
}

// -----

func.func @carried_number(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{a buffer holds a tensor of numbers, not a 'index'}}
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %r:2 = scf.for %i = %c0 to %c5 step %c1 iter_args(%a = %x, %n = %c1) -> (tensor<4xf32>, index) {
    %m = arith.addi %n, %n : index
    scf.yield %a, %m : tensor<4xf32>, index
  }
  return %r#0 : tensor<4xf32>
}

// -----

// Nothing computes between kernels but sizes.
func.func @sum(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{a value between kernels has no buffer}}
  %y = arith.addf %x, %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @element_of_nothing(%x: tensor<4xf32>) -> tensor<3x4xf32> {
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<4xi32>
  // expected-error @+1 {{a value between kernels has no buffer}}
  %v = tensor.extract %e[%c0] : tensor<4xi32>
  %i = arith.index_cast %v : i32 to index
  %stack = tensor.empty() : tensor<3x4xf32>
  %y = tensor.insert_slice %x into %stack[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

func.func @every_other(%x: tensor<2x4xf32>) -> tensor<4x4xf32> {
  %e = tensor.empty() : tensor<4x4xf32>
  // expected-error @+1 {{is not a slice along the outermost axis}}
  %y = tensor.insert_slice %x into %e[0, 0] [2, 4] [2, 1] : tensor<2x4xf32> into tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// Only what is known when the model is compiled can be packed then.
func.func @packs_input(%x: tensor<16x20xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %from = builtin.unrealized_conversion_cast %x : tensor<16x20xf32> to memref<2x16x16xf32>
  %to = builtin.unrealized_conversion_cast %e : tensor<4xf32> to memref<4xf32>
  // expected-error @+1 {{operand #0 is not a constant, which the kernel wants packed}}
  call @packed(%from, %to) : (memref<2x16x16xf32>, memref<4xf32>) -> ()
  %y = builtin.unrealized_conversion_cast %to : memref<4xf32> to tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func private @packed(%w: memref<2x16x16xf32> {ktn.packed = {block = 16, dim = 1}, ktn.unpacked_type = tensor<16x20xf32>}, %out: memref<4xf32>) attributes {ktn.kernel = "matmul"} {
  return
}

// -----

// The caller has memory for a batch of rows.
func.func @two_batches(%x: tensor<?x4xf32>) -> (tensor<?x4xf32> {ktn.name = "both"}) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %rows = arith.muli %n, %c2 : index
  // expected-error @+1 {{output 'both' has 2 b rows on axis 0 for a batch of b, and only b itself may be open: fix the batch (--batch=N, or the shapes of the inputs)}}
  %both = tensor.empty(%rows) : tensor<?x4xf32>
  return %both : tensor<?x4xf32>
}

// -----

// Only a loop over bands has turns of which a thread has the first.
func.func @starts_outside(%x: tensor<1x4x4xf32>) -> tensor<1x4x4xf32> {
  %e = tensor.empty() : tensor<1x4x4xf32>
  %m = builtin.unrealized_conversion_cast %e : tensor<1x4x4xf32> to memref<1x4x4xf32>
  // expected-error @+1 {{begins no turn of a loop over bands}}
  call @kernel.fill(%m) {ktn.start = {apart = 0 : i64, bands = 0 : i64, moved = 0 : i64, steps = array<i64>}} : (memref<1x4x4xf32>) -> ()
  %r = builtin.unrealized_conversion_cast %m : memref<1x4x4xf32> to tensor<1x4x4xf32>
  return %r : tensor<1x4x4xf32>
}
func.func private @kernel.fill(%out: memref<1x4x4xf32>) attributes {ktn.kernel = "fill"} {
  return
}

// -----

// More rows are moved than lie between two turns.
func.func @moves_too_much(%x: tensor<1x4x4xf32>) -> tensor<8x4x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %all = tensor.empty() : tensor<8x4x4xf32>
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%a = %all) -> (tensor<8x4x4xf32>) {
    %e = tensor.empty() : tensor<1x4x4xf32>
    %m = builtin.unrealized_conversion_cast %e : tensor<1x4x4xf32> to memref<1x4x4xf32>
    // expected-error @+1 {{begins no turn of a loop over bands}}
    func.call @kernel.fill(%m) {ktn.start = {apart = 1 : i64, bands = 0 : i64, moved = 2 : i64, steps = array<i64: 1, 0, -1>}} : (memref<1x4x4xf32>) -> ()
    %p = builtin.unrealized_conversion_cast %m : memref<1x4x4xf32> to tensor<1x4x4xf32>
    %n = tensor.insert_slice %p into %a[%i, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<1x4x4xf32> into tensor<8x4x4xf32>
    scf.yield %n : tensor<8x4x4xf32>
  } {ktn.bands = {name = "bands", pieces = 1 : i64}}
  return %r : tensor<8x4x4xf32>
}
func.func private @kernel.fill(%out: memref<1x4x4xf32>) attributes {ktn.kernel = "fill"} {
  return
}

// -----

// What is moved has no place that is known.
func.func @moves_nothing(%x: tensor<1x4x4xf32>) -> tensor<8x4x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %all = tensor.empty() : tensor<8x4x4xf32>
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%a = %all) -> (tensor<8x4x4xf32>) {
    %e = tensor.empty() : tensor<1x4x4xf32>
    %m = builtin.unrealized_conversion_cast %e : tensor<1x4x4xf32> to memref<1x4x4xf32>
    // expected-error @+1 {{makes no rows that could be moved}}
    func.call @kernel.other(%m) {ktn.start = {apart = 1 : i64, bands = 0 : i64, moved = 1 : i64, steps = array<i64: 1, 0, -1>}} : (memref<1x4x4xf32>) -> ()
    %p = builtin.unrealized_conversion_cast %m : memref<1x4x4xf32> to tensor<1x4x4xf32>
    %n = tensor.insert_slice %p into %a[%i, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<1x4x4xf32> into tensor<8x4x4xf32>
    scf.yield %n : tensor<8x4x4xf32>
  } {ktn.bands = {name = "bands", pieces = 1 : i64}}
  return %r : tensor<8x4x4xf32>
}
func.func private @kernel.other(memref<1x4x4xf32>) attributes {ktn.kernel = "fill"}

// -----

// Nor more rows than the buffer has.
func.func @moves_more_than_all(%x: tensor<1x4x4xf32>) -> tensor<8x4x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %all = tensor.empty() : tensor<8x4x4xf32>
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%a = %all) -> (tensor<8x4x4xf32>) {
    %e = tensor.empty() : tensor<1x4x4xf32>
    %m = builtin.unrealized_conversion_cast %e : tensor<1x4x4xf32> to memref<1x4x4xf32>
    // expected-error @+1 {{makes no rows that could be moved}}
    func.call @kernel.make(%m) {ktn.start = {apart = 9223372036854775807 : i64, bands = 0 : i64, moved = 9223372036854775807 : i64, steps = array<i64: 1, 0, -1>}} : (memref<1x4x4xf32>) -> ()
    %p = builtin.unrealized_conversion_cast %m : memref<1x4x4xf32> to tensor<1x4x4xf32>
    %n = tensor.insert_slice %p into %a[%i, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<1x4x4xf32> into tensor<8x4x4xf32>
    scf.yield %n : tensor<8x4x4xf32>
  } {ktn.bands = {name = "bands", pieces = 1 : i64}}
  return %r : tensor<8x4x4xf32>
}
func.func private @kernel.make(%out: memref<1x4x4xf32>) attributes {ktn.kernel = "fill"} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%out : memref<1x4x4xf32>)
  return
}
