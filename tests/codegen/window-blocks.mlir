// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" --canonicalize --split-input-file | FileCheck %s

#window = affine_map<(h, w, c, kh, kw) -> (h + kh, w + kw, c)>
#taps = affine_map<(h, w, c, kh, kw) -> (kh, kw, c)>
#out = affine_map<(h, w, c, kh, kw) -> (h, w, c)>

// Of 42 vectors of channels the first cache holds what a tile of 7 by 2 pixels
// reads and writes for 6, so that its neighbour finds the columns that they
// share, and the weights: 7 blocks of 6 vectors in each row of tiles.
// CHECK-LABEL: func private @many(
// CHECK:         scf.for %{{.+}} = %c0 to %c14 step %c7
// CHECK:           scf.for %[[C:.+]] = %c0 to %c672 step %c96
// CHECK:             %[[NEXT:.+]] = arith.addi %[[C]], %c96
// CHECK:             %[[END:.+]] = arith.minui %[[NEXT]], %c672
// CHECK:             scf.for %{{.+}} = %c0 to %c14 step %c2
// CHECK:               %[[FIRST:.+]] = arith.divui %[[C]], %c16
// CHECK:               %[[ALL:.+]] = arith.ceildivui %[[END]], %c16
// CHECK:               %[[LAST:.+]] = arith.minui %[[ALL]], %c42
// CHECK:               scf.for %{{.+}} = %[[FIRST]] to %[[LAST]] step %c1
// CHECK-COUNT-14:        vector.store

func.func private @many(%x: tensor<18x18x672xf32>, %w: tensor<5x5x672xf32>, %y: tensor<14x14x672xf32>) -> tensor<14x14x672xf32> attributes {ktn.kernel = "depthwise"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%y : tensor<14x14x672xf32>) -> tensor<14x14x672xf32>
  %sum = linalg.generic {indexing_maps = [#window, #taps, #out], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<18x18x672xf32>, tensor<5x5x672xf32>) outs(%start : tensor<14x14x672xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<14x14x672xf32>
  return %sum : tensor<14x14x672xf32>
}

// -----

#window = affine_map<(h, w, c, kh, kw) -> (h + kh, w + kw, c)>
#taps = affine_map<(h, w, c, kh, kw) -> (kh, kw, c)>
#out = affine_map<(h, w, c, kh, kw) -> (h, w, c)>

// Of a large image long runs matter more, and few channels are one block.
// CHECK-LABEL: func private @large(
// CHECK-NOT:     arith.ceildivui
// CHECK:         return
func.func private @large(%x: tensor<58x58x144xf32>, %w: tensor<3x3x144xf32>, %y: tensor<56x56x144xf32>) -> tensor<56x56x144xf32> attributes {ktn.kernel = "depthwise"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%y : tensor<56x56x144xf32>) -> tensor<56x56x144xf32>
  %sum = linalg.generic {indexing_maps = [#window, #taps, #out], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<58x58x144xf32>, tensor<3x3x144xf32>) outs(%start : tensor<56x56x144xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<56x56x144xf32>
  return %sum : tensor<56x56x144xf32>
}

// -----

#window = affine_map<(h, w, c, kh, kw) -> (h + kh, w + kw, c)>
#taps = affine_map<(h, w, c, kh, kw) -> (kh, kw, c)>
#out = affine_map<(h, w, c, kh, kw) -> (h, w, c)>

// How far in front of its place a row is read follows from a few tiles, of
// which a tall image has very many. The last one reads rows of 384 bytes to the
// end, and writes rows of 256 from row 99999996 on.
// CHECK-LABEL: func private @tall(
// CHECK-SAME:    memref<100000002x6x16xf32> {ktn.behind = 12800001792 : i64}
// CHECK:         scf.for %{{.+}} step %c4
func.func private @tall(%x: tensor<100000002x6x16xf32>, %w: tensor<3x3x16xf32>, %y: tensor<100000000x4x16xf32>) -> tensor<100000000x4x16xf32> attributes {ktn.kernel = "depthwise"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%y : tensor<100000000x4x16xf32>) -> tensor<100000000x4x16xf32>
  %sum = linalg.generic {indexing_maps = [#window, #taps, #out], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<100000002x6x16xf32>, tensor<3x3x16xf32>) outs(%start : tensor<100000000x4x16xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<100000000x4x16xf32>
  return %sum : tensor<100000000x4x16xf32>
}
