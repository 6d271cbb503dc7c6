// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=256 vector-registers=16" --canonicalize --split-input-file | FileCheck %s

#window = affine_map<(w, c, kw) -> (w + kw, c floordiv 2)>
#taps = affine_map<(w, c, kw) -> (kw, c)>
#out = affine_map<(w, c, kw) -> (w, c)>

// Two windows over each channel: half a vector of channels, each of them twice.
// CHECK-LABEL: func private @two(
// CHECK:         %[[X:.+]] = vector.load %arg0[{{.*}}] : memref<12x24xf32>, vector<4xf32>
// CHECK:         vector.shuffle %[[X]], %[[X]] [0, 0, 1, 1, 2, 2, 3, 3]
// CHECK-NOT:     memref.load
func.func private @two(%x: tensor<12x24xf32>, %w: tensor<5x48xf32>, %y: tensor<8x48xf32>) -> tensor<8x48xf32> attributes {ktn.kernel = "depthwise"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%y : tensor<8x48xf32>) -> tensor<8x48xf32>
  %sum = linalg.generic {indexing_maps = [#window, #taps, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<12x24xf32>, tensor<5x48xf32>) outs(%start : tensor<8x48xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<8x48xf32>
  return %sum : tensor<8x48xf32>
}

// -----

#window = affine_map<(w, c, kw) -> (w + kw, c floordiv 8)>
#taps = affine_map<(w, c, kw) -> (kw, c)>
#out = affine_map<(w, c, kw) -> (w, c)>

// As many as a vector has lanes: one channel for all of them.
// CHECK-LABEL: func private @eight(
// CHECK:         %[[X:.+]] = memref.load %arg0
// CHECK:         vector.broadcast %[[X]] : f32 to vector<8xf32>
// CHECK-NOT:     vector.from_elements
func.func private @eight(%x: tensor<12x6xf32>, %w: tensor<5x48xf32>, %y: tensor<8x48xf32>) -> tensor<8x48xf32> attributes {ktn.kernel = "depthwise"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%y : tensor<8x48xf32>) -> tensor<8x48xf32>
  %sum = linalg.generic {indexing_maps = [#window, #taps, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<12x6xf32>, tensor<5x48xf32>) outs(%start : tensor<8x48xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<8x48xf32>
  return %sum : tensor<8x48xf32>
}

// -----

#window = affine_map<(w, c, kw) -> (w + kw, c floordiv 3)>
#taps = affine_map<(w, c, kw) -> (kw, c)>
#out = affine_map<(w, c, kw) -> (w, c)>

// Three do not go into eight lanes: channels are read one by one.
// CHECK-LABEL: func private @three(
// CHECK:         vector.from_elements {{.*}} : vector<8xf32>
func.func private @three(%x: tensor<12x16xf32>, %w: tensor<5x48xf32>, %y: tensor<8x48xf32>) -> tensor<8x48xf32> attributes {ktn.kernel = "depthwise"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%y : tensor<8x48xf32>) -> tensor<8x48xf32>
  %sum = linalg.generic {indexing_maps = [#window, #taps, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<12x16xf32>, tensor<5x48xf32>) outs(%start : tensor<8x48xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<8x48xf32>
  return %sum : tensor<8x48xf32>
}

// -----

#window = affine_map<(w, c, kw, i) -> (w + kw, (c floordiv 4) * 4 + i)>
#taps = affine_map<(w, c, kw, i) -> (kw, i, c)>
#out = affine_map<(w, c, kw, i) -> (w, c)>

// Groups of four channels, two of them in a vector: both are read, and each
// channel goes to the lanes of its group. Every pixel meets one channel before
// the next, with the few weights of that.
// CHECK-LABEL: func private @groups(
// CHECK-NOT:     memref.load
// CHECK:         vector.shuffle {{.*}} [0, 0, 0, 0, 4, 4, 4, 4] : vector<8xf32>
// CHECK-NOT:     [1, 1, 1, 1, 5, 5, 5, 5]
// CHECK-COUNT-9: vector.shuffle {{.*}} [0, 0, 0, 0, 4, 4, 4, 4] : vector<8xf32>
// CHECK:         vector.shuffle {{.*}} [1, 1, 1, 1, 5, 5, 5, 5] : vector<8xf32>
// CHECK-NOT:     [0, 0, 0, 0, 4, 4, 4, 4]
// CHECK:         vector.shuffle {{.*}} [2, 2, 2, 2, 6, 6, 6, 6] : vector<8xf32>
// CHECK:         vector.shuffle {{.*}} [3, 3, 3, 3, 7, 7, 7, 7] : vector<8xf32>
// CHECK-NOT:     memref.load
func.func private @groups(%x: tensor<10x48xf32>, %w: tensor<3x4x48xf32>, %y: tensor<8x48xf32>) -> tensor<8x48xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%y : tensor<8x48xf32>) -> tensor<8x48xf32>
  %sum = linalg.generic {indexing_maps = [#window, #taps, #out], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<10x48xf32>, tensor<3x4x48xf32>) outs(%start : tensor<8x48xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<8x48xf32>
  return %sum : tensor<8x48xf32>
}

// -----

#window = affine_map<(w, c, kw) -> (w * 3 + kw, c floordiv 4)>
#taps = affine_map<(w, c, kw) -> (kw, c)>
#out = affine_map<(w, c, kw) -> (w, c)>

// One place for two windows over each channel: channels, whose position is a
// quotient, are lanes and not also rows.
// CHECK-LABEL: func private @one_place(
// CHECK:         vector.store {{.*}} : memref<1x8xf32>, vector<8xf32>
// CHECK-NOT:     vector.store
// CHECK:         return
func.func private @one_place(%x: tensor<3x2xf32>, %w: tensor<2x8xf32>, %y: tensor<1x8xf32>) -> tensor<1x8xf32> attributes {ktn.kernel = "depthwise"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%y : tensor<1x8xf32>) -> tensor<1x8xf32>
  %sum = linalg.generic {indexing_maps = [#window, #taps, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<3x2xf32>, tensor<2x8xf32>) outs(%start : tensor<1x8xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x8xf32>
  return %sum : tensor<1x8xf32>
}
