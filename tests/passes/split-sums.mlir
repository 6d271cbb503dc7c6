// RUN: keratin-opt %s --ktn-split-sums --split-input-file | FileCheck %s

#x = affine_map<(c, n, h, w) -> (n, h, w, c)>
#y = affine_map<(c, n, h, w) -> (c)>

// Of each image first, then of all of them.
// CHECK-DAG:   #[[IMAGE:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>
// CHECK-DAG:   #[[OF_IMAGE:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1)>
// CHECK-DAG:   #[[PART:.+]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-DAG:   #[[ALL:.+]] = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func @channels(
// CHECK-SAME:    %[[X:.+]]: tensor<32x16x16x24xf32>
// CHECK:         linalg.fill {{.+}} -> tensor<24xf32>
// CHECK:         %[[ZERO:.+]] = linalg.fill {{.+}} -> tensor<32x24xf32>
// CHECK:         %[[PARTS:.+]] = linalg.generic {indexing_maps = [#[[IMAGE]], #[[OF_IMAGE]]], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%[[X]] : {{.+}}) outs(%[[ZERO]] : tensor<32x24xf32>)
// CHECK:           arith.addf
// CHECK:         %[[SUM:.+]] = linalg.generic {indexing_maps = [#[[PART]], #[[ALL]]], iterator_types = ["parallel", "reduction"]} ins(%[[PARTS]] : tensor<32x24xf32>)
// CHECK:           arith.addf
// CHECK:         return %[[SUM]]
func.func @channels(%x: tensor<32x16x16x24xf32>) -> tensor<24xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<24xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<24xf32>) -> tensor<24xf32>
  %y = linalg.generic {indexing_maps = [#x, #y], iterator_types = ["parallel", "reduction", "reduction", "reduction"]}
      ins(%x : tensor<32x16x16x24xf32>) outs(%f : tensor<24xf32>) {
  ^bb0(%a: f32, %s: f32):
    %t = arith.addf %a, %s : f32
    linalg.yield %t : f32
  } -> tensor<24xf32>
  return %y : tensor<24xf32>
}

// Two images are too few to be all groups: their rows are.
// CHECK-LABEL: func @rows(
// CHECK:         linalg.generic {{.+}} outs({{.+}} : tensor<2x64x24xf32>)
// CHECK:         linalg.generic {{.+}} ins({{.+}} : tensor<2x64x24xf32>) outs({{.+}} : tensor<24xf32>)
func.func @rows(%x: tensor<2x64x64x24xf32>) -> tensor<24xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<24xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<24xf32>) -> tensor<24xf32>
  %y = linalg.generic {indexing_maps = [#x, #y], iterator_types = ["parallel", "reduction", "reduction", "reduction"]}
      ins(%x : tensor<2x64x64x24xf32>) outs(%f : tensor<24xf32>) {
  ^bb0(%a: f32, %s: f32):
    %t = arith.addf %s, %a : f32
    linalg.yield %t : f32
  } -> tensor<24xf32>
  return %y : tensor<24xf32>
}

// -----

#x = affine_map<(c, n, h, w) -> (n, h, w, c)>
#y = affine_map<(c, n, h, w) -> (c)>
#r = affine_map<(c, r) -> (c, r)>
#s = affine_map<(c, r) -> (c)>

// Not where threads have enough to share as it is, little is added up, vectors
// go along the sum, or something else than a sum is wanted.
// CHECK-LABEL: func @whole(
// CHECK-COUNT-4: linalg.generic
// CHECK-NOT:     linalg.generic
func.func @whole(%many: tensor<8x32x32x2048xf32>, %few: tensor<8x8x8x24xf32>, %rows: tensor<16x4096xf32>, %x: tensor<32x16x16x24xf32>) -> (tensor<2048xf32>, tensor<24xf32>, tensor<16xf32>, tensor<24xf32>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<2048xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<2048xf32>) -> tensor<2048xf32>
  %y0 = linalg.generic {indexing_maps = [#x, #y], iterator_types = ["parallel", "reduction", "reduction", "reduction"]}
      ins(%many : tensor<8x32x32x2048xf32>) outs(%f0 : tensor<2048xf32>) {
  ^bb0(%a: f32, %s: f32):
    %t = arith.addf %a, %s : f32
    linalg.yield %t : f32
  } -> tensor<2048xf32>
  %e1 = tensor.empty() : tensor<24xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<24xf32>) -> tensor<24xf32>
  %y1 = linalg.generic {indexing_maps = [#x, #y], iterator_types = ["parallel", "reduction", "reduction", "reduction"]}
      ins(%few : tensor<8x8x8x24xf32>) outs(%f1 : tensor<24xf32>) {
  ^bb0(%a: f32, %s: f32):
    %t = arith.addf %a, %s : f32
    linalg.yield %t : f32
  } -> tensor<24xf32>
  %e2 = tensor.empty() : tensor<16xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<16xf32>) -> tensor<16xf32>
  %y2 = linalg.generic {indexing_maps = [#r, #s], iterator_types = ["parallel", "reduction"]}
      ins(%rows : tensor<16x4096xf32>) outs(%f2 : tensor<16xf32>) {
  ^bb0(%a: f32, %s: f32):
    %t = arith.addf %a, %s : f32
    linalg.yield %t : f32
  } -> tensor<16xf32>
  %y3 = linalg.generic {indexing_maps = [#x, #y], iterator_types = ["parallel", "reduction", "reduction", "reduction"]}
      ins(%x : tensor<32x16x16x24xf32>) outs(%f1 : tensor<24xf32>) {
  ^bb0(%a: f32, %s: f32):
    %t = arith.maximumf %a, %s : f32
    linalg.yield %t : f32
  } -> tensor<24xf32>
  return %y0, %y1, %y2, %y3 : tensor<2048xf32>, tensor<24xf32>, tensor<16xf32>, tensor<24xf32>
}
