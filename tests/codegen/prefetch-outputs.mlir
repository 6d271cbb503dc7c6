// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" --split-input-file | FileCheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>

// Where a large output goes is asked for while the product of its tile is
// computed, a row every few steps, and not again when it is stored.
// CHECK-LABEL: func private @large(
// CHECK:         scf.for %[[STEP:.+]] = %c0 to %[[ASKED:c[0-9]+]] step %c1 iter_args
// CHECK:           %[[TURN:.+]] = arith.shrui %[[STEP]], %c2
// CHECK:           %[[LAST:.+]] = arith.minui %[[TURN]], %c{{[0-9]+}}
// CHECK:           %[[ROW:.+]] = arith.addi %{{.+}}, %[[LAST]]
// CHECK:           memref.prefetch %arg2[%[[ROW]], %{{.+}}], write, locality<3>, data
// CHECK:           scf.yield
// CHECK:         scf.for %{{.+}} = %[[ASKED]] to %c64 step %c1 iter_args
// CHECK-NOT:     write, locality
// CHECK:         scf.for %{{.+}} = %c0 to %c{{[0-9]+}} step %c1 iter_args
func.func private @large(%x: tensor<1024x64xf32>, %w: tensor<64x512xf32> {ktn.constant}, %out: tensor<1024x512xf32>) -> tensor<1024x512xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1024x512xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<1024x512xf32>) -> tensor<1024x512xf32>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1024x64xf32>, tensor<64x512xf32>) outs(%start : tensor<1024x512xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1024x512xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<1024x512xf32>) outs(%out : tensor<1024x512xf32>) {
  ^bb0(%l: f32, %s: f32):
    %t = arith.maximumf %l, %zero : f32
    linalg.yield %t : f32
  } -> tensor<1024x512xf32>
  return %y : tensor<1024x512xf32>
}

// -----

#a = affine_map<(i, m, n, k) -> (i, m, k)>
#b = affine_map<(i, m, n, k) -> (k, n)>
#c = affine_map<(i, m, n, k) -> (i, m, n)>
#id = affine_map<(i, m, n) -> (i, m, n)>

// Nor when the number of images is not known, if one of them is large.
// CHECK-LABEL: func private @images(
// CHECK:         scf.for %{{.+}} = %c0 to %[[ASKED:c[0-9]+]] step %c1 iter_args
// CHECK:           memref.prefetch %arg2[%{{.+}}, %{{.+}}, %{{.+}}], write, locality<3>, data
// CHECK:           scf.yield
// CHECK:         scf.for %{{.+}} = %[[ASKED]] to %c64 step %c1 iter_args
// CHECK-NOT:     write, locality
// CHECK:         scf.for %{{.+}} = %c0 to %c{{[0-9]+}} step %c1 iter_args
func.func private @images(%x: tensor<?x1024x64xf32>, %w: tensor<64x512xf32> {ktn.constant}, %out: tensor<?x1024x512xf32>) -> tensor<?x1024x512xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %images = tensor.dim %x, %c0 : tensor<?x1024x64xf32>
  %e = tensor.empty(%images) : tensor<?x1024x512xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<?x1024x512xf32>) -> tensor<?x1024x512xf32>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x1024x64xf32>, tensor<64x512xf32>) outs(%start : tensor<?x1024x512xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x1024x512xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%sum : tensor<?x1024x512xf32>) outs(%out : tensor<?x1024x512xf32>) {
  ^bb0(%l: f32, %s: f32):
    %t = arith.maximumf %l, %zero : f32
    linalg.yield %t : f32
  } -> tensor<?x1024x512xf32>
  return %y : tensor<?x1024x512xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>

// What the second cache holds needs no asking.
// CHECK-LABEL: func private @small(
// CHECK-NOT:     write, locality
// CHECK:         return
func.func private @small(%x: tensor<512x64xf32>, %w: tensor<64x256xf32> {ktn.constant}, %out: tensor<512x256xf32>) -> tensor<512x256xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x256xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<512x256xf32>) -> tensor<512x256xf32>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<512x64xf32>, tensor<64x256xf32>) outs(%start : tensor<512x256xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<512x256xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<512x256xf32>) outs(%out : tensor<512x256xf32>) {
  ^bb0(%l: f32, %s: f32):
    %t = arith.maximumf %l, %zero : f32
    linalg.yield %t : f32
  } -> tensor<512x256xf32>
  return %y : tensor<512x256xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>

// With fewer steps than rows, those of the next tile are asked for behind it:
// the next columns of the same rows, and behind the last ones the next rows.
// CHECK-LABEL: func private @few_steps(
// CHECK:         scf.for %[[ROW:.+]] = %c0 to %c4092 step %c6
// CHECK:           scf.for %{{.+}} = %c0 to %c2 step %c1
// CHECK-NOT:       write, locality
// CHECK:             scf.yield
// CHECK:           %[[NEXT:.+]] = arith.addi %[[COLUMN:.+]], %c64
// CHECK:           %[[LAST:.+]] = arith.cmpi uge, %[[NEXT]], %c128
// CHECK:           %[[BACK:.+]] = arith.subi %c0, %[[COLUMN]]
// CHECK:           %[[DOWN:.+]] = arith.select %[[LAST]], %c6, %c0
// CHECK:           %[[ALONG:.+]] = arith.select %[[LAST]], %[[BACK]], %c64
// CHECK:           %[[NEXT_ROW:.+]] = arith.addi %[[ROW]], %[[DOWN]]
// CHECK:           %[[NEXT_COLUMN:.+]] = arith.addi %[[COLUMN]], %[[ALONG]]
// CHECK:           memref.prefetch %arg2[%[[NEXT_ROW]], %[[NEXT_COLUMN]]], write, locality<3>, data
// CHECK:         return
func.func private @few_steps(%x: tensor<4096x4xf32>, %w: tensor<4x128xf32> {ktn.constant}, %out: tensor<4096x128xf32>) -> tensor<4096x128xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<4096x128xf32>) -> tensor<4096x128xf32>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4096x4xf32>, tensor<4x128xf32>) outs(%start : tensor<4096x128xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<4096x128xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<4096x128xf32>) outs(%out : tensor<4096x128xf32>) {
  ^bb0(%l: f32, %s: f32):
    %t = arith.maximumf %l, %zero : f32
    linalg.yield %t : f32
  } -> tensor<4096x128xf32>
  return %y : tensor<4096x128xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>

// Rows of 4 KiB share sets of the first cache, with room for 8 of them: tiles
// of few steps, which are bound by where they are stored, have no more, and
// here 6 by 4 vectors.
// CHECK-LABEL: func private @rows_of_4_kib(
// CHECK:         scf.for %{{.+}} = %c0 to %c1080 step %c6
func.func private @rows_of_4_kib(%x: tensor<1080x8xf32>, %w: tensor<8x1024xf32> {ktn.constant}, %out: tensor<1080x1024xf32>) -> tensor<1080x1024xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1080x1024xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<1080x1024xf32>) -> tensor<1080x1024xf32>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1080x8xf32>, tensor<8x1024xf32>) outs(%start : tensor<1080x1024xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1080x1024xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<1080x1024xf32>) outs(%out : tensor<1080x1024xf32>) {
  ^bb0(%l: f32, %s: f32):
    %t = arith.maximumf %l, %zero : f32
    linalg.yield %t : f32
  } -> tensor<1080x1024xf32>
  return %y : tensor<1080x1024xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>

// Less a line, 9 rows by 3 vectors share nothing.
// CHECK-LABEL: func private @rows_of_4_kib_less_a_line(
// CHECK:         scf.for %{{.+}} = %c0 to %c1080 step %c9
func.func private @rows_of_4_kib_less_a_line(%x: tensor<1080x8xf32>, %w: tensor<8x1008xf32> {ktn.constant}, %out: tensor<1080x1008xf32>) -> tensor<1080x1008xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1080x1008xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<1080x1008xf32>) -> tensor<1080x1008xf32>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1080x8xf32>, tensor<8x1008xf32>) outs(%start : tensor<1080x1008xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1080x1008xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<1080x1008xf32>) outs(%out : tensor<1080x1008xf32>) {
  ^bb0(%l: f32, %s: f32):
    %t = arith.maximumf %l, %zero : f32
    linalg.yield %t : f32
  } -> tensor<1080x1008xf32>
  return %y : tensor<1080x1008xf32>
}
