// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=256 vector-registers=16" --split-input-file | FileCheck %s --check-prefix=SHORT

#row = affine_map<(m, n) -> (m, n)>
#sum = affine_map<(m, n) -> (m)>

// While a row is stored, the next one is summed up in the same loop: what that
// leaves is carried to the turn that stores it. The first row is summed up in
// front of all turns, and the last one has a loop for each pass.
// CHECK-LABEL: func.func private @centre(
// CHECK-SAME:      %[[X:[^:]+]]: memref<128x320xf32>, %[[Y:[^:]+]]: memref<128x320xf32>
// CHECK:         scf.for %{{.+}} = %c0 to %c320 step %c64 iter_args
// CHECK:         %[[FIRST:.+]] = arith.addf %cst, %{{.+}} : f32
// CHECK:         scf.for %[[ROW:.+]] = %c0 to %c127 step %c1 iter_args(%[[SUM:.+]] = %[[FIRST]]) -> (f32) {
// CHECK:           scf.for %[[AT:.+]] = %c0 to %c320 step %c64 iter_args
// CHECK:             %[[LANES:.+]] = vector.load %[[X]][%[[ROW]], %[[AT]]]
// CHECK:             %[[MANY:.+]] = vector.broadcast %[[SUM]] : f32 to vector<16xf32>
// CHECK:             %[[LESS:.+]] = arith.subf %[[LANES]], %[[MANY]]
// CHECK:             vector.store %[[LESS]], %[[Y]][%[[ROW]], %[[AT]]]
// CHECK:             %[[NEXT:.+]] = arith.addi %[[ROW]], %c1
// CHECK:             vector.load %[[X]][%[[NEXT]], %[[AT]]]
// CHECK:           scf.yield %{{.+}} : f32
// CHECK:         scf.for %{{.+}} = %c0 to %c320 step %c64 iter_args
// CHECK:         scf.for %{{.+}} = %c0 to %c320 step %c64 {
// Rows of 40 vectors go so with 16 registers as well, in half the steps.
// SHORT-LABEL: func.func private @centre(
// SHORT:         scf.for %{{.+}} = %c0 to %c127 step %c1 iter_args
func.func private @centre(%x: tensor<128x320xf32>, %y: tensor<128x320xf32>) -> tensor<128x320xf32> attributes {ktn.kernel = "rows"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<128xf32>) -> tensor<128xf32>
  %sum = linalg.generic {indexing_maps = [#row, #sum], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<128x320xf32>) outs(%start : tensor<128xf32>) {
  ^bb0(%in: f32, %s: f32):
    %t = arith.addf %s, %in : f32
    linalg.yield %t : f32
  } -> tensor<128xf32>
  %less = linalg.generic {indexing_maps = [#row, #sum, #row], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<128x320xf32>, tensor<128xf32>) outs(%y : tensor<128x320xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %d = arith.subf %in, %s : f32
    linalg.yield %d : f32
  } -> tensor<128x320xf32>
  return %less : tensor<128x320xf32>
}

// -----

#row = affine_map<(m, n) -> (m, n)>
#sum = affine_map<(m, n) -> (m)>

// Four rows are not enough; two of them go through a pass side by side.
// CHECK-LABEL: func.func private @few_rows(
// CHECK-NOT:     step %c1
// CHECK:         scf.for %{{.+}} = %c0 to %c4 step %c2 {
// CHECK-NOT:     step %c1 iter_args
// CHECK:         return
func.func private @few_rows(%x: tensor<4x320xf32>, %y: tensor<4x320xf32>) -> tensor<4x320xf32> attributes {ktn.kernel = "rows"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#row, #sum], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x320xf32>) outs(%start : tensor<4xf32>) {
  ^bb0(%in: f32, %s: f32):
    %t = arith.addf %s, %in : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  %less = linalg.generic {indexing_maps = [#row, #sum, #row], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<4x320xf32>, tensor<4xf32>) outs(%y : tensor<4x320xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %d = arith.subf %in, %s : f32
    linalg.yield %d : f32
  } -> tensor<4x320xf32>
  return %less : tensor<4x320xf32>
}
