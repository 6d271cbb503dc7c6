// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 winograd=auto" --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 winograd=auto half-units" --split-input-file | FileCheck %s --check-prefix=HALVES

#x = affine_map<(n, h, w, k, r, s, c) -> (n, h + r, w + s, c)>
#w = affine_map<(n, h, w, k, r, s, c) -> (r, s, c, k)>
#y = affine_map<(n, h, w, k, r, s, c) -> (n, h, w, k)>

func.func private @many_weights() {
  %weights = arith.constant dense_resource<many> : tensor<1048577xf32>
  return
}

// The weights of F(4 x 4, 3 x 3) are 9.4 MB here, those of F(2 x 2, 3 x 3) 4.2.
// They hide behind the products where those take twice as long.
// CHECK-LABEL: func private @some_tiles(
// CHECK-SAME:    ktn.kernel = "winograd2"
// HALVES-LABEL: func private @some_tiles(
// HALVES-SAME:   ktn.kernel = "winograd4"
func.func private @some_tiles(%x: tensor<1x16x16x256xf32>, %w: tensor<3x3x256x256xf32> {ktn.constant}, %out: tensor<1x14x14x256xf32>) -> tensor<1x14x14x256xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x14x14x256xf32>) -> tensor<1x14x14x256xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x16x16x256xf32>, tensor<3x3x256x256xf32>) outs(%start : tensor<1x14x14x256xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %product = arith.mulf %a, %c : f32
    %total = arith.addf %product, %s : f32
    linalg.yield %total : f32
  } -> tensor<1x14x14x256xf32>
  return %sum : tensor<1x14x14x256xf32>
}

// For the four tiles of 7 x 7 pixels they do not.
// CHECK-LABEL: func private @few_tiles(
// CHECK-SAME:    ktn.kernel = "winograd2"
// HALVES-LABEL: func private @few_tiles(
// HALVES-SAME:   ktn.kernel = "winograd2"
func.func private @few_tiles(%x: tensor<1x9x9x512xf32>, %w: tensor<3x3x512x512xf32> {ktn.constant}, %out: tensor<1x7x7x512xf32>) -> tensor<1x7x7x512xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x7x7x512xf32>) -> tensor<1x7x7x512xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x9x9x512xf32>, tensor<3x3x512x512xf32>) outs(%start : tensor<1x7x7x512xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %product = arith.mulf %a, %c : f32
    %total = arith.addf %product, %s : f32
    linalg.yield %total : f32
  } -> tensor<1x7x7x512xf32>
  return %sum : tensor<1x7x7x512xf32>
}

// -----

#x = affine_map<(n, h, w, k, r, s, c) -> (n, h + r, w + s, c)>
#w = affine_map<(n, h, w, k, r, s, c) -> (r, s, c, k)>
#y = affine_map<(n, h, w, k, r, s, c) -> (n, h, w, k)>

// The second cache has all weights of the module: the 295 KB of F(4 x 4, 3 x 3)
// take less time than the products that it saves.
// CHECK-LABEL: func private @few_weights(
// CHECK-SAME:    ktn.kernel = "winograd4"
func.func private @few_weights(%x: tensor<1x12x12x32xf32>, %w: tensor<3x3x32x64xf32> {ktn.constant}, %out: tensor<1x10x10x64xf32>) -> tensor<1x10x10x64xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x10x10x64xf32>) -> tensor<1x10x10x64xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x12x12x32xf32>, tensor<3x3x32x64xf32>) outs(%start : tensor<1x10x10x64xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %product = arith.mulf %a, %c : f32
    %total = arith.addf %product, %s : f32
    linalg.yield %total : f32
  } -> tensor<1x10x10x64xf32>
  return %sum : tensor<1x10x10x64xf32>
}

// -----

#x = affine_map<(n, h, w, k, r, s, c) -> (n, h + r, w + s, c)>
#w = affine_map<(n, h, w, k, r, s, c) -> (r, s, c, k)>
#y = affine_map<(n, h, w, k, r, s, c) -> (n, h, w, k)>

// From memory they take longer.
// CHECK-LABEL: func private @far_weights(
// CHECK-SAME:    ktn.kernel = "winograd2"
func.func private @far_weights(%x: tensor<1x12x12x32xf32>, %w: tensor<3x3x32x64xf32> {ktn.constant}, %out: tensor<1x10x10x64xf32>) -> tensor<1x10x10x64xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x10x10x64xf32>) -> tensor<1x10x10x64xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x12x12x32xf32>, tensor<3x3x32x64xf32>) outs(%start : tensor<1x10x10x64xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %product = arith.mulf %a, %c : f32
    %total = arith.addf %product, %s : f32
    linalg.yield %total : f32
  } -> tensor<1x10x10x64xf32>
  return %sum : tensor<1x10x10x64xf32>
}

func.func private @weights_of_others() {
  %weights = arith.constant dense_resource<many> : tensor<1048577xf32>
  return
}

// -----

#x = affine_map<(n, w, k, s, c) -> (n, w + s, c)>
#apart = affine_map<(n, w, k, s, c) -> (n, w + s * 8, c)>
#by_two = affine_map<(n, w, k, s, c) -> (n, w * 2 + s, c)>
#w = affine_map<(n, w, k, s, c) -> (s, c, k)>
#y = affine_map<(n, w, k, s, c) -> (n, w, k)>

// Of windows with one axis: five taps, five that are apart, seven and four that
// move by two. Of three that do one neighbour has a single one.
// CHECK-LABEL: func private @line(
// CHECK-SAME:    ktn.kernel = "winograd8"
// CHECK-LABEL: func private @apart(
// CHECK-SAME:    ktn.kernel = "winograd8"
// CHECK-LABEL: func private @by_two(
// CHECK-SAME:    ktn.kernel = "winograd8"
// CHECK-LABEL: func private @four_taps_by_two(
// CHECK-SAME:    ktn.kernel = "winograd4"
// CHECK-LABEL: func private @three_taps_by_two(
// CHECK-SAME:    ktn.kernel = "conv"
func.func private @line(%x: tensor<1x204x64xf32>, %w: tensor<5x64x64xf32> {ktn.constant}, %out: tensor<1x200x64xf32>) -> tensor<1x200x64xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x200x64xf32>) -> tensor<1x200x64xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x204x64xf32>, tensor<5x64x64xf32>) outs(%start : tensor<1x200x64xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %product = arith.mulf %a, %c : f32
    %total = arith.addf %product, %s : f32
    linalg.yield %total : f32
  } -> tensor<1x200x64xf32>
  return %sum : tensor<1x200x64xf32>
}

func.func private @apart(%x: tensor<1x224x64xf32>, %w: tensor<5x64x64xf32> {ktn.constant}, %out: tensor<1x192x64xf32>) -> tensor<1x192x64xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x192x64xf32>) -> tensor<1x192x64xf32>
  %sum = linalg.generic {indexing_maps = [#apart, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x224x64xf32>, tensor<5x64x64xf32>) outs(%start : tensor<1x192x64xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %product = arith.mulf %a, %c : f32
    %total = arith.addf %product, %s : f32
    linalg.yield %total : f32
  } -> tensor<1x192x64xf32>
  return %sum : tensor<1x192x64xf32>
}

func.func private @by_two(%x: tensor<1x405x64xf32>, %w: tensor<7x64x64xf32> {ktn.constant}, %out: tensor<1x200x64xf32>) -> tensor<1x200x64xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x200x64xf32>) -> tensor<1x200x64xf32>
  %sum = linalg.generic {indexing_maps = [#by_two, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x405x64xf32>, tensor<7x64x64xf32>) outs(%start : tensor<1x200x64xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %product = arith.mulf %a, %c : f32
    %total = arith.addf %product, %s : f32
    linalg.yield %total : f32
  } -> tensor<1x200x64xf32>
  return %sum : tensor<1x200x64xf32>
}

func.func private @four_taps_by_two(%x: tensor<1x402x64xf32>, %w: tensor<4x64x64xf32> {ktn.constant}, %out: tensor<1x200x64xf32>) -> tensor<1x200x64xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x200x64xf32>) -> tensor<1x200x64xf32>
  %sum = linalg.generic {indexing_maps = [#by_two, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x402x64xf32>, tensor<4x64x64xf32>) outs(%start : tensor<1x200x64xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %product = arith.mulf %a, %c : f32
    %total = arith.addf %product, %s : f32
    linalg.yield %total : f32
  } -> tensor<1x200x64xf32>
  return %sum : tensor<1x200x64xf32>
}

func.func private @three_taps_by_two(%x: tensor<1x401x64xf32>, %w: tensor<3x64x64xf32> {ktn.constant}, %out: tensor<1x200x64xf32>) -> tensor<1x200x64xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x200x64xf32>) -> tensor<1x200x64xf32>
  %sum = linalg.generic {indexing_maps = [#by_two, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x401x64xf32>, tensor<3x64x64xf32>) outs(%start : tensor<1x200x64xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %product = arith.mulf %a, %c : f32
    %total = arith.addf %product, %s : f32
    linalg.yield %total : f32
  } -> tensor<1x200x64xf32>
  return %sum : tensor<1x200x64xf32>
}

// -----

#x = affine_map<(n, h, w, k, r, s, c) -> (n, h + r, w + s, c)>
#w = affine_map<(n, h, w, k, r, s, c) -> (r, s, c, k)>
#y = affine_map<(n, h, w, k, r, s, c) -> (n, h, w, k)>

// Five and four taps along two axes are tiles of eight inputs, two are tiles of
// four, and three never more than six.
// CHECK-LABEL: func private @five_taps(
// CHECK-SAME:    ktn.kernel = "winograd8"
// CHECK-LABEL: func private @four_taps(
// CHECK-SAME:    ktn.kernel = "winograd8"
// CHECK-LABEL: func private @three_taps(
// CHECK-SAME:    ktn.kernel = "winograd4"
// CHECK-LABEL: func private @two_taps(
// CHECK-SAME:    ktn.kernel = "winograd2"
func.func private @five_taps(%x: tensor<1x32x32x64xf32>, %w: tensor<5x5x64x64xf32> {ktn.constant}, %out: tensor<1x28x28x64xf32>) -> tensor<1x28x28x64xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x28x28x64xf32>) -> tensor<1x28x28x64xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x32x32x64xf32>, tensor<5x5x64x64xf32>) outs(%start : tensor<1x28x28x64xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %product = arith.mulf %a, %c : f32
    %total = arith.addf %product, %s : f32
    linalg.yield %total : f32
  } -> tensor<1x28x28x64xf32>
  return %sum : tensor<1x28x28x64xf32>
}

func.func private @four_taps(%x: tensor<1x33x33x64xf32>, %w: tensor<4x4x64x64xf32> {ktn.constant}, %out: tensor<1x30x30x64xf32>) -> tensor<1x30x30x64xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x30x30x64xf32>) -> tensor<1x30x30x64xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x33x33x64xf32>, tensor<4x4x64x64xf32>) outs(%start : tensor<1x30x30x64xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %product = arith.mulf %a, %c : f32
    %total = arith.addf %product, %s : f32
    linalg.yield %total : f32
  } -> tensor<1x30x30x64xf32>
  return %sum : tensor<1x30x30x64xf32>
}

func.func private @three_taps(%x: tensor<1x98x98x64xf32>, %w: tensor<3x3x64x64xf32> {ktn.constant}, %out: tensor<1x96x96x64xf32>) -> tensor<1x96x96x64xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x96x96x64xf32>) -> tensor<1x96x96x64xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x98x98x64xf32>, tensor<3x3x64x64xf32>) outs(%start : tensor<1x96x96x64xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %product = arith.mulf %a, %c : f32
    %total = arith.addf %product, %s : f32
    linalg.yield %total : f32
  } -> tensor<1x96x96x64xf32>
  return %sum : tensor<1x96x96x64xf32>
}

func.func private @two_taps(%x: tensor<1x34x34x64xf32>, %w: tensor<2x2x64x64xf32> {ktn.constant}, %out: tensor<1x33x33x64xf32>) -> tensor<1x33x33x64xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x33x33x64xf32>) -> tensor<1x33x33x64xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x34x34x64xf32>, tensor<2x2x64x64xf32>) outs(%start : tensor<1x33x33x64xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %product = arith.mulf %a, %c : f32
    %total = arith.addf %product, %s : f32
    linalg.yield %total : f32
  } -> tensor<1x33x33x64xf32>
  return %sum : tensor<1x33x33x64xf32>
}
