// RUN: keratin-opt %s --ktn-lower-to-linalg | FileCheck %s

// CHECK-DAG: #[[SWAPPED:.+]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-DAG: #[[FIRST:.+]] = affine_map<(d0, d1) -> (d0)>
// CHECK-DAG: #[[WHOLE:.+]] = affine_map<(d0, d1) -> (d0, d1)>

// Kept axes come first among the loops; the sum starts at the neutral element.
// CHECK-LABEL: func @sum(
// CHECK-SAME:    %[[X:.+]]: tensor<?x16xf32>)
// CHECK-DAG:     %[[ZERO:.+]] = arith.constant 0.000000e+00 : f32
// CHECK:         %[[INIT:.+]] = linalg.fill ins(%[[ZERO]]
// CHECK:         linalg.generic
// CHECK-SAME:      indexing_maps = [#[[SWAPPED]], #[[FIRST]]]
// CHECK-SAME:      iterator_types = ["parallel", "reduction"]
// CHECK-SAME:      ins(%[[X]] : tensor<?x16xf32>) outs(%[[INIT]] : tensor<16xf32>)
// CHECK:         arith.addf
func.func @sum(%x: tensor<?x16xf32>) -> tensor<16xf32> {
  %y = ktn.sum %x, [0] : tensor<?x16xf32> -> tensor<16xf32>
  return %y : tensor<16xf32>
}

// An axis that is kept with extent 1 is a view, and one that a reader drops again
// is none at all: the rows of a softmax read their maximum without one.
// CHECK-LABEL: func @keepdims(
// CHECK-NOT:     expand_shape
// CHECK:         %[[MAX:.+]] = linalg.generic
// CHECK-SAME:      outs(%{{.+}} : tensor<8xf32>)
// CHECK:         linalg.generic
// CHECK-SAME:      indexing_maps = [#[[WHOLE]], #[[FIRST]], #[[WHOLE]]]
// CHECK-SAME:      ins(%{{.+}}, %[[MAX]] :
func.func @keepdims(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %max = ktn.max %x, [1] {keepdims = true} : tensor<8x16xf32> -> tensor<8x1xf32>
  %y = ktn.sub %x, %max : tensor<8x16xf32>, tensor<8x1xf32> -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// The extremum of a short row and its index are found together: a NaN, and the
// first of equals, is not beaten.
// CHECK-LABEL: func @argmax(
// CHECK:         linalg.generic
// CHECK-SAME:      outs(%{{.+}}, %{{.+}} : tensor<8xf32>, tensor<8xi64>)
// CHECK:         ^bb0(%[[X:.+]]: f32, %[[BEST:.+]]: f32, %{{.+}}: i64):
// CHECK-DAG:     linalg.index 1
// CHECK-DAG:     arith.cmpf ugt, %[[X]], %[[BEST]]
// CHECK-DAG:     arith.cmpf ord, %[[BEST]], %[[BEST]]
func.func @argmax(%x: tensor<8x15xf32>) -> tensor<8xi64> {
  %y = ktn.argmax %x {axis = 1} : tensor<8x15xf32> -> tensor<8xi64>
  return %y : tensor<8xi64>
}

// Of a long one they are two reductions: the second is of the places of what
// is equal to the extremum, or no number.
// CHECK-LABEL: func @argmin_of_long_rows(
// CHECK:         %[[LEAST:.+]] = linalg.generic
// CHECK-SAME:      outs(%{{.+}} : tensor<8xf32>)
// CHECK:         arith.minimumf
// CHECK:         %[[FIRST:.+]] = linalg.generic
// CHECK-SAME:      ins(%{{.+}}, %[[LEAST]] :
// CHECK-SAME:      outs(%{{.+}} : tensor<8xi32>)
// CHECK:         ^bb0(%[[X:.+]]: f32, %[[L:.+]]: f32, %{{.+}}: i32):
// CHECK-DAG:     linalg.index 1
// CHECK-DAG:     arith.cmpf oeq, %[[X]], %[[L]]
// CHECK-DAG:     arith.cmpf uno, %[[X]], %[[X]]
// CHECK:         arith.minsi
// CHECK:         arith.extsi %{{.+}} : i32 to i64
func.func @argmin_of_long_rows(%x: tensor<8x16xf32>) -> tensor<8xi64> {
  %y = ktn.argmin %x {axis = 1} : tensor<8x16xf32> -> tensor<8xi64>
  return %y : tensor<8xi64>
}

// Integers are all numbers. No more is known of the places of an open row.
// CHECK-LABEL: func @argmax_of_open_row(
// CHECK:         arith.maxsi
// CHECK:         linalg.generic
// CHECK-SAME:      outs(%{{.+}} : tensor<8xi64>)
// CHECK:         arith.cmpi eq
// CHECK-NOT:     arith.extsi
func.func @argmax_of_open_row(%x: tensor<8x?xi32>) -> tensor<8xi64> {
  %y = ktn.argmax %x {axis = 1} : tensor<8x?xi32> -> tensor<8xi64>
  return %y : tensor<8xi64>
}

// Half precision is summed in f32.
// CHECK-LABEL: func @half(
// CHECK:         linalg.generic
// CHECK-SAME:      outs(%{{.+}} : tensor<8xf32>)
// CHECK:         %[[X:.+]] = arith.extf %{{.+}} : bf16 to f32
// CHECK-NEXT:    arith.addf %[[X]], %{{.+}} : f32
// CHECK:         arith.truncf %{{.+}} : f32 to bf16
func.func @half(%x: tensor<8x16xbf16>) -> tensor<8xbf16> {
  %y = ktn.sum %x, [1] : tensor<8x16xbf16> -> tensor<8xbf16>
  return %y : tensor<8xbf16>
}

// Large images are summed along their rows, which threads share, and then over
// them. Small ones and channels at once are one sum.
// CHECK-LABEL: func @images(
// CHECK:         %[[ROWS:.+]] = linalg.generic
// CHECK-SAME:      iterator_types = ["parallel", "parallel", "parallel", "reduction"]
// CHECK:         linalg.generic
// CHECK-SAME:      iterator_types = ["parallel", "parallel", "reduction"]
// CHECK-SAME:      ins(%[[ROWS]] : tensor<?x14x480xf32>)
func.func @images(%x: tensor<?x14x14x480xf32>) -> tensor<?x480xf32> {
  %y = ktn.sum %x, [1, 2] : tensor<?x14x14x480xf32> -> tensor<?x480xf32>
  return %y : tensor<?x480xf32>
}
// CHECK-LABEL: func @small_images(
// CHECK:         linalg.generic
// CHECK-SAME:      iterator_types = ["parallel", "parallel", "reduction", "reduction"]
func.func @small_images(%x: tensor<?x7x7x480xf32>) -> tensor<?x480xf32> {
  %y = ktn.sum %x, [1, 2] : tensor<?x7x7x480xf32> -> tensor<?x480xf32>
  return %y : tensor<?x480xf32>
}
