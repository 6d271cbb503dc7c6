// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" --split-input-file | FileCheck %s

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// Packed weights of 16 bits that many rows read are widened once, block by block: the first tile of rows does it as it
// reads them, and leaves them in a panel for the other tiles.
// CHECK-LABEL: func private @many(
// CHECK-SAME:    %[[W:[a-z0-9]+]]: memref<2x64x48xf16> {ktn.constant, ktn.packed = {block = 48 : i64, dim = 1 : i64}
// CHECK:         %[[PANEL:.+]] = memref.alloca() {{.+}} : memref<1x64x48xf32>
// CHECK:         scf.for %[[BLOCK:.+]] =
// CHECK:           scf.for
// CHECK:             %[[HALF:.+]] = vector.load %[[W]][%[[BLOCK]], {{.+}}] : memref<2x64x48xf16>, vector<16xf16>
// CHECK:             %[[WIDE:.+]] = arith.extf %[[HALF]] : vector<16xf16> to vector<16xf32>
// CHECK:             vector.store %[[WIDE]], %[[PANEL]]
// CHECK:             arith.mulf
// CHECK:             scf.yield
// CHECK:           vector.store
// CHECK:           scf.for
// CHECK-NOT:         extf
// CHECK:             vector.load %[[PANEL]]
// CHECK-NOT:         extf
// CHECK:         return
func.func private @many(%x: tensor<80x64xf32>, %w: tensor<64x96xf16> {ktn.constant}, %out: tensor<80x96xf32>) -> tensor<80x96xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<80x96xf32>) -> tensor<80x96xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<80x64xf32>, tensor<64x96xf16>) outs(%start : tensor<80x96xf32>) {
  ^bb0(%a: f32, %c: f16, %s: f32):
    %v = arith.extf %c : f16 to f32
    %p = arith.mulf %a, %v : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<80x96xf32>
  return %y : tensor<80x96xf32>
}
func.func @main(%x: tensor<80x64xf32>, %w: tensor<64x96xf16>) -> tensor<80x96xf32> {
  %out = tensor.empty() : tensor<80x96xf32>
  %y = call @many(%x, %w, %out) : (tensor<80x64xf32>, tensor<64x96xf16>, tensor<80x96xf32>) -> tensor<80x96xf32>
  return %y : tensor<80x96xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// Few rows, or who knows how many, widen what they read.
// CHECK-LABEL: func private @few(
// CHECK-NOT:     memref.alloca
// CHECK:         vector.load {{.+}} vector<16xf16>
// CHECK-NOT:     vector.store {{.+}} memref<{{.+}}>, vector<16xf32>
// CHECK:         arith.mulf
func.func private @few(%x: tensor<?x64xf32>, %w: tensor<64x64xf16> {ktn.constant}, %out: tensor<?x64xf32>) -> tensor<?x64xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<?x64xf32>) -> tensor<?x64xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x64xf32>, tensor<64x64xf16>) outs(%start : tensor<?x64xf32>) {
  ^bb0(%a: f32, %c: f16, %s: f32):
    %v = arith.extf %c : f16 to f32
    %p = arith.mulf %a, %v : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
func.func @main(%x: tensor<?x64xf32>, %w: tensor<64x64xf16>) -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x64xf32>
  %out = tensor.empty(%n) : tensor<?x64xf32>
  %y = call @few(%x, %w, %out) : (tensor<?x64xf32>, tensor<64x64xf16>, tensor<?x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

#x = affine_map<(h, m, n, k) -> (m, k)>
#w = affine_map<(h, m, n, k) -> (k, h, n)>
#y = affine_map<(h, m, n, k) -> (h, m, n)>

// Weights of several heads: the panel has those of one.
// CHECK-LABEL: func private @heads(
// CHECK-SAME:    %[[W:[a-z0-9]+]]: memref<4x1x64x32xf16>
// CHECK:         %[[PANEL:.+]] = memref.alloca() {{.+}} : memref<1x64x1x32xf32>
// CHECK:         scf.for %[[HEAD:.+]] = %c0 to %c4
// CHECK:           %[[HALF:.+]] = vector.load %[[W]][%[[HEAD]], {{.+}}] : memref<4x1x64x32xf16>, vector<16xf16>
// CHECK:           %[[WIDE:.+]] = arith.extf %[[HALF]]
// CHECK:           vector.store %[[WIDE]], %[[PANEL]]
// CHECK:           scf.yield
// CHECK-NOT:       extf
// CHECK:           vector.load %[[PANEL]]
// CHECK-NOT:       extf
// CHECK:         return
func.func private @heads(%x: tensor<80x64xf32>, %w: tensor<64x4x32xf16> {ktn.constant}, %out: tensor<4x80x32xf32>) -> tensor<4x80x32xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<4x80x32xf32>) -> tensor<4x80x32xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<80x64xf32>, tensor<64x4x32xf16>) outs(%start : tensor<4x80x32xf32>) {
  ^bb0(%a: f32, %c: f16, %s: f32):
    %v = arith.extf %c : f16 to f32
    %p = arith.mulf %a, %v : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<4x80x32xf32>
  return %y : tensor<4x80x32xf32>
}
func.func @main(%x: tensor<80x64xf32>, %w: tensor<64x4x32xf16>) -> tensor<4x80x32xf32> {
  %out = tensor.empty() : tensor<4x80x32xf32>
  %y = call @heads(%x, %w, %out) : (tensor<80x64xf32>, tensor<64x4x32xf16>, tensor<4x80x32xf32>) -> tensor<4x80x32xf32>
  return %y : tensor<4x80x32xf32>
}
