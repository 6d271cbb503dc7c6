// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=256 vector-registers=16 parallel" --ktn-plan-memory --split-input-file | FileCheck %s

// Each step makes rows from the same rows of the state: threads have all steps
// of their rows. They are in different steps, so that what a step is done with
// (%t) and what it makes then (%v) are not one buffer. Rows that go to the stack
// as well are copied by who has them.
#id = affine_map<(m, n) -> (m, n)>
// CHECK-LABEL: func @steps(
// CHECK-SAME:    ktn.arena_bytes = array<i64: 24576, 0>
// CHECK-SAME:    flops = array<i64: 10240000, 0>, name = "twice", op = "loop", shapes = "32x64xf32 32x64xf32 1000x32x64xf32"
// CHECK:         call @loop.twice.rows(%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %c0{{[_0-9]*}}, %c4{{[_0-9]*}}, %c4{{[_0-9]*}})
// CHECK-NEXT:    return
// CHECK:         func private @loop.twice.rows({{.*}}, %[[BEGIN:arg[0-9]+]]: index, %[[END:arg[0-9]+]]: index, %[[COUNT:arg[0-9]+]]: index) attributes {ktn.kernel = "loop", ktn.parts = 4 : i64, passthrough = ["ktn-parts"]}
// CHECK:         %[[C8:.+]] = arith.constant 8 : index
// CHECK:         %[[UNITS:.+]] = arith.muli %[[C8]], %[[BEGIN]]
// CHECK:         %[[SHARE:.+]] = arith.divui %[[UNITS]], %[[COUNT]]
// CHECK:         %[[C4:.+]] = arith.constant 4 : index
// CHECK:         %[[FIRST:.+]] = arith.muli %[[SHARE]], %[[C4]]
// CHECK:         %[[LAST:.+]] = arith.minui
// CHECK:         scf.for
// CHECK-COUNT-3:   func.call @twice.rows(%{{.+}}, %{{.+}}, %[[BEGIN]], %[[END]], %[[COUNT]])
// CHECK:           func.call @sum.rows(%{{.+}}, %{{.+}}, %{{.+}}, %[[BEGIN]], %[[END]], %[[COUNT]])
// CHECK:           %[[BYTES:.+]] = arith.constant 256 : index
// CHECK:           arith.muli %[[FIRST]], %[[BYTES]]
// CHECK:           arith.muli %[[LAST]], %[[BYTES]]
// CHECK:           memref.copy %{{.+}} : memref<?xi8> to memref<?xi8>
func.func private @twice(%x: tensor<32x64xf32>, %out: tensor<32x64xf32>) -> tensor<32x64xf32> attributes {ktn.kernel = "elementwise"} {
  %z = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<32x64xf32>) outs(%out : tensor<32x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  return %z : tensor<32x64xf32>
}

func.func private @sum(%x: tensor<32x64xf32>, %y: tensor<32x64xf32>, %out: tensor<32x64xf32>) -> tensor<32x64xf32> attributes {ktn.kernel = "elementwise"} {
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x, %y : tensor<32x64xf32>, tensor<32x64xf32>) outs(%out : tensor<32x64xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  return %z : tensor<32x64xf32>
}

func.func @steps(%h: tensor<32x64xf32>) -> (tensor<32x64xf32>, tensor<1000x32x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1000 = arith.constant 1000 : index
  %e = tensor.empty() : tensor<32x64xf32>
  %stack = tensor.empty() : tensor<1000x32x64xf32>
  %r:2 = scf.for %i = %c0 to %c1000 step %c1 iter_args(%s = %h, %all = %stack) -> (tensor<32x64xf32>, tensor<1000x32x64xf32>) {
    %t = func.call @twice(%s, %e) {ktn.bytes = array<i64: 16384000, 0>, ktn.flops = array<i64: 2048000, 0>} : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
    %u = func.call @twice(%t, %e) {ktn.bytes = array<i64: 16384000, 0>, ktn.flops = array<i64: 2048000, 0>} : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
    %v = func.call @twice(%u, %e) {ktn.bytes = array<i64: 16384000, 0>, ktn.flops = array<i64: 2048000, 0>} : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
    %n = func.call @sum(%v, %s, %e) {ktn.bytes = array<i64: 24576000, 0>, ktn.flops = array<i64: 4096000, 0>} : (tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
    %next = tensor.insert_slice %n into %all[%i, 0, 0] [1, 32, 64] [1, 1, 1] : tensor<32x64xf32> into tensor<1000x32x64xf32>
    scf.yield %n, %next : tensor<32x64xf32>, tensor<1000x32x64xf32>
  }
  return %r#0, %r#1 : tensor<32x64xf32>, tensor<1000x32x64xf32>
}

// -----

// A row of the result is a column of the state.
// CHECK-LABEL: func @transposed(
// CHECK:         scf.for
// CHECK:           func.call @turn(
// CHECK-NOT:     loop.
func.func private @turn(%x: tensor<32x32xf32>, %out: tensor<32x32xf32>) -> tensor<32x32xf32> attributes {ktn.kernel = "elementwise"} {
  %z = linalg.generic {indexing_maps = [affine_map<(m, n) -> (n, m)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<32x32xf32>) outs(%out : tensor<32x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<32x32xf32>
  return %z : tensor<32x32xf32>
}

func.func @transposed(%h: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1000 = arith.constant 1000 : index
  %e = tensor.empty() : tensor<32x32xf32>
  %r = scf.for %i = %c0 to %c1000 step %c1 iter_args(%s = %h) -> (tensor<32x32xf32>) {
    %t = func.call @turn(%s, %e) {ktn.bytes = array<i64: 163840000, 0>, ktn.flops = array<i64: 2048000, 0>} : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
    scf.yield %t : tensor<32x32xf32>
  }
  return %r : tensor<32x32xf32>
}

// -----

// All rows add up to what each of them gets.
// CHECK-LABEL: func @reduced(
// CHECK:         scf.for
// CHECK:           func.call @total(
// CHECK:           func.call @spread(
// CHECK-NOT:     loop.
func.func private @total(%x: tensor<32x64xf32>, %out: tensor<64xf32>) -> tensor<64xf32> attributes {ktn.kernel = "reduce"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<64xf32>) -> tensor<64xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(n, m) -> (m, n)>, affine_map<(n, m) -> (n)>], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<32x64xf32>) outs(%start : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %z : tensor<64xf32>
}

func.func private @spread(%x: tensor<64xf32>, %out: tensor<32x64xf32>) -> tensor<32x64xf32> attributes {ktn.kernel = "elementwise"} {
  %z = linalg.generic {indexing_maps = [affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<64xf32>) outs(%out : tensor<32x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<32x64xf32>
  return %z : tensor<32x64xf32>
}

func.func @reduced(%h: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1000 = arith.constant 1000 : index
  %v = tensor.empty() : tensor<64xf32>
  %e = tensor.empty() : tensor<32x64xf32>
  %r = scf.for %i = %c0 to %c1000 step %c1 iter_args(%s = %h) -> (tensor<32x64xf32>) {
    %t = func.call @total(%s, %v) {ktn.bytes = array<i64: 163840000, 0>, ktn.flops = array<i64: 2048000, 0>} : (tensor<32x64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %u = func.call @spread(%t, %e) {ktn.bytes = array<i64: 163840000, 0>, ktn.flops = array<i64: 2048000, 0>} : (tensor<64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
    scf.yield %u : tensor<32x64xf32>
  }
  return %r : tensor<32x64xf32>
}

// -----

// Which row of the state an element asks for is not known.
// CHECK-LABEL: func @gathered(
// CHECK:         scf.for
// CHECK:           func.call @pick(
// CHECK-NOT:     loop.
func.func private @pick(%x: tensor<32x64xf32>, %rows: tensor<32xi32>, %out: tensor<32x64xf32>) -> tensor<32x64xf32> attributes {ktn.kernel = "elementwise"} {
  %z = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
    ins(%rows : tensor<32xi32>) outs(%out : tensor<32x64xf32>) {
  ^bb0(%a: i32, %o: f32):
    %row = arith.index_cast %a : i32 to index
    %column = linalg.index 1 : index
    %v = tensor.extract %x[%row, %column] : tensor<32x64xf32>
    linalg.yield %v : f32
  } -> tensor<32x64xf32>
  return %z : tensor<32x64xf32>
}

func.func @gathered(%h: tensor<32x64xf32>, %rows: tensor<32xi32>) -> tensor<32x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1000 = arith.constant 1000 : index
  %e = tensor.empty() : tensor<32x64xf32>
  %r = scf.for %i = %c0 to %c1000 step %c1 iter_args(%s = %h) -> (tensor<32x64xf32>) {
    %t = func.call @pick(%s, %rows, %e) {ktn.bytes = array<i64: 163840000, 0>, ktn.flops = array<i64: 2048000, 0>} : (tensor<32x64xf32>, tensor<32xi32>, tensor<32x64xf32>) -> tensor<32x64xf32>
    scf.yield %t : tensor<32x64xf32>
  }
  return %r : tensor<32x64xf32>
}

// -----

// What a step reads of the stack others may not have written.
// CHECK-LABEL: func @looks_back(
// CHECK:         scf.for
// CHECK-NOT:     loop.
func.func private @again(%x: tensor<32x64xf32>, %out: tensor<32x64xf32>) -> tensor<32x64xf32> attributes {ktn.kernel = "elementwise"} {
  %z = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<32x64xf32>) outs(%out : tensor<32x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  return %z : tensor<32x64xf32>
}

func.func @looks_back(%h: tensor<32x64xf32>) -> (tensor<32x64xf32>, tensor<1001x32x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1000 = arith.constant 1000 : index
  %e = tensor.empty() : tensor<32x64xf32>
  %stack = tensor.empty() : tensor<1001x32x64xf32>
  %r:2 = scf.for %i = %c0 to %c1000 step %c1 iter_args(%s = %h, %all = %stack) -> (tensor<32x64xf32>, tensor<1001x32x64xf32>) {
    %old = tensor.extract_slice %all[%i, 0, 0] [1, 32, 64] [1, 1, 1] : tensor<1001x32x64xf32> to tensor<32x64xf32>
    %t = func.call @again(%old, %e) {ktn.bytes = array<i64: 163840000, 0>, ktn.flops = array<i64: 2048000, 0>} : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
    %j = arith.addi %i, %c1 : index
    %next = tensor.insert_slice %t into %all[%j, 0, 0] [1, 32, 64] [1, 1, 1] : tensor<32x64xf32> into tensor<1001x32x64xf32>
    scf.yield %t, %next : tensor<32x64xf32>, tensor<1001x32x64xf32>
  }
  return %r#0, %r#1 : tensor<32x64xf32>, tensor<1001x32x64xf32>
}

// -----

// Stacks that trade places are copied whole in each step.
// CHECK-LABEL: func @traded(
// CHECK:         scf.for
// CHECK-NOT:     loop.
func.func private @more(%x: tensor<32x64xf32>, %out: tensor<32x64xf32>) -> tensor<32x64xf32> attributes {ktn.kernel = "elementwise"} {
  %z = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<32x64xf32>) outs(%out : tensor<32x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  return %z : tensor<32x64xf32>
}

func.func @traded(%h: tensor<32x64xf32>) -> (tensor<32x32x64xf32>, tensor<32x32x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %e = tensor.empty() : tensor<32x64xf32>
  %stack = tensor.empty() : tensor<32x32x64xf32>
  %r:3 = scf.for %i = %c0 to %c32 step %c1 iter_args(%s = %h, %p = %stack, %q = %stack) -> (tensor<32x64xf32>, tensor<32x32x64xf32>, tensor<32x32x64xf32>) {
    %t = func.call @more(%s, %e) {ktn.bytes = array<i64: 163840000, 0>, ktn.flops = array<i64: 2048000, 0>} : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
    %one = tensor.insert_slice %t into %p[%i, 0, 0] [1, 32, 64] [1, 1, 1] : tensor<32x64xf32> into tensor<32x32x64xf32>
    %two = tensor.insert_slice %t into %q[%i, 0, 0] [1, 32, 64] [1, 1, 1] : tensor<32x64xf32> into tensor<32x32x64xf32>
    scf.yield %t, %two, %one : tensor<32x64xf32>, tensor<32x32x64xf32>, tensor<32x32x64xf32>
  }
  return %r#1, %r#2 : tensor<32x32x64xf32>, tensor<32x32x64xf32>
}
