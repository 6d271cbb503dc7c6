// RUN: keratin-opt %s --ktn-form-kernels --split-input-file | FileCheck %s
// RUN: keratin-opt %s --split-input-file --pass-pipeline="builtin.module(ktn-form-kernels,canonicalize,ktn-emit-tiles,ktn-plan-memory)" | FileCheck %s --check-prefix=PLAN

#pointwise = affine_map<(n, h, c) -> (n, h, c)>

// Both halves are written where they end up, and %a is read there as well.
// CHECK-LABEL: func.func @halves(
// CHECK:         %[[WHOLE:.+]] = tensor.empty() {ktn.buffer = 0 : i64} : tensor<4x6x16xf32>
// CHECK:         %[[LEFT:.+]] = tensor.extract_slice %[[WHOLE]][0, 0, 0] [4, 6, 8]
// CHECK:         %[[A:.+]] = call @[[EXP:.+]](%{{.+}}, %[[LEFT]])
// CHECK:         %[[HALF:.+]] = tensor.insert_slice %[[A]] into %[[WHOLE]][0, 0, 0] [4, 6, 8]
// CHECK:         %[[RIGHT:.+]] = tensor.extract_slice %[[HALF]][0, 0, 8] [4, 6, 8]
// CHECK:         %[[B:.+]] = call @{{.+}}(%[[A]], %{{.+}}, %[[RIGHT]])
// CHECK:         %[[BOTH:.+]] = tensor.insert_slice %[[B]] into %[[HALF]][0, 0, 8] [4, 6, 8]
// CHECK-NOT:     tensor.concat
// CHECK:         return %[[BOTH]], %{{.+}} : tensor<4x6x16xf32>
// CHECK:       func.func private @[[EXP]]({{.+}}: tensor<4x6x8xf32>, {{.+}}: tensor<4x6x8xf32> {ktn.slot, ktn.strides = array<i64: 96, 16, 1>})
// The second half begins 8 elements further on in the output.
// PLAN-LABEL:  func.func @halves(
// PLAN:          %[[NEAR:.+]] = memref.view %arg4[%{{.+}}][] : memref<?xi8> to memref<1xf32>
// PLAN:          memref.reinterpret_cast %[[NEAR]] to offset: [0], sizes: [4, 6, 8], strides: [96, 16, 1]
// PLAN:          call @
// PLAN:          %[[EIGHT:.+]] = arith.constant 8 : index
// PLAN:          arith.muli %[[EIGHT]], %{{.+}} : index
func.func @halves(%x: tensor<4x6x8xf32>) -> (tensor<4x6x16xf32>, tensor<f32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x6x8xf32>
  %a = linalg.generic {indexing_maps = [#pointwise, #pointwise], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<4x6x8xf32>) outs(%empty : tensor<4x6x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = math.exp %in : f32
    linalg.yield %1 : f32
  } -> tensor<4x6x8xf32>
  %none = tensor.empty() : tensor<f32>
  %start = linalg.fill ins(%zero : f32) outs(%none : tensor<f32>) -> tensor<f32>
  %sum = linalg.generic {indexing_maps = [#pointwise, affine_map<(n, h, c) -> ()>], iterator_types = ["reduction", "reduction", "reduction"]}
      ins(%a : tensor<4x6x8xf32>) outs(%start : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = arith.addf %in, %out : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %b = linalg.generic {indexing_maps = [#pointwise, affine_map<(n, h, c) -> ()>, #pointwise], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a, %sum : tensor<4x6x8xf32>, tensor<f32>) outs(%empty : tensor<4x6x8xf32>) {
  ^bb0(%in: f32, %total: f32, %out: f32):
    %1 = arith.mulf %in, %total : f32
    linalg.yield %1 : f32
  } -> tensor<4x6x8xf32>
  %whole = tensor.concat dim(2) %a, %b : (tensor<4x6x8xf32>, tensor<4x6x8xf32>) -> tensor<4x6x16xf32>
  return %whole, %sum : tensor<4x6x16xf32>, tensor<f32>
}

// -----

#pointwise = affine_map<(n, h, c) -> (n, h, c)>

// What is given cannot be made elsewhere: it is copied. The border of what is
// joined is filled on its own, also for a batch that is not known.
// CHECK-LABEL: func.func @framed(
// CHECK-SAME:      %[[X:.+]]: tensor<?x6x8xf32>)
// CHECK:         %[[WHOLE:.+]] = tensor.empty(%{{.+}}) {ktn.buffer = 0 : i64} : tensor<?x9x16xf32>
// CHECK:         tensor.extract_slice %[[WHOLE]][0, 1, 0]
// CHECK:         call @[[EXP:.+]](%[[X]],
// CHECK:         tensor.extract_slice %{{.+}}[0, 1, 8]
// CHECK:         call @[[COPY:.+]](%[[X]],
// CHECK:         %[[LOW:.+]] = tensor.extract_slice %{{.+}}[0, 0, 0] [%{{.+}}, 1, 16]
// CHECK:         call @[[ONE:.+]](%[[LOW]])
// CHECK:         %[[HIGH:.+]] = tensor.extract_slice %{{.+}}[0, 7, 0] [%{{.+}}, 2, 16]
// CHECK:         call @[[TWO:.+]](%[[HIGH]])
// CHECK-NOT:     call
// CHECK:         return
// CHECK-DAG:   func.func private @[[EXP]]({{.+}}ktn.strides = array<i64: 144, 16, 1>{{.+}}ktn.kernel = "elementwise"
// CHECK-DAG:   func.func private @[[COPY]]({{.+}}ktn.strides = array<i64: 144, 16, 1>{{.+}}ktn.kernel = "elementwise"
// CHECK-DAG:   func.func private @[[ONE]]({{.+}}ktn.kernel = "fill"
// PLAN-LABEL:  func.func @framed(
func.func @framed(%x: tensor<?x6x8xf32>) -> tensor<?x9x16xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x6x8xf32>
  %empty = tensor.empty(%n) : tensor<?x6x8xf32>
  %a = linalg.generic {indexing_maps = [#pointwise, #pointwise], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<?x6x8xf32>) outs(%empty : tensor<?x6x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = math.exp %in : f32
    linalg.yield %1 : f32
  } -> tensor<?x6x8xf32>
  %whole = tensor.concat dim(2) %a, %x : (tensor<?x6x8xf32>, tensor<?x6x8xf32>) -> tensor<?x6x16xf32>
  %framed = tensor.pad %whole low[0, 1, 0] high[0, 2, 0] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %zero : f32
  } : tensor<?x6x16xf32> to tensor<?x9x16xf32>
  return %framed : tensor<?x9x16xf32>
}

// -----

#pointwise = affine_map<(n, h, c) -> (n, h, c)>

// A value that is returned is a buffer of its own, and columns of one element
// are not slices: both stay pieces of a copy.
// CHECK-LABEL: func.func @apart(
// CHECK-NOT:     ktn.buffer
// CHECK-NOT:     ktn.strides
func.func @apart(%x: tensor<4x6x8xf32>, %y: tensor<4x6x1xf32>) -> (tensor<4x6x8xf32>, tensor<4x6x16xf32>, tensor<4x6x2xf32>) {
  %empty = tensor.empty() : tensor<4x6x8xf32>
  %a = linalg.generic {indexing_maps = [#pointwise, #pointwise], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<4x6x8xf32>) outs(%empty : tensor<4x6x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = math.exp %in : f32
    linalg.yield %1 : f32
  } -> tensor<4x6x8xf32>
  %whole = tensor.concat dim(2) %a, %x : (tensor<4x6x8xf32>, tensor<4x6x8xf32>) -> tensor<4x6x16xf32>
  %narrow = tensor.empty() : tensor<4x6x1xf32>
  %b = linalg.generic {indexing_maps = [#pointwise, #pointwise], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y : tensor<4x6x1xf32>) outs(%narrow : tensor<4x6x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = math.exp %in : f32
    linalg.yield %1 : f32
  } -> tensor<4x6x1xf32>
  %two = tensor.concat dim(2) %b, %y : (tensor<4x6x1xf32>, tensor<4x6x1xf32>) -> tensor<4x6x2xf32>
  return %a, %whole, %two : tensor<4x6x8xf32>, tensor<4x6x16xf32>, tensor<4x6x2xf32>
}

// -----

#pointwise = affine_map<(n, c) -> (n, c)>
#row = affine_map<(n, c) -> (n)>

// One kernel makes both halves: it has both slots before it writes to either.
// CHECK-LABEL: func.func @together(
// CHECK:         %[[WHOLE:.+]] = tensor.empty() {ktn.buffer = 0 : i64} : tensor<4x16xf32>
// CHECK:         %[[LEFT:.+]] = tensor.extract_slice %[[WHOLE]][0, 0] [4, 8]
// CHECK:         %[[RIGHT:.+]] = tensor.extract_slice %[[WHOLE]][0, 8] [4, 8]
// CHECK:         %[[PARTS:.+]]:2 = call @{{.+}}(%{{.+}}, %[[LEFT]], %[[RIGHT]])
// CHECK:         %[[HALF:.+]] = tensor.insert_slice %[[PARTS]]#0 into %[[WHOLE]][0, 0] [4, 8]
// CHECK:         %[[BOTH:.+]] = tensor.insert_slice %[[PARTS]]#1 into %[[HALF]][0, 8] [4, 8]
// CHECK:         return %[[BOTH]]
// PLAN-LABEL:  func.func @together(
func.func @together(%x: tensor<4x8xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %none = tensor.empty() : tensor<4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%none : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#pointwise, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf32>) outs(%start : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = arith.addf %in, %out : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  %empty = tensor.empty() : tensor<4x8xf32>
  %a = linalg.generic {indexing_maps = [#pointwise, #row, #pointwise], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<4x8xf32>, tensor<4xf32>) outs(%empty : tensor<4x8xf32>) {
  ^bb0(%in: f32, %all: f32, %out: f32):
    %1 = arith.divf %in, %all : f32
    linalg.yield %1 : f32
  } -> tensor<4x8xf32>
  %b = linalg.generic {indexing_maps = [#pointwise, #row, #pointwise], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<4x8xf32>, tensor<4xf32>) outs(%empty : tensor<4x8xf32>) {
  ^bb0(%in: f32, %all: f32, %out: f32):
    %1 = arith.subf %all, %in : f32
    linalg.yield %1 : f32
  } -> tensor<4x8xf32>
  %whole = tensor.concat dim(1) %a, %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
  return %whole : tensor<4x16xf32>
}

// -----

#pointwise = affine_map<(n, h, c) -> (n, h, c)>

// What was joined, and is a result too, is copied into what it is a part of:
// from where it has been made.
// CHECK-LABEL: func.func @nested(
// CHECK:         %[[INNER:.+]] = tensor.insert_slice %{{.+}} into %{{.+}}[0, 0, 8] [4, 6, 8]
// CHECK:         %[[OUTER:.+]] = tensor.empty() {ktn.buffer = 0 : i64} : tensor<4x6x24xf32>
// CHECK:         %[[RIGHT:.+]] = tensor.insert_slice %{{.+}} into %[[OUTER]][0, 0, 16] [4, 6, 8]
// CHECK:         %[[SLOT:.+]] = tensor.extract_slice %[[RIGHT]][0, 0, 0] [4, 6, 16]
// CHECK:         %[[LEFT:.+]] = call @{{.+}}(%[[INNER]], %[[SLOT]])
// CHECK:         %[[BOTH:.+]] = tensor.insert_slice %[[LEFT]] into %[[RIGHT]][0, 0, 0] [4, 6, 16]
// CHECK:         return %[[INNER]], %[[BOTH]]
// PLAN-LABEL:  func.func @nested(
func.func @nested(%x: tensor<4x6x8xf32>) -> (tensor<4x6x16xf32>, tensor<4x6x24xf32>) {
  %empty = tensor.empty() : tensor<4x6x8xf32>
  %a = linalg.generic {indexing_maps = [#pointwise, #pointwise], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<4x6x8xf32>) outs(%empty : tensor<4x6x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = math.exp %in : f32
    linalg.yield %1 : f32
  } -> tensor<4x6x8xf32>
  %inner = tensor.concat dim(2) %a, %x : (tensor<4x6x8xf32>, tensor<4x6x8xf32>) -> tensor<4x6x16xf32>
  %b = linalg.generic {indexing_maps = [#pointwise, #pointwise], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<4x6x8xf32>) outs(%empty : tensor<4x6x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = math.tanh %in : f32
    linalg.yield %1 : f32
  } -> tensor<4x6x8xf32>
  %outer = tensor.concat dim(2) %inner, %b : (tensor<4x6x16xf32>, tensor<4x6x8xf32>) -> tensor<4x6x24xf32>
  return %inner, %outer : tensor<4x6x16xf32>, tensor<4x6x24xf32>
}

// -----

#pointwise = affine_map<(n, h, c) -> (n, h, c)>

// What is joined twice is made in one of the two, where it has strides, and
// copied from there to the other.
// CHECK-LABEL: func.func @twice(
// CHECK:         %[[INNER:.+]] = tensor.extract_slice %{{.+}} [4, 6, 16] [1, 1, 1] : tensor<4x6x24xf32>
// CHECK:         call @[[COPY:.+]](%[[INNER]], %{{.+}}) {{.*}} : (tensor<4x6x16xf32>, tensor<4x6x16xf32>)
// CHECK:         func.func private @[[COPY]](%arg0: tensor<4x6x16xf32> {ktn.strides = array<i64: 144, 24, 1>}, %arg1: tensor<4x6x16xf32> {ktn.slot, ktn.strides = array<i64: 144, 24, 1>})
// PLAN-LABEL:  func.func @twice(
func.func @twice(%x: tensor<4x6x8xf32>) -> (tensor<4x6x24xf32>, tensor<4x6x24xf32>) {
  %empty = tensor.empty() : tensor<4x6x8xf32>
  %a = linalg.generic {indexing_maps = [#pointwise, #pointwise], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<4x6x8xf32>) outs(%empty : tensor<4x6x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = math.exp %in : f32
    linalg.yield %1 : f32
  } -> tensor<4x6x8xf32>
  %inner = tensor.concat dim(2) %a, %x : (tensor<4x6x8xf32>, tensor<4x6x8xf32>) -> tensor<4x6x16xf32>
  %b = linalg.generic {indexing_maps = [#pointwise, #pointwise], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<4x6x8xf32>) outs(%empty : tensor<4x6x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = math.tanh %in : f32
    linalg.yield %1 : f32
  } -> tensor<4x6x8xf32>
  %left = tensor.concat dim(2) %inner, %b : (tensor<4x6x16xf32>, tensor<4x6x8xf32>) -> tensor<4x6x24xf32>
  %c = linalg.generic {indexing_maps = [#pointwise, #pointwise], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<4x6x8xf32>) outs(%empty : tensor<4x6x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = math.sqrt %in : f32
    linalg.yield %1 : f32
  } -> tensor<4x6x8xf32>
  %right = tensor.concat dim(2) %c, %inner : (tensor<4x6x8xf32>, tensor<4x6x16xf32>) -> tensor<4x6x24xf32>
  return %left, %right : tensor<4x6x24xf32>, tensor<4x6x24xf32>
}
