// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=256 vector-registers=16" --split-input-file | FileCheck %s

// Rows of the result are 1024 bytes apart: 16 lines of a tile share 4 sets of
// the first cache, and tiles go along those rows.
// CHECK-LABEL: func.func private @few_sets(
// CHECK-SAME:      %[[X:.+]]: memref<256x160xf32>, %[[Y:.+]]: memref<160x256xf32>
// CHECK:         scf.for %[[ROW:.+]] = %c0 to %c160 step
// CHECK-NEXT:      scf.for %[[COLUMN:.+]] = %c0 to %c256 step %c16 {
// CHECK:             vector.load %[[X]][%[[COLUMN]], %[[ROW]]]
// CHECK:             vector.store %{{.+}}, %[[Y]][%[[ROW]], %[[COLUMN]]]
func.func private @few_sets(%x: tensor<256x160xf32>, %y: tensor<160x256xf32>) -> tensor<160x256xf32> attributes {ktn.kernel = "elementwise"} {
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<256x160xf32>) outs(%y : tensor<160x256xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<160x256xf32>
  return %0 : tensor<160x256xf32>
}

// -----

// 640 bytes apart they are in 32 sets: what is read is read in order.
// CHECK-LABEL: func.func private @many_sets(
// CHECK:         scf.for %[[COLUMN:.+]] = %c0 to %c160 step %c16 {
// CHECK-NEXT:      scf.for %[[ROW:.+]] = %c0 to %c256 step
func.func private @many_sets(%x: tensor<160x256xf32>, %y: tensor<256x160xf32>) -> tensor<256x160xf32> attributes {ktn.kernel = "elementwise"} {
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<160x256xf32>) outs(%y : tensor<256x160xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<256x160xf32>
  return %0 : tensor<256x160xf32>
}
