// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 parallel" --split-input-file | FileCheck %s --check-prefix=PARTS
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" --ktn-plan-memory --split-input-file | FileCheck %s --check-prefix=PLAN

// One row times weights of which the second cache holds a part: calls go from
// the first block to the last and back in turns. Four packed blocks are read
// side by side, and all are full.
// CHECK-LABEL: func private @row(
// CHECK-SAME:    memref<32x512x16xf32>
// CHECK-SAME:    %[[KEPT:[a-z0-9]+]]: memref<1xi8> {ktn.kept})
// CHECK:         %[[LAST:.+]] = memref.load %[[KEPT]][%c0]
// CHECK:         %[[THIS:.+]] = arith.xori %[[LAST]], %c1_i8
// CHECK:         memref.store %[[THIS]], %[[KEPT]][%c0]
// CHECK:         %[[BACK:.+]] = arith.trunci %[[THIS]] : i8 to i1
// CHECK:         scf.for %[[NUMBER:.+]] = %c0 to %c8
// CHECK:           %[[OTHER:.+]] = arith.subi %{{.+}}, %[[NUMBER]]
// CHECK:           %[[AT:.+]] = arith.select %[[BACK]], %[[OTHER]], %[[NUMBER]] : index
// CHECK:           %[[FIRST:.+]] = arith.muli %[[AT]], %c4
// CHECK:           scf.for
// CHECK:             vector.load %{{.+}}[%[[FIRST]], %{{.+}}] : memref<32x512x16xf32>

// A call of some of the parts leaves the byte alone: others are under way.
// PARTS-LABEL: func private @row(
// PARTS-SAME:    %[[KEPT:[a-z0-9]+]]: memref<1xi8> {ktn.kept}, %[[BEGIN:[a-z0-9]+]]: index, %[[END:[a-z0-9]+]]: index, %[[COUNT:[a-z0-9]+]]: index)
// PARTS:         %[[HERE:.+]] = arith.subi %[[END]], %[[BEGIN]]
// PARTS:         %[[ALL:.+]] = arith.cmpi eq, %[[HERE]], %[[COUNT]]
// PARTS:         %[[BACK:.+]] = scf.if %[[ALL]] -> (i1) {
// PARTS:           memref.load %[[KEPT]]
// PARTS:         } else {
// PARTS:           scf.yield %false
// PARTS:         arith.select %[[BACK]]

// The bytes are in nobody else's memory, whenever that is used.
// PLAN-LABEL:  func @chain(
// PLAN-SAME:     ktn.arena_bytes = array<i64: 4288, 0>
// PLAN-DAG:      %[[FIRST:.+]] = arith.constant 4096 : index
// PLAN-DAG:      memref.view %{{.+}}[%[[FIRST]]][] : memref<?xi8> to memref<1xi8>
// PLAN:          call @row(
// PLAN:          %[[SECOND:.+]] = arith.constant 4160 : index
// PLAN:          memref.view %{{.+}}[%[[SECOND]]][] : memref<?xi8> to memref<1xi8>
// PLAN:          call @row(
// PLAN:          %[[THIRD:.+]] = arith.constant 4224 : index
// PLAN:          memref.view %{{.+}}[%[[THIRD]]][] : memref<?xi8> to memref<1xi8>
// PLAN:          call @row(
func.func private @row(%x: tensor<1x512xf32>, %w: tensor<512x512xf32> {ktn.constant}, %out: tensor<1x512xf32>) -> tensor<1x512xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x512xf32>) -> tensor<1x512xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x512xf32>, tensor<512x512xf32>) outs(%start : tensor<1x512xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x512xf32>
  return %sum : tensor<1x512xf32>
}
func.func @chain(%x: tensor<1x512xf32>) -> tensor<1x512xf32> {
  %u = arith.constant dense<1.0> : tensor<512x512xf32>
  %v = arith.constant dense<2.0> : tensor<512x512xf32>
  %w = arith.constant dense<3.0> : tensor<512x512xf32>
  %e = tensor.empty() : tensor<1x512xf32>
  %a = call @row(%x, %u, %e) {ktn.flops = array<i64: 524288, 0>, ktn.bytes = array<i64: 1052672, 0>} : (tensor<1x512xf32>, tensor<512x512xf32>, tensor<1x512xf32>) -> tensor<1x512xf32>
  %b = call @row(%a, %v, %e) {ktn.flops = array<i64: 524288, 0>, ktn.bytes = array<i64: 1052672, 0>} : (tensor<1x512xf32>, tensor<512x512xf32>, tensor<1x512xf32>) -> tensor<1x512xf32>
  %c = call @row(%b, %w, %e) {ktn.flops = array<i64: 524288, 0>, ktn.bytes = array<i64: 1052672, 0>} : (tensor<1x512xf32>, tensor<512x512xf32>, tensor<1x512xf32>) -> tensor<1x512xf32>
  return %c : tensor<1x512xf32>
}

// -----

// What the cache holds is there in any order, and of what it cannot hold by far
// too little is. Several rows read a block again while it is there.
// CHECK-LABEL: func private @small(
// CHECK-NOT:     ktn.kept
// CHECK:         return
func.func private @small(%x: tensor<1x256xf32>, %w: tensor<256x128xf32> {ktn.constant}, %out: tensor<1x128xf32>) -> tensor<1x128xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x128xf32>) -> tensor<1x128xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x256xf32>, tensor<256x128xf32>) outs(%start : tensor<1x128xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x128xf32>
  return %sum : tensor<1x128xf32>
}

// CHECK-LABEL: func private @large(
// CHECK-NOT:     ktn.kept
// CHECK:         return
func.func private @large(%x: tensor<1x4096xf32>, %w: tensor<4096x2048xf32> {ktn.constant}, %out: tensor<1x2048xf32>) -> tensor<1x2048xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x2048xf32>) -> tensor<1x2048xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x4096xf32>, tensor<4096x2048xf32>) outs(%start : tensor<1x2048xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x2048xf32>
  return %sum : tensor<1x2048xf32>
}

// CHECK-LABEL: func private @rows(
// CHECK-NOT:     ktn.kept
// CHECK:         return
func.func private @rows(%x: tensor<8x784xf32>, %w: tensor<784x512xf32> {ktn.constant}, %out: tensor<8x512xf32>) -> tensor<8x512xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<8x512xf32>) -> tensor<8x512xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x784xf32>, tensor<784x512xf32>) outs(%start : tensor<8x512xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<8x512xf32>
  return %sum : tensor<8x512xf32>
}
