// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 dots=vectors" | FileCheck %s

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#at = affine_map<(m, n) -> (m, n)>

// Of 361 rows 20 tiles have 12 and 11 tiles eleven, so that none is computed twice. Where results go is not asked for:
// caches hold them.
// CHECK-LABEL: func private @heights(
// CHECK:         %[[HIGH:.+]] = arith.subi %c31, %c11
// CHECK:           %[[LOW:.+]] = arith.cmpi uge, %{{.+}}, %[[HIGH]]
// CHECK:           scf.if %[[LOW]]
// CHECK:             scf.for {{.+}} = %c0 to %c32
// CHECK-COUNT-22:      llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// CHECK-NOT:           llvm.call_intrinsic
// CHECK:           } else {
// CHECK:             scf.for {{.+}} = %c0 to %c32
// CHECK-COUNT-24:      llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// CHECK-NOT:     memref.prefetch
func.func private @heights(%x: tensor<361x64xbf16>, %w: tensor<64x32xbf16> {ktn.constant}, %out: tensor<361x32xf32>) -> tensor<361x32xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<361x32xf32>) -> tensor<361x32xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<361x64xbf16>, tensor<64x32xbf16>) outs(%start : tensor<361x32xf32>) {
  ^bb0(%a: bf16, %c: bf16, %s: f32):
    %u = arith.extf %a : bf16 to f32
    %v = arith.extf %c : bf16 to f32
    %p = arith.mulf %u, %v : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<361x32xf32>
  return %y : tensor<361x32xf32>
}

// A tile asks for where it writes, and for what is added to its sums, in front of some steps for each of its rows; what is
// left of the steps follows.
// CHECK-LABEL: func private @asking(
// CHECK-SAME:    %[[MORE:[a-z0-9]+]]: memref<1200x512xf32>, %[[OUT:[a-z0-9]+]]: memref<1200x512xf32>)
// CHECK:         scf.for %[[ROW:.+]] = %c0 to %c12
// CHECK-COUNT-2:   memref.prefetch %[[OUT]]{{.+}}, write, locality<3>, data
// CHECK-COUNT-2:   memref.prefetch %[[MORE]]{{.+}}, read, locality<3>, data
// CHECK-NOT:       memref.prefetch
// CHECK:           scf.for %{{.+}} = %c0 to %c2
// CHECK-COUNT-24:    llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// CHECK:         scf.for %{{.+}} = %c24 to %c32
// CHECK-COUNT-24:  llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// CHECK-NOT:     llvm.call_intrinsic
func.func private @asking(%x: tensor<1200x64xbf16>, %w: tensor<64x512xbf16> {ktn.constant}, %more: tensor<1200x512xf32>, %out: tensor<1200x512xf32>) -> tensor<1200x512xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1200x512xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<1200x512xf32>) -> tensor<1200x512xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1200x64xbf16>, tensor<64x512xbf16>) outs(%start : tensor<1200x512xf32>) {
  ^bb0(%a: bf16, %c: bf16, %s: f32):
    %u = arith.extf %a : bf16 to f32
    %v = arith.extf %c : bf16 to f32
    %p = arith.mulf %u, %v : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1200x512xf32>
  %y = linalg.generic {indexing_maps = [#at, #at, #at], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %more : tensor<1200x512xf32>, tensor<1200x512xf32>) outs(%out : tensor<1200x512xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %t = arith.addf %a, %c : f32
    linalg.yield %t : f32
  } -> tensor<1200x512xf32>
  return %y : tensor<1200x512xf32>
}

// Rows of steps of which each has as many as there are samples are one run.
// CHECK-LABEL: func private @open(
// CHECK-SAME:    attributes {ktn.kernel = "dots"}
// CHECK:         %[[ROWS:.+]] = arith.muli %{{.+}}, %c50
// CHECK:         %[[MANY:.+]] = arith.cmpi uge, %[[ROWS]], %c12
// CHECK:         scf.if %[[MANY]]
func.func private @open(%x: tensor<50x?x64xbf16>, %w: tensor<64x32xbf16> {ktn.constant}, %out: tensor<50x?x32xf32>) -> tensor<50x?x32xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<50x?x32xf32>) -> tensor<50x?x32xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(t, m, n, k) -> (t, m, k)>, affine_map<(t, m, n, k) -> (k, n)>, affine_map<(t, m, n, k) -> (t, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<50x?x64xbf16>, tensor<64x32xbf16>) outs(%start : tensor<50x?x32xf32>) {
  ^bb0(%a: bf16, %c: bf16, %s: f32):
    %u = arith.extf %a : bf16 to f32
    %v = arith.extf %c : bf16 to f32
    %p = arith.mulf %u, %v : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<50x?x32xf32>
  return %y : tensor<50x?x32xf32>
}
