// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=256 vector-registers=16 parallel" | FileCheck %s

// A call with work for several threads asks for all of as many parts as its work
// is worth, and the kernel does those between its last arguments: shares of the
// outermost loop with turns for many threads, whose tiles stay what they are.
// CHECK-LABEL: func.func @large(
// CHECK-DAG:     %[[NONE:.+]] = arith.constant 0 : index
// CHECK-DAG:     %[[COUNT:.+]] = arith.constant 9 : index
// CHECK:         call @kernel.large(%{{.+}}, %{{.+}}, %[[NONE]], %[[COUNT]], %[[COUNT]])
func.func @large(%x: tensor<1000x1000xf32>) -> tensor<1000x1000xf32> {
  %out = tensor.empty() : tensor<1000x1000xf32>
  %0 = call @kernel.large(%x, %out) {ktn.flops = array<i64: 2000000, 0>, ktn.bytes = array<i64: 2000000, 0>} : (tensor<1000x1000xf32>, tensor<1000x1000xf32>) -> tensor<1000x1000xf32>
  return %0 : tensor<1000x1000xf32>
}
// CHECK-LABEL: func.func private @kernel.large(
// CHECK-SAME:    %[[BEGIN:[a-z0-9]+]]: index, %[[END:[a-z0-9]+]]: index, %[[COUNT:[a-z0-9]+]]: index)
// CHECK-SAME:    ktn.parts = 256
// CHECK-DAG:     %[[ROWS:.+]] = arith.constant 1000 : index
// CHECK:         %[[FIRST:.+]] = arith.muli %[[ROWS]], %[[BEGIN]]
// CHECK:         %[[START:.+]] = arith.divui %[[FIRST]], %[[COUNT]]
// CHECK:         %[[FROM:.+]] = arith.muli %[[START]],
// CHECK:         %[[LAST:.+]] = arith.muli %[[ROWS]], %[[END]]
// CHECK:         %[[STOP:.+]] = arith.divui %[[LAST]], %[[COUNT]]
// CHECK:         %[[BOUND:.+]] = arith.muli %[[STOP]],
// CHECK:         %[[TO:.+]] = arith.minui %[[BOUND]], %[[ROWS]]
// CHECK:         scf.for %{{.+}} = %[[FROM]] to %[[TO]]
func.func private @kernel.large(%x: tensor<1000x1000xf32>, %out: tensor<1000x1000xf32>) -> tensor<1000x1000xf32> attributes {ktn.kernel = "elementwise"} {
  %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<1000x1000xf32>) outs(%out : tensor<1000x1000xf32>) {
  ^bb0(%in: f32, %init: f32):
    %1 = arith.addf %in, %in : f32
    linalg.yield %1 : f32
  } -> tensor<1000x1000xf32>
  return %0 : tensor<1000x1000xf32>
}

// A small one stays as it is.
// CHECK-LABEL: func.func @small(
// CHECK:         call @kernel.small(%{{[^,]+}}, %{{[^,]+}}) {
// CHECK-LABEL: func.func private @kernel.small(
// CHECK-NOT:     ktn.parts
// CHECK:         return
func.func @small(%x: tensor<1000x1000xf32>) -> tensor<1000x1000xf32> {
  %out = tensor.empty() : tensor<1000x1000xf32>
  %0 = call @kernel.small(%x, %out) {ktn.flops = array<i64: 200000, 0>, ktn.bytes = array<i64: 200000, 0>} : (tensor<1000x1000xf32>, tensor<1000x1000xf32>) -> tensor<1000x1000xf32>
  return %0 : tensor<1000x1000xf32>
}
func.func private @kernel.small(%x: tensor<1000x1000xf32>, %out: tensor<1000x1000xf32>) -> tensor<1000x1000xf32> attributes {ktn.kernel = "elementwise"} {
  %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<1000x1000xf32>) outs(%out : tensor<1000x1000xf32>) {
  ^bb0(%in: f32, %init: f32):
    %1 = arith.subf %in, %in : f32
    linalg.yield %1 : f32
  } -> tensor<1000x1000xf32>
  return %0 : tensor<1000x1000xf32>
}

// Of a batch that is known when the code runs, so is the number of parts.
// CHECK-LABEL: func.func @batches(
// CHECK-SAME:    %[[X:.+]]: tensor<?x8xf32>
// CHECK:         tensor.empty
// CHECK:         %[[BATCH:.+]] = tensor.dim %[[X]]
// CHECK:         %[[WORK:.+]] = arith.muli %[[BATCH]],
// CHECK:         arith.divui
// CHECK:         arith.minui
// CHECK:         %[[PARTS:.+]] = arith.maxui
// CHECK:         call @kernel.batches({{.+}}, %[[PARTS]], %[[PARTS]])
func.func @batches(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %out = tensor.empty(%n) : tensor<?x8xf32>
  %0 = call @kernel.batches(%x, %out) {ktn.flops = array<i64: 0, 8>, ktn.bytes = array<i64: 0, 64>} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
func.func private @kernel.batches(%x: tensor<?x8xf32>, %out: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {ktn.kernel = "elementwise"} {
  %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x8xf32>) outs(%out : tensor<?x8xf32>) {
  ^bb0(%in: f32, %init: f32):
    %1 = arith.addf %in, %in : f32
    linalg.yield %1 : f32
  } -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
