// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=256 vector-registers=16" --canonicalize --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" --canonicalize --split-input-file | FileCheck %s --check-prefix=MANY

#window = affine_map<(h, w, c, kh, kw) -> (h + kh, w + kw, c)>
#taps = affine_map<(h, w, c, kh, kw) -> (kh, kw, c)>
#out = affine_map<(h, w, c, kh, kw) -> (h, w, c)>

// Eight sums, four rows of two. A row has a tap in each turn, down a column and
// then the next one's, and begins a turn behind the row before: both meet the
// same value. What the second column's taps read again is read again.
// CHECK-LABEL: func private @turns(
// CHECK-SAME:    %[[X:[^:]+]]: memref<6x4x8xf32>
// CHECK-COUNT-2: llvm.inline_asm
// CHECK:         vector.load %[[X]][%c0, %c0, %[[FIRST:.+]]]
// CHECK:         vector.load %[[X]][%c0, %c1, %[[FIRST]]]
// CHECK:         vector.load %[[X]][%c1, %c0, %[[FIRST]]]
// CHECK:         vector.load %[[X]][%c1, %c1, %[[FIRST]]]
// CHECK:         vector.load %[[X]][%c2, %c0, %[[FIRST]]]
// CHECK:         vector.load %[[X]][%c2, %c1, %[[FIRST]]]
// CHECK:         vector.load %[[X]][%c0, %c1, %[[SECOND:.+]]]
// CHECK:         vector.load %[[X]][%c3, %c0, %[[FIRST]]]
// CHECK:         vector.load %[[X]][%c0, %c2, %[[SECOND]]]
// CHECK:         vector.load %[[X]][%c3, %c1, %[[FIRST]]]
// CHECK:         return

// With many registers, in the order of memory and once.
// MANY-LABEL:  func private @turns(
// MANY-SAME:     %[[X:[^:]+]]: memref<6x4x8xf32>
// MANY-NOT:      llvm.inline_asm
// MANY-COUNT-24: vector.load %[[X]]
// MANY-NOT:      vector.load %[[X]]
// MANY:          return
func.func private @turns(%x: tensor<6x4x8xf32>, %w: tensor<3x3x8xf32>, %y: tensor<4x2x8xf32>) -> tensor<4x2x8xf32> attributes {ktn.kernel = "depthwise"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%y : tensor<4x2x8xf32>) -> tensor<4x2x8xf32>
  %sum = linalg.generic {indexing_maps = [#window, #taps, #out], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<6x4x8xf32>, tensor<3x3x8xf32>) outs(%start : tensor<4x2x8xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<4x2x8xf32>
  return %sum : tensor<4x2x8xf32>
}

// -----

#window = affine_map<(h, w, c, kh, kw) -> (h + kh, w + kw, c)>
#taps = affine_map<(h, w, c, kh, kw) -> (kh, kw, c)>
#out = affine_map<(h, w, c, kh, kw) -> (h, w, c)>

// Taps in the border are no products: of 72 those remain that are of ten pairs
// of rows and four of columns.
// CHECK-LABEL:    func private @border(
// CHECK-COUNT-40: arith.mulf
// CHECK-NOT:      arith.mulf
// CHECK:          return
// MANY-LABEL:     func private @border(
// MANY-COUNT-40:  arith.mulf
// MANY-NOT:       arith.mulf
// MANY:           return
func.func private @border(%x: tensor<4x2x8xf32>, %w: tensor<3x3x8xf32>, %y: tensor<4x2x8xf32>) -> tensor<4x2x8xf32> attributes {ktn.kernel = "depthwise"} {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[1, 1, 0] high[1, 1, 0] {
  ^bb0(%i: index, %j: index, %c: index):
    tensor.yield %zero : f32
  } : tensor<4x2x8xf32> to tensor<6x4x8xf32>
  %start = linalg.fill ins(%zero : f32) outs(%y : tensor<4x2x8xf32>) -> tensor<4x2x8xf32>
  %sum = linalg.generic {indexing_maps = [#window, #taps, #out], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%padded, %w : tensor<6x4x8xf32>, tensor<3x3x8xf32>) outs(%start : tensor<4x2x8xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<4x2x8xf32>
  return %sum : tensor<4x2x8xf32>
}
