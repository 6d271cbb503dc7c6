// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=256 vector-registers=16 parallel" | FileCheck %s

// A batch may have one sample. Threads share what is known to be enough of it:
// the pairs of one of seven images and one of its four tiles of rows.
// Little work counts as well where there is more of it, for threads are awake.
// CHECK-LABEL: func.func @known(
// CHECK:         %[[FAR:.+]] = arith.divui %[[WORK:.+]], %c1048576
// CHECK:         %[[NEAR:.+]] = arith.divui %[[WORK]], %c131072
// CHECK:         %[[FEW:.+]] = arith.minui %[[NEAR]], %c4
// CHECK:         arith.maxui %[[FAR]], %[[FEW]]
// CHECK-LABEL: func.func private @kernel.known(
// CHECK-SAME:    %[[BEGIN:[a-z0-9]+]]: index, %[[END:[a-z0-9]+]]: index, %[[COUNT:[a-z0-9]+]]: index)
// CHECK-SAME:    ktn.parts = 28
// CHECK:         %[[FIRST:.+]] = arith.muli %c28{{(_[0-9]+)?}}, %[[BEGIN]]
// CHECK:         %[[FROM:.+]] = arith.divui %[[FIRST]], %[[COUNT]]
// CHECK:         %[[LAST:.+]] = arith.muli %c28{{(_[0-9]+)?}}, %[[END]]
// CHECK:         %[[TO:.+]] = arith.divui %[[LAST]], %[[COUNT]]
// CHECK:         scf.for %{{.+}} = %c0{{(_[0-9]+)?}} to %{{.+}} step
// CHECK:           arith.divui %{{.+}}, %c4
// CHECK:           scf.for
func.func @known(%x: tensor<?x7x24x64xf32>) -> tensor<?x7x24x64xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x7x24x64xf32>
  %w = arith.constant dense<1.0> : tensor<64x64xf32>
  %out = tensor.empty(%n) : tensor<?x7x24x64xf32>
  %0 = call @kernel.known(%x, %w, %out) {ktn.flops = array<i64: 0, 67108864>, ktn.bytes = array<i64: 0, 1572864>} : (tensor<?x7x24x64xf32>, tensor<64x64xf32>, tensor<?x7x24x64xf32>) -> tensor<?x7x24x64xf32>
  return %0 : tensor<?x7x24x64xf32>
}
func.func private @kernel.known(%x: tensor<?x7x24x64xf32>, %w: tensor<64x64xf32> {ktn.constant}, %out: tensor<?x7x24x64xf32>) -> tensor<?x7x24x64xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<?x7x24x64xf32>) -> tensor<?x7x24x64xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(b, h, m, n, k) -> (b, h, m, k)>, affine_map<(b, h, m, n, k) -> (k, n)>, affine_map<(b, h, m, n, k) -> (b, h, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x7x24x64xf32>, tensor<64x64xf32>) outs(%start : tensor<?x7x24x64xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x7x24x64xf32>
  return %sum : tensor<?x7x24x64xf32>
}

// Where that is little, pairs of a sample and one of its turns, of four rows.
// CHECK-LABEL: func.func private @kernel.pairs(
// CHECK-SAME:    %[[BEGIN:[a-z0-9]+]]: index, %[[END:[a-z0-9]+]]: index, %[[COUNT:[a-z0-9]+]]: index)
// CHECK:         %[[SAMPLES:.+]] = memref.dim
// CHECK:         arith.muli %[[SAMPLES]], %c3
// CHECK:         %[[FIRST:.+]] = arith.muli %{{.+}}, %[[BEGIN]]
// CHECK:         arith.divui %[[FIRST]], %[[COUNT]]
// CHECK:         %[[LAST:.+]] = arith.muli %{{.+}}, %[[END]]
// CHECK:         %[[BEHIND:.+]] = arith.addi %{{.+}}, %c2
// CHECK:         %[[TO:.+]] = arith.divui %[[BEHIND]], %c3
// CHECK:         scf.for %[[SAMPLE:.+]] = %{{.+}} to %[[TO]] step
// CHECK:           %[[START:.+]] = arith.muli %[[SAMPLE]], %c3
// CHECK:           %[[OWN:.+]] = arith.subi %{{.+}}, %[[START]]
// CHECK:           %[[LEAST:.+]] = arith.maxsi %[[OWN]], %c0
// CHECK:           arith.minsi %[[LEAST]], %c3
// CHECK:           scf.for
func.func @pairs(%x: tensor<?x12x64xf32>) -> tensor<?x12x64xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x12x64xf32>
  %out = tensor.empty(%n) : tensor<?x12x64xf32>
  %0 = call @kernel.pairs(%x, %out) {ktn.flops = array<i64: 0, 67108864>, ktn.bytes = array<i64: 0, 1572864>} : (tensor<?x12x64xf32>, tensor<?x12x64xf32>) -> tensor<?x12x64xf32>
  return %0 : tensor<?x12x64xf32>
}
func.func private @kernel.pairs(%x: tensor<?x12x64xf32>, %out: tensor<?x12x64xf32>) -> tensor<?x12x64xf32> attributes {ktn.kernel = "rows"} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x12x64xf32>
  %empty = tensor.empty(%n) : tensor<?x12xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x12xf32>) -> tensor<?x12xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(b, h, c) -> (b, h, c)>, affine_map<(b, h, c) -> (b, h)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<?x12x64xf32>) outs(%start : tensor<?x12xf32>) {
  ^bb0(%in: f32, %s: f32):
    %t = arith.addf %s, %in : f32
    linalg.yield %t : f32
  } -> tensor<?x12xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, h, c) -> (b, h, c)>, affine_map<(b, h, c) -> (b, h)>, affine_map<(b, h, c) -> (b, h, c)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %sum : tensor<?x12x64xf32>, tensor<?x12xf32>) outs(%out : tensor<?x12x64xf32>) {
  ^bb0(%in: f32, %s: f32, %o: f32):
    %t = arith.divf %in, %s : f32
    linalg.yield %t : f32
  } -> tensor<?x12x64xf32>
  return %y : tensor<?x12x64xf32>
}
