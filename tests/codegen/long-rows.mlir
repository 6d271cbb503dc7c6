// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" --split-input-file | FileCheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// Rows and vectors share loads; long rows are no reason for fewer of them.
// CHECK-LABEL: func private @long_rows(
// CHECK-SAME:    memref<2x768x48xf32>
// CHECK:         scf.for %{{.+}} = %c0 to %c128 step %c8
func.func private @long_rows(%x: tensor<128x768xf32>, %w: tensor<768x96xf32> {ktn.constant}, %out: tensor<128x96xf32>) -> tensor<128x96xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<128x96xf32>) -> tensor<128x96xf32>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<128x768xf32>, tensor<768x96xf32>) outs(%start : tensor<128x96xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<128x96xf32>
  return %sum : tensor<128x96xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// Five vectors of weights along the whole reduction are more than the second
// cache has room for: four, so that the sums never go to memory.
// CHECK-LABEL: func private @whole_sums(
// CHECK-SAME:    memref<16x1024x64xf32>
// CHECK:         scf.for {{.+}} -> (vector<16xf32>,
// CHECK-NOT:     vector.load %arg2
// CHECK:         return
func.func private @whole_sums(%x: tensor<1024x1024xf32>, %w: tensor<1024x1024xf32> {ktn.constant}, %out: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1024x1024xf32>, tensor<1024x1024xf32>) outs(%start : tensor<1024x1024xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1024x1024xf32>
  return %sum : tensor<1024x1024xf32>
}
