// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 second-cache-kib=1024" --split-input-file | FileCheck %s --check-prefix=SMALL

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// Weights that are only known when the code runs, and that the second cache
// holds: sums are complete when they are stored.
// CHECK-LABEL: func private @near_weights(
// CHECK:         scf.for %{{.+}} = %c0{{.*}} to %c576 step %c1 iter_args
// CHECK-NOT:     scf.if
// CHECK:         return
func.func private @near_weights(%x: tensor<512x576xf32>, %w: tensor<576x64xf32>, %out: tensor<512x64xf32>) -> tensor<512x64xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<512x64xf32>) -> tensor<512x64xf32>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<512x576xf32>, tensor<576x64xf32>) outs(%start : tensor<512x64xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<512x64xf32>
  return %sum : tensor<512x64xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// More of them: what tiles read stays in the first cache in blocks of the sum.
// CHECK-LABEL: func private @far_weights(
// CHECK:         scf.for %[[FROM:.+]] = %c0{{.*}} to %c576 step %c192
// CHECK:           %[[TO:.+]] = arith.minui
// CHECK:           scf.if
// CHECK:           scf.for %{{.+}} = %[[FROM]] to %[[TO]] step %c1 iter_args
func.func private @far_weights(%x: tensor<512x576xf32>, %w: tensor<576x256xf32>, %out: tensor<512x256xf32>) -> tensor<512x256xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<512x256xf32>) -> tensor<512x256xf32>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<512x576xf32>, tensor<576x256xf32>) outs(%start : tensor<512x256xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<512x256xf32>
  return %sum : tensor<512x256xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// A tile begins with the sums of the blocks before. Where those are many, the
// steps of a tile ask for those of the next one, but for where the second cache
// is large.
// CHECK-LABEL: func private @many_sums(
// CHECK:         scf.for %{{.+}} iter_args
// CHECK-NOT:     write, locality
// CHECK:         return
// SMALL-LABEL: func private @many_sums(
// SMALL:         scf.if
// SMALL:         scf.for %[[STEP:.+]] = %[[FROM:.+]] to %{{.+}} step %c1 iter_args
// SMALL:           %[[SINCE:.+]] = arith.subi %[[STEP]], %[[FROM]]
// SMALL:           %[[ROW:.+]] = arith.shrui %{{.+}}, %c
// SMALL:           %[[NEXT:.+]] = arith.addi %[[ROW]], %c
// SMALL:           %[[PLACE:.+]] = arith.addi %{{.+}}, %[[NEXT]]
// SMALL:           memref.prefetch %arg2[%[[PLACE]], %{{.+}}], write, locality<3>, data
// SMALL:           scf.yield
// SMALL-NOT:     write, locality
// SMALL:         scf.for
func.func private @many_sums(%x: tensor<1024x1024xf32>, %w: tensor<1024x1024xf32>, %out: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1024x1024xf32>, tensor<1024x1024xf32>) outs(%start : tensor<1024x1024xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1024x1024xf32>
  return %sum : tensor<1024x1024xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// Those of few are near.
// CHECK-LABEL: func private @few_sums(
// CHECK:         scf.if
// CHECK-NOT:     write, locality
// CHECK:         return
func.func private @few_sums(%x: tensor<128x1024xf32>, %w: tensor<1024x512xf32>, %out: tensor<128x512xf32>) -> tensor<128x512xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<128x512xf32>) -> tensor<128x512xf32>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<128x1024xf32>, tensor<1024x512xf32>) outs(%start : tensor<128x512xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<128x512xf32>
  return %sum : tensor<128x512xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// The panel of one block of columns is filled from rows that are far apart: the
// steps ask for what the next one is filled with, a line each. Behind the last
// columns come the first.
// CHECK-LABEL: func private @next_panel(
// CHECK-SAME:    %{{[a-z0-9]+}}: memref<512x256xf32>, %[[W:[a-z0-9]+]]: memref<256x1024xf32>
// CHECK:         scf.for %[[STEP:.+]] = %c0{{.*}} to %c{{[0-9]+}} step %c1 iter_args
// CHECK:           %[[LINE:.+]] = arith.andi %{{.+}}, %c
// CHECK:           %[[DOWN:.+]] = arith.shrui %{{.+}}, %c
// CHECK:           %[[ROW:.+]] = arith.addi %{{.+}}, %[[DOWN]]
// CHECK:           %[[IS_END:.+]] = arith.cmpi uge, %[[NEXT:.+]], %c1024
// CHECK:           %[[FIRST:.+]] = arith.select %[[IS_END]], %c0{{.*}}, %[[NEXT]]
// CHECK:           %[[COLUMN:.+]] = arith.addi %[[FIRST]], %{{.+}}
// CHECK:           memref.prefetch %[[W]][%[[ROW]], %[[COLUMN]]], read, locality<2>, data
// CHECK:           scf.yield
func.func private @next_panel(%x: tensor<512x256xf32>, %w: tensor<256x1024xf32>, %out: tensor<512x1024xf32>) -> tensor<512x1024xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<512x1024xf32>) -> tensor<512x1024xf32>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<512x256xf32>, tensor<256x1024xf32>) outs(%start : tensor<512x1024xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<512x1024xf32>
  return %sum : tensor<512x1024xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// Rows that are 8 KiB apart share so few places of the second cache that it
// would not hold them until then.
// CHECK-LABEL: func private @panel_of_conflicts(
// CHECK-SAME:    %{{[a-z0-9]+}}: memref<512x512xf32>, %[[W:[a-z0-9]+]]: memref<512x2048xf32>
// CHECK-NOT:     memref.prefetch %[[W]]
// CHECK:         return
func.func private @panel_of_conflicts(%x: tensor<512x512xf32>, %w: tensor<512x2048xf32>, %out: tensor<512x2048xf32>) -> tensor<512x2048xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<512x2048xf32>) -> tensor<512x2048xf32>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<512x512xf32>, tensor<512x2048xf32>) outs(%start : tensor<512x2048xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<512x2048xf32>
  return %sum : tensor<512x2048xf32>
}
