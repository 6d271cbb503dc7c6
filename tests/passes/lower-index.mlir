// RUN: keratin-opt %s --ktn-lower-to-linalg | FileCheck %s

// CHECK-DAG: #[[BATCH_INDEX:.+]] = affine_map<(d0, d1, d2) -> (d0, d1)>

// An index outside of the axis reads its nearest end.
// CHECK-LABEL: func @embedding(
// CHECK-SAME:    %[[TABLE:.+]]: tensor<100x16xf32>, %[[I:.+]]: tensor<?x8xi32>)
// CHECK-DAG:     %[[LAST:.+]] = arith.constant 99 : index
// CHECK-DAG:     %[[FIRST:.+]] = arith.constant 0 : index
// CHECK:         linalg.generic
// CHECK-SAME:      ins(%[[I]] : tensor<?x8xi32>)
// CHECK:         %[[LOW:.+]] = arith.maxsi %{{.+}}, %[[FIRST]]
// CHECK:         %[[ROW:.+]] = arith.minsi %[[LOW]], %[[LAST]]
// CHECK:         %[[COLUMN:.+]] = linalg.index 2
// CHECK:         tensor.extract %[[TABLE]][%[[ROW]], %[[COLUMN]]]
func.func @embedding(%table: tensor<100x16xf32>, %i: tensor<?x8xi32>) -> tensor<?x8x16xf32> {
  %y = ktn.gather %table, %i {axis = 0} : tensor<100x16xf32>, tensor<?x8xi32> -> tensor<?x8x16xf32>
  return %y : tensor<?x8x16xf32>
}

// Batch axes are shared by the tensor and the indices.
// CHECK-LABEL: func @batched(
// CHECK:         indexing_maps = [#[[BATCH_INDEX]], #{{.+}}]
// CHECK:         linalg.index 0
// CHECK:         linalg.index 2
func.func @batched(%x: tensor<4x10x16xf32>, %i: tensor<4x3xi32>) -> tensor<4x3x16xf32> {
  %y = ktn.gather %x, %i {axis = 1, batch_dims = 1} : tensor<4x10x16xf32>, tensor<4x3xi32> -> tensor<4x3x16xf32>
  return %y : tensor<4x3x16xf32>
}

// CHECK-LABEL: func @iota(
// CHECK:         linalg.index 1
// CHECK:         arith.sitofp
func.func @iota() -> tensor<4x8xf32> {
  %y = ktn.iota [4, 8], f32 {axis = 1} : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// Two updates may meet in one row, so they are added one after another.
// CHECK-LABEL: func @scatter_add(
// CHECK-SAME:    %[[X:.+]]: tensor<10x4xf32>, %[[I:.+]]: tensor<3xi32>, %[[U:.+]]: tensor<3x4xf32>)
// CHECK:         %[[Y:.+]] = scf.for %[[T:[a-z0-9]+]] = {{.+}} iter_args(%[[SUM:.+]] = %[[X]])
// CHECK:           %[[ROW:.+]] = tensor.extract %[[I]][%[[T]]]
// CHECK:           tensor.extract_slice %[[U]][%[[T]], 0]
// CHECK:           tensor.extract_slice %[[SUM]][%[[TO:.+]], 0]
// CHECK:           tensor.insert_slice %{{.+}} into %[[SUM]][%[[TO]], 0]
// CHECK:         return %[[Y]]
func.func @scatter_add(%x: tensor<10x4xf32>, %i: tensor<3xi32>, %u: tensor<3x4xf32>) -> tensor<10x4xf32> {
  %y = ktn.scatter_add %x, %i, %u : tensor<10x4xf32>, tensor<3xi32>, tensor<3x4xf32>
  return %y : tensor<10x4xf32>
}
