// RUN: keratin-opt %s --ktn-emit-plain-loops --ktn-plan-memory --cse --canonicalize --split-input-file | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>

func.func private @k(%x: tensor<?x16xf32>, %out: tensor<?x16xf32>) -> tensor<?x16xf32> attributes {ktn.kernel = "elementwise"} {
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<?x16xf32>) outs(%out : tensor<?x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// Of three buffers in a row the first and the third never live together with
// more than their neighbour: two places of 64 bytes an element of the batch. The
// last result is written where the caller wants it.
// CHECK-LABEL: func @chain(
// CHECK-SAME:    %{{.+}}: memref<?xi8>, %[[ARENA:.+]]: memref<?xi8>, %[[BATCH:.+]]: index, %[[IN:.+]]: memref<?xi8>, %[[OUT:.+]]: memref<?xi8>)
// CHECK-SAME:    ktn.arena_bytes = array<i64: 0, 128>
// CHECK-DAG:     %[[C0:.+]] = arith.constant 0 : index
// CHECK-DAG:     %[[C64:.+]] = arith.constant 64 : index
// CHECK-DAG:     %[[X:.+]] = memref.view %[[IN]][%[[C0]]][%[[BATCH]]] : memref<?xi8> to memref<?x16xf32>
// CHECK-DAG:     %[[A:.+]] = memref.view %[[ARENA]][%[[C0]]][%[[BATCH]]]
// CHECK:         call @k(%[[X]], %[[A]])
// CHECK:         %[[HIGH:.+]] = arith.muli %[[BATCH]], %[[C64]]
// CHECK:         %[[B:.+]] = memref.view %[[ARENA]][%[[HIGH]]][%[[BATCH]]]
// CHECK:         call @k(%[[A]], %[[B]])
// CHECK:         call @k(%[[B]], %[[A]])
// CHECK:         %[[Y:.+]] = memref.view %[[OUT]][%[[C0]]][%[[BATCH]]]
// CHECK:         call @k(%[[A]], %[[Y]])
func.func @chain(%x: tensor<?x16xf32> {ktn.name = "x"}) -> (tensor<?x16xf32> {ktn.name = "y"}) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x16xf32>
  %e = tensor.empty(%n) : tensor<?x16xf32>
  %a = call @k(%x, %e) {ktn.flops = array<i64: 0, 16>, ktn.bytes = array<i64: 0, 128>} : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  %b = call @k(%a, %e) {ktn.flops = array<i64: 0, 16>, ktn.bytes = array<i64: 0, 128>} : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  %c = call @k(%b, %e) {ktn.flops = array<i64: 0, 16>, ktn.bytes = array<i64: 0, 128>} : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  %d = call @k(%c, %e) {ktn.flops = array<i64: 0, 16>, ktn.bytes = array<i64: 0, 128>} : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  return %d : tensor<?x16xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>

func.func private @step(%x: tensor<2x4xf32>, %h: tensor<2x4xf32>, %out: tensor<2x4xf32>) -> tensor<2x4xf32> attributes {ktn.kernel = "elementwise"} {
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x, %h : tensor<2x4xf32>, tensor<2x4xf32>) outs(%out : tensor<2x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// A slice along the outermost axis is a view at an offset that the loop gives.
// The state lives in one buffer that the step's value is copied to: the kernel
// reads it until its end. The stacked states are written to the output.
// CHECK-LABEL: func @scan(
// CHECK-SAME:    %[[W:.+]]: memref<?xi8>, %[[ARENA:.+]]: memref<?xi8>, %{{.+}}: index, %[[XS:.+]]: memref<?xi8>, %[[YS:[^)]+]]: memref<?xi8>)
// CHECK-SAME:    ktn.kernels = [{
// CHECK-SAME:    flops = array<i64: 40, 0>
// CHECK-DAG:     %[[C32:.+]] = arith.constant 32 : index
// CHECK:         memref.copy
// CHECK:         scf.for %[[T:.+]] =
// CHECK:           %[[AT:.+]] = arith.muli %[[T]], %[[C32]]
// CHECK:           %[[X:.+]] = memref.view %[[XS]][%[[AT]]][] : memref<?xi8> to memref<2x4xf32>
// CHECK:           call @step(%[[X]], %[[H:.+]], %[[NEXT:.+]])
// CHECK:           %[[Y:.+]] = memref.view %[[YS]][%[[AT]]]
// CHECK:           memref.copy %{{.+}}, %[[Y]]
// CHECK:           memref.copy
func.func @scan(%xs: tensor<5x2x4xf32> {ktn.name = "xs"}) -> (tensor<5x2x4xf32> {ktn.name = "ys"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %zero = arith.constant dense<0.0> : tensor<2x4xf32>
  %e = tensor.empty() : tensor<2x4xf32>
  %ys0 = tensor.empty() : tensor<5x2x4xf32>
  %r:2 = scf.for %t = %c0 to %c5 step %c1 iter_args(%h = %zero, %ys = %ys0) -> (tensor<2x4xf32>, tensor<5x2x4xf32>) {
    %x = tensor.extract_slice %xs[%t, 0, 0] [1, 2, 4] [1, 1, 1] : tensor<5x2x4xf32> to tensor<2x4xf32>
    %n = func.call @step(%x, %h, %e) {ktn.flops = array<i64: 40, 0>, ktn.bytes = array<i64: 480, 0>} : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %next = tensor.insert_slice %n into %ys[%t, 0, 0] [1, 2, 4] [1, 1, 1] : tensor<2x4xf32> into tensor<5x2x4xf32>
    scf.yield %n, %next : tensor<2x4xf32>, tensor<5x2x4xf32>
  }
  return %r#1 : tensor<5x2x4xf32>
}

// -----

// An input that is returned is copied; two results may be the same tensor.
// CHECK-LABEL: func @identity(
// CHECK-SAME:    ktn.arena_bytes = array<i64: 0, 0>
// CHECK-COUNT-2: memref.copy
// CHECK-NEXT:    return
func.func @identity(%x: tensor<?x3xi1> {ktn.name = "x"}) -> (tensor<?x3xi1> {ktn.name = "a"}, tensor<?x3xi1> {ktn.name = "b"}) {
  return %x, %x : tensor<?x3xi1>, tensor<?x3xi1>
}

// -----

func.func private @k(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32> attributes {ktn.kernel = "elementwise"} {
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
    ins(%x : tensor<4xf32>) outs(%out : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// A row that an element of a tensor says: the element is loaded.
// CHECK-LABEL: func @row_by_value(
// CHECK:         scf.for %[[T:.+]] =
// CHECK:           %[[I:.+]] = memref.load %{{.+}}[%{{.+}}] : memref<3xi32>
// CHECK:           %[[ROW:.+]] = arith.index_cast %[[I]] : i32 to index
// CHECK:           %[[OFFSET:.+]] = arith.muli %[[ROW]], %c16
// CHECK:           memref.view %{{.+}}[%[[OFFSET]]][] : memref<?xi8> to memref<4xf32>
func.func @row_by_value(%x: tensor<10x4xf32>, %i: tensor<3xi32>) -> tensor<3x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %stack = tensor.empty() : tensor<3x4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %r = scf.for %t = %c0 to %c3 step %c1 iter_args(%s = %stack) -> (tensor<3x4xf32>) {
    %v = tensor.extract %i[%t] : tensor<3xi32>
    %row = arith.index_cast %v : i32 to index
    %slice = tensor.extract_slice %x[%row, 0] [1, 4] [1, 1] : tensor<10x4xf32> to tensor<4xf32>
    %y = func.call @k(%slice, %e) {ktn.flops = array<i64: 4, 0>, ktn.bytes = array<i64: 32, 0>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %n = tensor.insert_slice %y into %s[%t, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<3x4xf32>
    scf.yield %n : tensor<3x4xf32>
  }
  return %r : tensor<3x4xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>

func.func private @k(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32> attributes {ktn.kernel = "elementwise"} {
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
    ins(%x : tensor<4xf32>) outs(%out : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// A call that does not say what it costs is planned all the same.
// CHECK-LABEL: func @unknown_cost(
// CHECK-SAME:    flops = array<i64: 0, 0>
func.func @unknown_cost(%x: tensor<4xf32> {ktn.name = "x"}) -> (tensor<4xf32> {ktn.name = "y"}) {
  %e = tensor.empty() : tensor<4xf32>
  %y = call @k(%x, %e) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// Nothing is copied from a tensor without elements.
// CHECK-LABEL: func @unset(
// CHECK-NOT:     memref.copy
// CHECK:         return
func.func @unset() -> (tensor<4xf32> {ktn.name = "y"}) {
  %e = tensor.empty() : tensor<4xf32>
  return %e : tensor<4xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>

func.func private @k(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32> attributes {ktn.kernel = "elementwise"} {
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
    ins(%x : tensor<4xf32>) outs(%out : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// A constant and an input stay as they are: what a row is put into is a copy of
// the whole, and the row comes after that.
// CHECK-LABEL: func @insert_once(
// CHECK-SAME:    %[[A:[^ ]+]]: memref<?xi8>, %[[B:[^ ]+]]: memref<?xi8>)
// CHECK:         call @k
// CHECK:         %[[TO:.+]] = memref.view %[[A]][%c0][]
// CHECK:         memref.copy %{{.+}}, %[[TO]] : memref<32xi8>
// CHECK:         %[[ROW:.+]] = memref.view %[[A]][%{{.+}}][]
// CHECK-NEXT:    memref.copy %{{.+}}, %[[ROW]] : memref<16xi8>
// CHECK:         call @k
// CHECK:         %[[TO:.+]] = memref.view %[[B]][%c0][]
// CHECK:         memref.copy %{{.+}}, %[[TO]] : memref<32xi8>
// CHECK-NEXT:    %[[ROW:.+]] = memref.view %[[B]][%{{.+}}][]
// CHECK-NEXT:    memref.copy %{{.+}}, %[[ROW]] : memref<16xi8>
// CHECK-NEXT:    return
func.func @insert_once(%x: tensor<4xf32>, %whole: tensor<2x4xf32>, %i: tensor<1xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %c0 = arith.constant 0 : index
  %zeros = arith.constant dense<0.0> : tensor<2x4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %v = tensor.extract %i[%c0] : tensor<1xi32>
  %row = arith.index_cast %v : i32 to index
  %y = func.call @k(%x, %e) {ktn.flops = array<i64: 4, 0>, ktn.bytes = array<i64: 32, 0>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %a = tensor.insert_slice %y into %zeros[%row, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<2x4xf32>
  %z = func.call @k(%x, %e) {ktn.flops = array<i64: 4, 0>, ktn.bytes = array<i64: 32, 0>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = tensor.insert_slice %z into %whole[%row, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<2x4xf32>
  return %a, %b : tensor<2x4xf32>, tensor<2x4xf32>
}
