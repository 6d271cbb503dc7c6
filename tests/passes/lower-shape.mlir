// RUN: keratin-opt %s --ktn-lower-to-linalg | FileCheck %s

// CHECK-DAG: #[[SWAPPED:.+]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-DAG: #[[STRIDED:.+]] = affine_map<(d0, d1) -> (d0, d1 * 2 + 1)>
// CHECK-DAG: #[[LEADING:.+]] = affine_map<(d0, d1) -> (d0, 0, d1)>
// CHECK-DAG: #[[BACKWARDS:.+]] = affine_map<(d0, d1) -> (d0, -d1 + 15)>

// CHECK-LABEL: func @transpose(
// CHECK:         linalg.generic
// CHECK-SAME:      indexing_maps = [#[[SWAPPED]], #{{.+}}]
func.func @transpose(%x: tensor<?x16xf32>) -> tensor<16x?xf32> {
  %y = ktn.transpose %x, [1, 0] : tensor<?x16xf32> -> tensor<16x?xf32>
  return %y : tensor<16x?xf32>
}

// CHECK-LABEL: func @strided_slice(
// CHECK:         linalg.generic
// CHECK-SAME:      indexing_maps = [#[[STRIDED]], #{{.+}}]
func.func @strided_slice(%x: tensor<?x16xf32>) -> tensor<?x8xf32> {
  %y = ktn.slice %x[0:?:1, 1:16:2] : tensor<?x16xf32> -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// The first quarter of an axis: the axis is split, and read at 0.
// CHECK-LABEL: func @leading_slice(
// CHECK:         %[[SPLIT:.+]] = tensor.expand_shape {{.+}} into tensor<?x4x4xf32>
// CHECK:         linalg.generic
// CHECK-SAME:      indexing_maps = [#[[LEADING]], #{{.+}}]
// CHECK-SAME:      ins(%[[SPLIT]] :
func.func @leading_slice(%x: tensor<?x16xf32>) -> tensor<?x4xf32> {
  %y = ktn.slice %x[0:?:1, 0:4:1] : tensor<?x16xf32> -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// No map reads the first 5 of 16, so the elements are addressed.
// CHECK-LABEL: func @uneven_leading_slice(
// CHECK:         linalg.generic
// CHECK:         linalg.index
// CHECK:         tensor.extract
func.func @uneven_leading_slice(%x: tensor<?x16xf32>) -> tensor<?x5xf32> {
  %y = ktn.slice %x[0:?:1, 0:5:1] : tensor<?x16xf32> -> tensor<?x5xf32>
  return %y : tensor<?x5xf32>
}

// One element of an axis is read at a constant; to drop the axis costs nothing.
// CHECK-LABEL: func @pick(
// CHECK-NOT:     collapse_shape
// CHECK:         linalg.generic
// CHECK-NOT:     collapse_shape
func.func @pick(%x: tensor<?x16xf32>, %z: tensor<?xf32>) -> tensor<?xf32> {
  %one = ktn.slice %x[0:?:1, 3:4:1] : tensor<?x16xf32> -> tensor<?x1xf32>
  %flat = ktn.squeeze %one, [1] : tensor<?x1xf32> -> tensor<?xf32>
  %y = ktn.add %flat, %z : tensor<?xf32>
  return %y : tensor<?xf32>
}

// CHECK-LABEL: func @reverse(
// CHECK:         linalg.generic
// CHECK-SAME:      indexing_maps = [#[[BACKWARDS]], #{{.+}}]
func.func @reverse(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %y = ktn.reverse %x, [1] : tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// Views only; the size of the flat axis follows from the batch.
// CHECK-LABEL: func @reshape(
// CHECK-SAME:    %[[X:.+]]: tensor<?x4x6xf32>)
// CHECK-DAG:     %[[N:.+]] = tensor.dim %[[X]], %{{.+}} : tensor<?x4x6xf32>
// CHECK-DAG:     %[[FLAT:.+]] = tensor.collapse_shape %[[X]] {{\[\[}}0, 1, 2]] : tensor<?x4x6xf32> into tensor<?xf32>
// CHECK:         %[[N3:.+]] = arith.muli %[[N]], %c3
// CHECK:         tensor.expand_shape %[[FLAT]] {{\[\[}}0, 1]] output_shape [%[[N3]], 8]
func.func @reshape(%x: tensor<?x4x6xf32>) -> tensor<?x8xf32> {
  %y = ktn.reshape %x to [?, 8] : tensor<?x4x6xf32> -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// There and back again is nothing.
// CHECK-LABEL: func @reshape_back(
// CHECK-SAME:    %[[X:.+]]: tensor<?x4x6xf32>)
// CHECK-NEXT:    return %[[X]]
func.func @reshape_back(%x: tensor<?x4x6xf32>) -> tensor<?x4x6xf32> {
  %flat = ktn.reshape %x to [?, 6] : tensor<?x4x6xf32> -> tensor<?x6xf32>
  %y = ktn.reshape %flat to [?, 4, 6] : tensor<?x6xf32> -> tensor<?x4x6xf32>
  return %y : tensor<?x4x6xf32>
}

// Weights in another shape are the same bytes.
// CHECK-LABEL: func @reshape_weights(
// CHECK-NEXT:    %[[W:.+]] = arith.constant dense_resource<w> : tensor<2x4xf32>
// CHECK-NEXT:    return %[[W]]
func.func @reshape_weights() -> tensor<2x4xf32> {
  %w = ktn.constant dense_resource<w> : tensor<8xf32>
  %y = ktn.reshape %w to [2, 4] : tensor<8xf32> -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// Shape arithmetic is done on scalars: the size is one of the argument.
// CHECK-LABEL: func @zero_state(
// CHECK-SAME:    %[[X:.+]]: tensor<10x?x8xf32>)
// CHECK:         %[[N:.+]] = tensor.dim %[[X]], %c1
// CHECK-NEXT:    tensor.empty(%[[N]]) : tensor<?x16xf32>
// CHECK-NOT:     tensor.from_elements
func.func @zero_state(%x: tensor<10x?x8xf32>) -> tensor<?x16xf32> {
  %zero = ktn.constant dense<0.0> : tensor<f32>
  %units = ktn.constant dense<[16]> : tensor<1xi64>
  %shape = ktn.shape %x : tensor<10x?x8xf32> -> tensor<3xi64>
  %batch = ktn.slice %shape[1:2:1] : tensor<3xi64> -> tensor<1xi64>
  %target = ktn.concat %batch, %units {axis = 0} : tensor<1xi64>, tensor<1xi64> -> tensor<2xi64>
  %y = ktn.broadcast_to %zero shape %target : tensor<2xi64> to [?, 16] : tensor<f32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// Extents that do not follow from the count are elements of the shape operand.
// CHECK-LABEL: func @reshape_to_shape(
// CHECK-SAME:    %[[X:.+]]: tensor<?x?x8xf32>, %[[SHAPE:.+]]: tensor<3xi64>)
// CHECK-DAG:     %[[FLAT:.+]] = tensor.collapse_shape %[[X]] {{.+}} into tensor<?xf32>
// CHECK-DAG:     %[[E0:.+]] = tensor.extract %[[SHAPE]][%c0]
// CHECK-DAG:     %[[N0:.+]] = arith.index_cast %[[E0]]
// CHECK-DAG:     %[[E1:.+]] = tensor.extract %[[SHAPE]][%c1]
// CHECK-DAG:     %[[N1:.+]] = arith.index_cast %[[E1]]
// CHECK:         tensor.expand_shape %[[FLAT]] {{\[\[}}0, 1, 2]] output_shape [%[[N0]], %[[N1]], 4]
func.func @reshape_to_shape(%x: tensor<?x?x8xf32>, %shape: tensor<3xi64>) -> tensor<?x?x4xf32> {
  %y = ktn.reshape %x shape %shape : tensor<3xi64> to [?, ?, 4] : tensor<?x?x8xf32> -> tensor<?x?x4xf32>
  return %y : tensor<?x?x4xf32>
}

// CHECK-LABEL: func @pad_and_concat(
// CHECK:         tensor.pad %{{.+}} low[0, 1] high[0, 2]
// CHECK:         tensor.concat dim(1)
func.func @pad_and_concat(%x: tensor<?x16xf32>) -> tensor<?x35xf32> {
  %p = ktn.pad %x low [0, 1] high [0, 2] value 1.0 : f32 : tensor<?x16xf32> -> tensor<?x19xf32>
  %y = ktn.concat %p, %x {axis = 1} : tensor<?x19xf32>, tensor<?x16xf32> -> tensor<?x35xf32>
  return %y : tensor<?x35xf32>
}

{-#
  dialect_resources: {
    builtin: {
      w: "0x040000000000803F000000400000404000008040000080BF000000C0000040C0000080C0"
    }
  }
#-}

// There is no such element to look for in front of the view.
// CHECK-LABEL: func.func @element_of_none(
// CHECK:         %[[VIEW:.+]] = tensor.collapse_shape
// CHECK:         tensor.extract %[[VIEW]]
func.func @element_of_none(%x: tensor<0x3xindex>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %view = tensor.collapse_shape %x [[0, 1]] : tensor<0x3xindex> into tensor<0xindex>
  %count = tensor.extract %view[%c0] : tensor<0xindex>
  %empty = tensor.empty(%count) : tensor<?xf32>
  return %empty : tensor<?xf32>
}

// Extents that only the result tells are told in front of the view.
// CHECK-LABEL: func.func @told_extents(
// CHECK:         %[[TOLD:.+]] = tensor.cast %{{.+}} : tensor<?x?x6xf32> to tensor<?x154x6xf32>
// CHECK:         tensor.expand_shape %[[TOLD]] {{\[\[}}0], [1, 2], [3]] {{.+}} : tensor<?x154x6xf32> into tensor<?x14x11x6xf32>
func.func @told_extents(%x: tensor<?x?x6xf32>) -> tensor<?x14x11x6xf32> {
  %0 = ktn.reshape %x to [?, 14, 11, 6] : tensor<?x?x6xf32> -> tensor<?x14x11x6xf32>
  return %0 : tensor<?x14x11x6xf32>
}
