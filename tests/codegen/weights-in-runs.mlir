// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" --split-input-file | FileCheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// One row: while 32 KiB of weights are read the next 32 KiB are asked for, as
// eight runs side by side.
// CHECK-LABEL: func private @one_row(
// CHECK:         scf.for %{{.+}} = %c0 to %c1003 step %c1 iter_args
// CHECK:           %[[WITHIN:.+]] = arith.remui %{{.+}}, %c8192
// CHECK:           arith.divui %[[WITHIN]], %c16
// CHECK:           %[[EIGHTH:.+]] = arith.remui %{{.+}}, %c8
// CHECK:           arith.muli %[[EIGHTH]], %c64
// CHECK:           memref.prefetch {{.+}}, read, locality<3>, data
// CHECK:           scf.yield
func.func private @one_row(%x: tensor<1x1003xf32>, %w: tensor<1003x768xf32> {ktn.constant}, %out: tensor<1x768xf32>) -> tensor<1x768xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x768xf32>) -> tensor<1x768xf32>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x1003xf32>, tensor<1003x768xf32>) outs(%start : tensor<1x768xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x768xf32>
  return %sum : tensor<1x768xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// A few tiles of rows ask for the next block in eight parts of it.
// CHECK-LABEL: func private @some_rows(
// CHECK:         scf.for %{{.+}} = %c0 to %c768 step %c1 iter_args
// CHECK:           %[[PART:.+]] = arith.remui %{{.+}}, %c8
// CHECK:           arith.muli %[[PART]]
// CHECK:           memref.prefetch {{.+}}, read, locality<2>, data
// CHECK:           scf.yield
func.func private @some_rows(%x: tensor<24x768xf32>, %w: tensor<768x768xf32> {ktn.constant}, %out: tensor<24x768xf32>) -> tensor<24x768xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<24x768xf32>) -> tensor<24x768xf32>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<24x768xf32>, tensor<768x768xf32>) outs(%start : tensor<24x768xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<24x768xf32>
  return %sum : tensor<24x768xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// Many rows need weights so slowly that one run of them is enough.
// CHECK-LABEL: func private @many_rows(
// CHECK-NOT:     arith.remui
// CHECK:         memref.prefetch {{.+}}, read, locality<2>, data
// CHECK-NOT:     arith.remui
// CHECK:         return
func.func private @many_rows(%x: tensor<96x768xf32>, %w: tensor<768x768xf32> {ktn.constant}, %out: tensor<96x768xf32>) -> tensor<96x768xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<96x768xf32>) -> tensor<96x768xf32>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<96x768xf32>, tensor<768x768xf32>) outs(%start : tensor<96x768xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<96x768xf32>
  return %sum : tensor<96x768xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// Of an open number of rows, one tile asks like one row, and many as many do.
// CHECK-LABEL: func private @open_rows(
// CHECK:         %[[FEW:.+]] = arith.cmpi ule, %{{.+}}, %c{{[0-9]+}}
// CHECK:         scf.if %[[FEW]] {
// CHECK:           memref.prefetch {{.+}}, read, locality<3>, data
// CHECK:         } else {
// CHECK-NOT:       locality<3>
// CHECK:           memref.prefetch {{.+}}, read, locality<2>, data
// CHECK-NOT:     locality<3>
// CHECK:         return
func.func private @open_rows(%x: tensor<?x768xf32>, %w: tensor<768x768xf32> {ktn.constant}, %out: tensor<?x768xf32>) -> tensor<?x768xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<?x768xf32>) -> tensor<?x768xf32>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x768xf32>, tensor<768x768xf32>) outs(%start : tensor<?x768xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x768xf32>
  return %sum : tensor<?x768xf32>
}
