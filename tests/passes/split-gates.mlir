// RUN: keratin-opt %s --ktn-form-kernels --canonicalize --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-form-kernels --canonicalize --ktn-emit-tiles="vector-bits=256 vector-registers=16" --split-input-file | FileCheck %s --check-prefix=LOOPS

#rows = affine_map<(b, n, k) -> (b, k)>
#weights = affine_map<(b, n, k) -> (k, n)>
#sums = affine_map<(b, n, k) -> (b, n)>
#id = affine_map<(b, n) -> (b, n)>

// Two gates that are read side by side are an axis of the weights, and what
// follows from them is computed with the product.
// CHECK-LABEL: func.func @step(
// CHECK:         %[[W:.+]] = arith.constant dense_resource<w> : tensor<8x2x20xf32>
// CHECK:         %[[H:.+]] = call @[[STEP:.+]](%{{.+}}, %[[W]], %{{.+}}, %{{.+}}) {{.+}} -> tensor<3x20xf32>
// CHECK-NOT:     call
// CHECK:         return %[[H]]
// CHECK:       func.func private @[[STEP]]({{.+}}: tensor<3x8xf32>, {{.+}}: tensor<8x2x20xf32> {ktn.constant}, {{.+}}: tensor<3x2x20xf32>, {{.+}}: tensor<3x20xf32>)
// Blocks of 16 units hold both gates of each step; the last one is a half and a
// quarter full.
// LOOPS:       func.func private @{{.+}}({{.+}}: memref<3x8xf32>, {{.+}}: memref<{{[0-9]+}}x8x2x{{[0-9]+}}xf32> {{{.*}}ktn.packed = {{.+}}dim = 2
// LOOPS:         scf.for
// LOOPS:           vector.load %{{.+}}x8x2x
// LOOPS:         math.tanh %{{.+}} : vector<8xf32>
// LOOPS:         math.tanh %{{.+}} : vector<4xf32>
func.func @step(%h: tensor<3x8xf32>, %x: tensor<3x40xf32>) -> tensor<3x20xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense_resource<w> : tensor<8x40xf32>
  %e = tensor.empty() : tensor<3x40xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<3x40xf32>) -> tensor<3x40xf32>
  %p = linalg.generic {indexing_maps = [#rows, #weights, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%h, %w : tensor<3x8xf32>, tensor<8x40xf32>) outs(%start : tensor<3x40xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.addf %1, %out : f32
    linalg.yield %2 : f32
  } -> tensor<3x40xf32>
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p, %x : tensor<3x40xf32>, tensor<3x40xf32>) outs(%e : tensor<3x40xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %1 = arith.addf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<3x40xf32>
  %view = tensor.expand_shape %z [[0], [1, 2]] output_shape [3, 2, 20] : tensor<3x40xf32> into tensor<3x2x20xf32>
  %u = tensor.empty() : tensor<3x20xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, n) -> (b, 0, n)>, affine_map<(b, n) -> (b, n + 20)>, #id], iterator_types = ["parallel", "parallel"]}
      ins(%view, %z : tensor<3x2x20xf32>, tensor<3x40xf32>) outs(%u : tensor<3x20xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %1 = math.tanh %b : f32
    %2 = arith.mulf %a, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<3x20xf32>
  return %y : tensor<3x20xf32>
}

// -----

#rows = affine_map<(b, n, k) -> (b, k)>
#weights = affine_map<(b, n, k) -> (k, n)>
#sums = affine_map<(b, n, k) -> (b, n)>
#id = affine_map<(b, n) -> (b, n)>

// A product that is also returned whole has no gates.
// CHECK-LABEL: func.func @whole(
// CHECK:         arith.constant dense_resource<w> : tensor<8x40xf32>
// CHECK-COUNT-2: call
// LOOPS-LABEL: func.func @whole(
func.func @whole(%h: tensor<3x8xf32>) -> (tensor<3x40xf32>, tensor<3x20xf32>) {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense_resource<w> : tensor<8x40xf32>
  %e = tensor.empty() : tensor<3x40xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<3x40xf32>) -> tensor<3x40xf32>
  %p = linalg.generic {indexing_maps = [#rows, #weights, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%h, %w : tensor<3x8xf32>, tensor<8x40xf32>) outs(%start : tensor<3x40xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.addf %1, %out : f32
    linalg.yield %2 : f32
  } -> tensor<3x40xf32>
  %u = tensor.empty() : tensor<3x20xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, n) -> (b, n + 20)>, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<3x40xf32>) outs(%u : tensor<3x20xf32>) {
  ^bb0(%b: f32, %out: f32):
    %1 = math.tanh %b : f32
    linalg.yield %1 : f32
  } -> tensor<3x20xf32>
  return %p, %y : tensor<3x40xf32>, tensor<3x20xf32>
}

{-#
  dialect_resources: {
    builtin: {
      w: "0x0400000000000000"
    }
  }
#-}

// -----

#image = affine_map<(b, y, x, n, i, j, c) -> (b, y + i, x + j, c)>
#taps = affine_map<(b, y, x, n, i, j, c) -> (i, j, c, n)>
#sums = affine_map<(b, y, x, n, i, j, c) -> (b, y, x, n)>
#id = affine_map<(b, y, x, n) -> (b, y, x, n)>

// Windows that overlap may be computed by tiles of the image, with fewer
// multiplications, which have no gates: their halves are read behind them.
// CHECK-LABEL: func.func @windows(
// CHECK:         %[[W:.+]] = arith.constant dense_resource<w> : tensor<3x3x8x32xf32>
// CHECK:         %[[SUMS:.+]] = call @[[CONV:.+]](%{{.+}}, %[[W]], %{{.+}}) {{.+}} -> tensor<1x6x6x32xf32>
// CHECK:         %[[Y:.+]] = call @{{.+}}(%{{.+}}, %[[SUMS]], %{{.+}}) {{.+}} -> tensor<1x6x6x16xf32>
// CHECK:         return %[[Y]]
// CHECK:       func.func private @[[CONV]](
func.func @windows(%x: tensor<1x8x8x8xf32>) -> tensor<1x6x6x16xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense_resource<w> : tensor<3x3x8x32xf32>
  %e = tensor.empty() : tensor<1x6x6x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<1x6x6x32xf32>) -> tensor<1x6x6x32xf32>
  %p = linalg.generic {indexing_maps = [#image, #taps, #sums], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x8x8x8xf32>, tensor<3x3x8x32xf32>) outs(%start : tensor<1x6x6x32xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.addf %1, %out : f32
    linalg.yield %2 : f32
  } -> tensor<1x6x6x32xf32>
  %u = tensor.empty() : tensor<1x6x6x16xf32>
  %view = tensor.expand_shape %p [[0], [1], [2], [3, 4]] output_shape [1, 6, 6, 2, 16] : tensor<1x6x6x32xf32> into tensor<1x6x6x2x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, y, x, n) -> (b, y, x, 0, n)>, affine_map<(b, y, x, n) -> (b, y, x, n + 16)>, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%view, %p : tensor<1x6x6x2x16xf32>, tensor<1x6x6x32xf32>) outs(%u : tensor<1x6x6x16xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %1 = arith.mulf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<1x6x6x16xf32>
  return %y : tensor<1x6x6x16xf32>
}
