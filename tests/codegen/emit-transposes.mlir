// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=128 vector-registers=16" --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=256 vector-registers=16" --split-input-file | FileCheck %s --check-prefix=LINES

// Four rows of the source are read as they are and become four columns in two
// steps of shuffles; the rest is a tile of the exact size.
// CHECK-LABEL: func.func private @transpose(
// CHECK-SAME:      %[[X:.+]]: memref<6x9xf32>, %[[Y:.+]]: memref<9x6xf32>)
// CHECK-NOT:     memref.load
// CHECK:         scf.for %[[COLUMN:.+]] = %{{.+}} to %{{.+}} step
// CHECK:           scf.for %[[ROW:.+]] = %{{.+}} to %{{.+}} step
// CHECK-COUNT-4:     vector.load %[[X]][%{{.+}}, %[[ROW]]] : memref<6x9xf32>, vector<4xf32>
// CHECK:             vector.shuffle %{{.+}}, %{{.+}} [0, 4, 2, 6]
// CHECK:             vector.shuffle %{{.+}}, %{{.+}} [1, 5, 3, 7]
// CHECK:             vector.shuffle %{{.+}}, %{{.+}} [0, 1, 4, 5]
// CHECK:             vector.shuffle %{{.+}}, %{{.+}} [2, 3, 6, 7]
// CHECK-COUNT-4:     vector.store %{{.+}}, %[[Y]][%{{.+}}, %[[COLUMN]]] : memref<9x6xf32>, vector<4xf32>
// CHECK:             vector.load %[[X]][%{{.+}}, %{{.+}}] : memref<6x9xf32>, vector<1xf32>
// CHECK:             vector.store %{{.+}}, %[[Y]][%{{.+}}, %{{.+}}] : memref<9x6xf32>, vector<2xf32>
// CHECK-NOT:     memref.load
// CHECK:         return
func.func private @transpose(%x: tensor<6x9xf32>, %y: tensor<9x6xf32>) -> tensor<9x6xf32> attributes {ktn.kernel = "elementwise"} {
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<6x9xf32>) outs(%y : tensor<9x6xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<9x6xf32>
  return %0 : tensor<9x6xf32>
}

// -----

// What reads its other operands in order goes on from the transposed ones; a
// source too narrow for a vector is read element by element.
// CHECK-LABEL: func.func private @sum(
// CHECK-SAME:      %[[X:.+]]: memref<8x8xf32>, %[[B:.+]]: memref<8x8xf32> {ktn.in_place}, %[[Y:.+]]: memref<8x8xf32>)
// CHECK-COUNT-8: vector.shuffle
// CHECK:         vector.load %[[B]]
// CHECK:         arith.addf %{{.+}}, %{{.+}} : vector<4xf32>
// CHECK-LABEL: func.func private @narrow(
// CHECK-NOT:     vector.shuffle
// CHECK:         memref.load
func.func private @sum(%x: tensor<8x8xf32>, %b: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {ktn.kernel = "elementwise"} {
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%y : tensor<8x8xf32>) {
  ^bb0(%in: f32, %more: f32, %out: f32):
    %1 = arith.addf %in, %more : f32
    linalg.yield %1 : f32
  } -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
func.func private @narrow(%x: tensor<8x2xf32>, %y: tensor<2x8xf32>) -> tensor<2x8xf32> attributes {ktn.kernel = "elementwise"} {
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x2xf32>) outs(%y : tensor<2x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// -----

// Where a vector is half of a cache line, two squares are written beside each
// other, and the rest of a row of them is squares, too.
// LINES-LABEL: func.func private @lines(
// LINES-SAME:      %[[X:.+]]: memref<44x8xf32>, %[[Y:.+]]: memref<8x44xf32>)
// LINES:         scf.for %[[COLUMN:.+]] = %{{.+}} to %c32 step %c16 {
// LINES:           scf.for %[[ROW:.+]] = %{{.+}} to %{{.+}} step %c8 {
// LINES-COUNT-8:     vector.load %[[X]][%{{.+}}, %[[ROW]]] : memref<44x8xf32>, vector<8xf32>
// LINES-COUNT-8:     vector.store %{{.+}}, %[[Y]][%{{.+}}, %[[COLUMN]]] : memref<8x44xf32>, vector<8xf32>
// LINES-COUNT-8:     vector.load %[[X]][%{{.+}}, %[[ROW]]] : memref<44x8xf32>, vector<8xf32>
// LINES-COUNT-8:     vector.store %{{.+}}, %[[Y]]{{.+}} : memref<8x44xf32>, vector<8xf32>
// LINES:         scf.for
// LINES-COUNT-8:     vector.store %{{.+}}, %[[Y]]{{.+}} : memref<8x44xf32>, vector<8xf32>
// LINES-COUNT-8:     vector.store %{{.+}}, %[[Y]]{{.+}} : memref<8x44xf32>, vector<4xf32>
// LINES-NOT:     vector.store
// LINES:         return
func.func private @lines(%x: tensor<44x8xf32>, %y: tensor<8x44xf32>) -> tensor<8x44xf32> attributes {ktn.kernel = "elementwise"} {
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<44x8xf32>) outs(%y : tensor<8x44xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<8x44xf32>
  return %0 : tensor<8x44xf32>
}
