// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=256 vector-registers=16" --split-input-file | FileCheck %s --check-prefix=AVX2

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// One row reads four packed blocks side by side: runs of memory that are fetched
// ahead each for itself. Nothing is asked for.
// CHECK-LABEL: func private @one_row(
// CHECK-SAME:    memref<48x1003x16xf32>
// CHECK:         scf.for %{{.+}} = %c0 to %c12 step %c1
// CHECK:           %[[FIRST:.+]] = arith.muli %{{.+}}, %c4
// CHECK:           scf.for %[[K:.+]] = %c0 to %c1003 step %c1 iter_args
// CHECK-NOT:         memref.prefetch
// CHECK:             vector.load %{{.+}}[%[[FIRST]], %[[K]], %c0]
// CHECK:             %[[SECOND:.+]] = arith.addi %[[FIRST]], %c1
// CHECK:             vector.load %{{.+}}[%[[SECOND]], %[[K]], %c0]
// CHECK:             scf.yield
//
// With eight lanes two vectors are a line of each block.
// AVX2-LABEL: func private @one_row(
// AVX2-SAME:    memref<48x1003x16xf32>
// AVX2:         iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
// AVX2:           vector.load %{{.+}}[%[[FIRST:.+]], %[[K:.+]], %c0]
// AVX2:           vector.load %{{.+}}[%[[FIRST]], %[[K]], %c8]
// AVX2:           %[[SECOND:.+]] = arith.addi %[[FIRST]], %c1
// AVX2:           vector.load %{{.+}}[%[[SECOND]], %[[K]], %c0]
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

// Where all weights are more than 32 MiB they come from memory: each line is
// asked for 1.5 KiB before it is read, but not behind the last one.
// CHECK-LABEL: func private @one_row_of_many(
// CHECK-SAME:    memref<256x2304x16xf32>
// CHECK:         %[[FLAT:.+]] = memref.collapse_shape {{.+}} into memref<9437184xf32>
// CHECK:           scf.for %{{.+}} = %c0 to %c2304 step %c1 iter_args
// CHECK:             %[[AHEAD:.+]] = arith.addi %{{.+}}, %c384
// CHECK:             %[[PLACE:.+]] = arith.minui %[[AHEAD]], %c9437183
// CHECK:             memref.prefetch %[[FLAT]][%[[PLACE]]], read, locality<2>, data
// CHECK-COUNT-3:     memref.prefetch
// CHECK-NOT:         memref.prefetch
// CHECK:             scf.yield
// With vectors of 256 bits they come as soon without.
// AVX2-LABEL: func private @one_row_of_many(
// AVX2-NOT:     memref.prefetch
// AVX2:         scf.yield
func.func @model(%x: tensor<1x2304xf32>) -> tensor<1x4096xf32> {
  %w = arith.constant dense_resource<w> : tensor<2304x4096xf32>
  %out = tensor.empty() : tensor<1x4096xf32>
  %y = call @one_row_of_many(%x, %w, %out) : (tensor<1x2304xf32>, tensor<2304x4096xf32>, tensor<1x4096xf32>) -> tensor<1x4096xf32>
  return %y : tensor<1x4096xf32>
}
func.func private @one_row_of_many(%x: tensor<1x2304xf32>, %w: tensor<2304x4096xf32> {ktn.constant}, %out: tensor<1x4096xf32>) -> tensor<1x4096xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x4096xf32>) -> tensor<1x4096xf32>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x2304xf32>, tensor<2304x4096xf32>) outs(%start : tensor<1x4096xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x4096xf32>
  return %sum : tensor<1x4096xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// Of weights of 16 bits two vectors of eight lanes are half a line: the sums of
// four whole ones have no room in 16 registers. With 16 lanes they are a line.
// CHECK-LABEL: func private @one_row_of_halves(
// CHECK-SAME:    memref<24x1003x32xf16>
// AVX2-LABEL: func private @one_row_of_halves(
// AVX2-SAME:    memref<48x1003x16xf16>
// AVX2:         iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
// AVX2-NOT:       memref.prefetch
// AVX2:           %[[SECOND:.+]] = arith.addi %[[FIRST:.+]], %c1
// AVX2:           vector.load %{{.+}}[%[[SECOND]], %{{.+}}, %c0] : {{.+}}, vector<8xf16>
// AVX2:           scf.yield
func.func private @one_row_of_halves(%x: tensor<1x1003xf32>, %w: tensor<1003x768xf16> {ktn.constant}, %out: tensor<1x768xf32>) -> tensor<1x768xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x768xf32>) -> tensor<1x768xf32>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x1003xf32>, tensor<1003x768xf16>) outs(%start : tensor<1x768xf32>) {
  ^bb0(%l: f32, %r: f16, %s: f32):
    %wide = arith.extf %r : f16 to f32
    %p = arith.mulf %l, %wide : f32
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

// Of an open number of rows, one tile asks for the next 32 KiB of weights, as
// eight runs side by side, and many as many do. Where tiles are narrow there is
// code for one row, too, which reads several of their blocks.
// AVX2-LABEL: func private @open_rows(
// AVX2:         %[[ONE:.+]] = arith.cmpi ule, %{{.+}}, %c1
// AVX2:         scf.if %[[ONE]] {
// AVX2-NOT:       memref.prefetch
// AVX2:         } else {
// AVX2:           %[[FEW:.+]] = arith.cmpi ule, %{{.+}}, %c{{[0-9]+}}
// AVX2:           scf.if %[[FEW]] {
// AVX2:             memref.prefetch {{.+}}, read, locality<3>, data
// AVX2:           } else {
// AVX2-NOT:         locality<3>
// AVX2:             memref.prefetch {{.+}}, read, locality<2>, data
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

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// Of small weights too: eight chains of sums hide the latency of an FMA.
// AVX2-LABEL: func private @open_rows_of_small_weights(
// AVX2:         %[[ONE:.+]] = arith.cmpi ule, %{{.+}}, %c1
// AVX2:         scf.if %[[ONE]] {
// AVX2:           scf.for {{.+}} -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
// AVX2:         } else {
// AVX2-NOT:       scf.if
func.func private @open_rows_of_small_weights(%x: tensor<?x64xf32>, %w: tensor<64x128xf32> {ktn.constant}, %out: tensor<?x128xf32>) -> tensor<?x128xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<?x128xf32>) -> tensor<?x128xf32>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x64xf32>, tensor<64x128xf32>) outs(%start : tensor<?x128xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x128xf32>
  return %sum : tensor<?x128xf32>
}
