// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 dots=tiles" | FileCheck %s

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// Tiles of sums wait in a square of memory; the steps of the next tiles finish their rows, two in each of 16 steps here.
// What is kept last is finished behind all tiles.
// CHECK-LABEL: func private @products(
// CHECK-DAG:     %[[SQUARE:.+]] = memref.alloca() {{.+}} : memref<32x32xf32>
// CHECK-DAG:     %[[KEPT:.+]] = memref.alloca() {{.+}} : memref<2x5xindex>
// CHECK:         llvm.call_intrinsic "llvm.x86.ldtilecfg"
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             scf.for %[[STEP:.+]] = %c0 to %c16
// CHECK-COUNT-4:       llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK:               %[[SKIPPED:.+]] = memref.load %[[KEPT]]
// CHECK:               %[[WANTED:.+]] = arith.cmpi uge, %{{.+}}, %[[SKIPPED]]
// CHECK:               scf.if %[[WANTED]]
// CHECK:                 vector.load %[[SQUARE]]
// CHECK:                 vector.store
// CHECK:               memref.load %[[KEPT]]
// CHECK:               vector.load %[[SQUARE]]
// CHECK-NOT:         llvm.call_intrinsic
// CHECK:             llvm.call_intrinsic "llvm.x86.tilestored64"
// CHECK:             memref.store %{{.+}}, %[[KEPT]]
// CHECK-NOT:     llvm.call_intrinsic
// CHECK:         scf.for
// CHECK:           memref.load %[[KEPT]]
// CHECK:           vector.load %[[SQUARE]]
// CHECK:         llvm.call_intrinsic "llvm.x86.tilerelease"
func.func private @products(%x: tensor<64x512xbf16>, %w: tensor<512x64xbf16> {ktn.constant}, %out: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<64x512xbf16>, tensor<512x64xbf16>) outs(%start : tensor<64x64xf32>) {
  ^bb0(%a: bf16, %c: bf16, %s: f32):
    %u = arith.extf %a : bf16 to f32
    %v = arith.extf %c : bf16 to f32
    %p = arith.mulf %u, %v : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}
func.func @main(%x: tensor<64x512xbf16>, %w: tensor<512x64xbf16>) -> tensor<64x64xf32> {
  %out = tensor.empty() : tensor<64x64xf32>
  %y = call @products(%x, %w, %out) : (tensor<64x512xbf16>, tensor<512x64xbf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// Weights of 1 MiB that one row reads come in eight parts of the 32 steps, each of which asks for what it reads two steps later.
// CHECK-LABEL: func private @one_row(
// CHECK:         scf.for %[[NUMBER:.+]] = %c0 to %c32 step
// CHECK:           %[[PART:.+]] = arith.remui %[[NUMBER]], %c8
// CHECK:           arith.muli %[[PART]], %c4
// CHECK:           llvm.intr.prefetch
// CHECK:           llvm.call_intrinsic "llvm.x86.tdpbf16ps"
func.func private @one_row(%x: tensor<1x1024xbf16>, %w: tensor<1024x512xbf16> {ktn.constant}, %out: tensor<1x512xf32>) -> tensor<1x512xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x512xf32>) -> tensor<1x512xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x1024xbf16>, tensor<1024x512xbf16>) outs(%start : tensor<1x512xf32>) {
  ^bb0(%a: bf16, %c: bf16, %s: f32):
    %u = arith.extf %a : bf16 to f32
    %v = arith.extf %c : bf16 to f32
    %p = arith.mulf %u, %v : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x512xf32>
  return %y : tensor<1x512xf32>
}
