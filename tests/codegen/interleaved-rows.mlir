// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=128 vector-registers=16" --split-input-file | FileCheck %s

#groups = affine_map<(n, c, g) -> (n, g, c)>
#here = affine_map<(n, c, g) -> (n, c, g)>

// Three groups of channels are shuffled: a vector of each becomes a run of
// three. The last channels are in a vector that begins within the one before.
// CHECK-LABEL: func.func private @shuffle(
// CHECK-SAME:      %[[X:.+]]: memref<5x3x10xf32>, %[[Y:.+]]: memref<5x10x3xf32>
// CHECK-NOT:     memref.load
// CHECK:         scf.for %[[ROW:.+]] = %c0 to %c8 step %c4 {
// CHECK:           %[[A:.+]] = vector.load %[[X]][%{{.+}}, %c0, %[[ROW]]] : memref<5x3x10xf32>, vector<4xf32>
// CHECK:           %[[B:.+]] = vector.load %[[X]][%{{.+}}, %c1, %[[ROW]]] : memref<5x3x10xf32>, vector<4xf32>
// CHECK:           %[[C:.+]] = vector.load %[[X]][%{{.+}}, %c2, %[[ROW]]] : memref<5x3x10xf32>, vector<4xf32>
// CHECK:           %[[LINE:.+]] = memref.collapse_shape %[[Y]] {{.+}} : memref<5x10x3xf32> into memref<5x30xf32>
// CHECK:           %[[AB:.+]] = vector.shuffle %[[A]], %[[B]] [0, 4, 2, 1] : vector<4xf32>, vector<4xf32>
// CHECK:           vector.shuffle %[[AB]], %[[C]] [0, 1, 4, 3]
// CHECK:           vector.shuffle %[[A]], %[[B]] [5, 1, 2, 6]
// CHECK:           vector.shuffle %[[A]], %[[B]] [0, 3, 7, 3]
// CHECK-COUNT-3:   vector.store %{{.+}}, %[[LINE]][%{{.+}}, %{{.+}}] : memref<5x30xf32>, vector<4xf32>
// CHECK:         vector.load %[[X]][%{{.+}}, %c0, %c6] : memref<5x3x10xf32>, vector<4xf32>
// CHECK-NOT:     memref.load
// CHECK:         return
func.func private @shuffle(%x: tensor<5x3x10xf32>, %y: tensor<5x10x3xf32>) -> tensor<5x10x3xf32> attributes {ktn.kernel = "elementwise"} {
  %0 = linalg.generic {indexing_maps = [#groups, #here], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<5x3x10xf32>) outs(%y : tensor<5x10x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<5x10x3xf32>
  return %0 : tensor<5x10x3xf32>
}

// -----

#groups = affine_map<(n, c, g) -> (n, g, c)>
#factor = affine_map<(n, c, g) -> (n, c)>
#here = affine_map<(n, c, g) -> (n, c, g)>

// What else is read might be where the result is: what is left goes row by row.
// CHECK-LABEL: func.func private @scaled(
// CHECK:         scf.for %{{.+}} = %c0 to %c8 step %c4 {
// CHECK:           arith.mulf %{{.+}}, %{{.+}} : vector<4xf32>
// CHECK:         scf.for %{{.+}} = %{{.+}} to %{{.+}} step %c1 {
// CHECK:           arith.mulf %{{.+}}, %{{.+}} : vector<3xf32>
func.func private @scaled(%x: tensor<5x3x10xf32>, %s: tensor<5x10xf32>, %y: tensor<5x10x3xf32>) -> tensor<5x10x3xf32> attributes {ktn.kernel = "elementwise"} {
  %0 = linalg.generic {indexing_maps = [#groups, #factor, #here], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %s : tensor<5x3x10xf32>, tensor<5x10xf32>) outs(%y : tensor<5x10x3xf32>) {
  ^bb0(%in: f32, %f: f32, %out: f32):
    %p = arith.mulf %in, %f : f32
    linalg.yield %p : f32
  } -> tensor<5x10x3xf32>
  return %0 : tensor<5x10x3xf32>
}
