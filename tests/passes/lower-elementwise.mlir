// RUN: keratin-opt %s --ktn-lower-to-linalg | FileCheck %s

// CHECK-DAG: #[[WHOLE:.+]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[COLUMN:.+]] = affine_map<(d0, d1) -> (d1)>
// CHECK-DAG: #[[ROW:.+]] = affine_map<(d0, d1) -> (d0, 0)>

// An operand of lower rank is aligned at the right; the batch is read from the
// argument that has it.
// CHECK-LABEL: func @lower_rank(
// CHECK-SAME:    %[[BIAS:.+]]: tensor<16xf32>, %[[X:.+]]: tensor<?x16xf32>)
// CHECK:         %[[N:.+]] = tensor.dim %[[X]], %{{.+}} : tensor<?x16xf32>
// CHECK:         tensor.empty(%[[N]]) : tensor<?x16xf32>
// CHECK:         linalg.generic
// CHECK-SAME:      indexing_maps = [#[[COLUMN]], #[[WHOLE]], #[[WHOLE]]]
// CHECK-SAME:      ins(%[[BIAS]], %[[X]] :
// CHECK:         arith.addf
func.func @lower_rank(%bias: tensor<16xf32>, %x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %y = ktn.add %bias, %x : tensor<16xf32>, tensor<?x16xf32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// An axis of extent 1 is read at 0.
// CHECK-LABEL: func @extent_one(
// CHECK:         indexing_maps = [#[[WHOLE]], #[[ROW]], #[[WHOLE]]]
func.func @extent_one(%x: tensor<8x16xf32>, %scale: tensor<8x1xf32>) -> tensor<8x16xf32> {
  %y = ktn.mul %x, %scale : tensor<8x16xf32>, tensor<8x1xf32> -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// A constant of equal elements is a scalar in the body, not an input.
// CHECK-LABEL: func @splat(
// CHECK-SAME:    %[[X:.+]]: tensor<8x16xf32>)
// CHECK:         %[[TWO:.+]] = arith.constant 2.000000e+00 : f32
// CHECK:         linalg.generic
// CHECK-SAME:      ins(%[[X]] : tensor<8x16xf32>)
// CHECK:         arith.mulf %{{.+}}, %[[TWO]]
func.func @splat(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %two = ktn.constant dense<2.0> : tensor<f32>
  %y = ktn.mul %x, %two : tensor<8x16xf32>, tensor<f32> -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// Conditions stay tensors of i1.
// CHECK-LABEL: func @condition(
// CHECK:         arith.cmpf
// CHECK:         -> tensor<8x16xi1>
// CHECK:         ins(%{{.+}}, %{{.+}}, %{{.+}} : tensor<8x16xi1>, tensor<8x16xf32>, tensor<8x16xf32>)
// CHECK:         arith.select
func.func @condition(%a: tensor<8x16xf32>, %b: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %c = ktn.less %a, %b : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xi1>
  %y = ktn.select %c, %a, %b : tensor<8x16xi1>, tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// linalg knows no unsigned types: the conversion says it, and the signature
// keeps a mark.
// CHECK-LABEL: func @unsigned(
// CHECK-SAME:    %[[X:.+]]: tensor<4xi8> {ktn.unsigned})
// CHECK:         arith.uitofp %{{.+}} : i8 to f32
func.func @unsigned(%x: tensor<4xui8>) -> tensor<4xf32> {
  %y = ktn.cast %x to f32 : tensor<4xui8> -> tensor<4xf32>
  return %y : tensor<4xf32>
}
