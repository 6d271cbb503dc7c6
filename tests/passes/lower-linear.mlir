// RUN: keratin-opt %s --ktn-lower-to-linalg | FileCheck %s

// CHECK-DAG: #[[A:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
// CHECK-DAG: #[[B:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
// CHECK-DAG: #[[Y:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-DAG: #[[LHS:.+]] = affine_map<(d0, d1, d2) -> (d0, d2)>

// Loops are batch, rows, columns, sum; the maps say where each operand has them.
// CHECK-LABEL: func @attention_scores(
// CHECK-SAME:    %[[Q:.+]]: tensor<?x8x16xf32>, %[[K:.+]]: tensor<?x12x16xf32>)
// CHECK:         linalg.generic
// CHECK-SAME:      indexing_maps = [#[[A]], #[[B]], #[[Y]]]
// CHECK-SAME:      iterator_types = ["parallel", "parallel", "parallel", "reduction"]
// CHECK-SAME:      ins(%[[Q]], %[[K]] :
// CHECK:         arith.mulf
// CHECK:         arith.addf
func.func @attention_scores(%q: tensor<?x8x16xf32>, %k: tensor<?x12x16xf32>) -> tensor<?x8x12xf32> {
  %y = ktn.dot_general %q, %k batch [0] x [0] contract [2] x [2]
      : tensor<?x8x16xf32>, tensor<?x12x16xf32> -> tensor<?x8x12xf32>
  return %y : tensor<?x8x12xf32>
}

// Weights of equal elements stay an operand: a product has two.
// CHECK-LABEL: func @splat_weights(
// CHECK-SAME:    %[[X:.+]]: tensor<4x16xf32>)
// CHECK:         %[[W:.+]] = arith.constant dense<5.000000e-01> : tensor<16x8xf32>
// CHECK:         ins(%[[X]], %[[W]] :
func.func @splat_weights(%x: tensor<4x16xf32>) -> tensor<4x8xf32> {
  %w = ktn.constant dense<0.5> : tensor<16x8xf32>
  %y = ktn.dot_general %x, %w contract [1] x [0] : tensor<4x16xf32>, tensor<16x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// Half precision is summed in f32.
// CHECK-LABEL: func @half(
// CHECK:         outs(%{{.+}} : tensor<4x8xf32>)
// CHECK-COUNT-2: arith.extf %{{.+}} : f16 to f32
// CHECK:         arith.truncf %{{.+}} : f32 to f16
func.func @half(%x: tensor<4x16xf16>, %w: tensor<16x8xf16>) -> tensor<4x8xf16> {
  %y = ktn.dot_general %x, %w contract [1] x [0] : tensor<4x16xf16>, tensor<16x8xf16> -> tensor<4x8xf16>
  return %y : tensor<4x8xf16>
}
