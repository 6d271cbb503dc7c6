// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 second-cache-kib=1024 one-run" --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 second-cache-kib=1024" --split-input-file | FileCheck %s --check-prefix=SIDE
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 second-cache-kib=1024 fetches-ahead" --split-input-file | FileCheck %s --check-prefix=FARTHER

#row = affine_map<(n, k) -> (k)>
#weights = affine_map<(n, k) -> (k, n)>
#sums = affine_map<(n, k) -> (n)>

// One row meets weights of the third cache as one run of memory, whose lines
// the first cache is asked for 2 KiB ahead, and never behind their end. Other
// machines read blocks of a vector side by side.
// CHECK-LABEL: func private @third(
// CHECK-SAME:    %[[W:[a-z0-9]+]]: memref<8x512x64xf32>
// CHECK:         %[[AHEAD:.+]] = arith.addi %{{.+}}, %c512
// CHECK:         %[[PLACE:.+]] = arith.minui %[[AHEAD]], %c262080
// CHECK:         memref.prefetch %{{.+}}[%[[PLACE]]], read, locality<3>, data : memref<262144xf32>
// CHECK:         %[[SECOND:.+]] = arith.addi %[[PLACE]], %c16
// CHECK:         memref.prefetch %{{.+}}[%[[SECOND]]], read, locality<3>, data
// CHECK-COUNT-2: memref.prefetch
// CHECK-NOT:     memref.prefetch
// SIDE-LABEL: func private @third(
// SIDE-SAME:    memref<32x512x16xf32>
// SIDE-NOT:     memref.prefetch
// SIDE:         return
func.func private @third(%x: tensor<512xf32>, %w: tensor<512x512xf32> {ktn.constant}, %out: tensor<512xf32>) -> tensor<512xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<512xf32>) -> tensor<512xf32>
  %y = linalg.generic {indexing_maps = [#row, #weights, #sums], iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : tensor<512xf32>, tensor<512x512xf32>) outs(%start : tensor<512xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<512xf32>
  return %y : tensor<512xf32>
}

// -----

#row = affine_map<(n, k) -> (k)>
#weights = affine_map<(n, k) -> (k, n)>
#sums = affine_map<(n, k) -> (n)>

// With more than 4 MiB of weights in the module nothing is asked for.
// CHECK-LABEL: func private @far(
// CHECK-SAME:    memref<8x512x64xf32>
// CHECK-NOT:     memref.prefetch
func.func private @far(%x: tensor<512xf32>, %w: tensor<512x512xf32> {ktn.constant}, %out: tensor<512xf32>) -> tensor<512xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<512xf32>) -> tensor<512xf32>
  %y = linalg.generic {indexing_maps = [#row, #weights, #sums], iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : tensor<512xf32>, tensor<512x512xf32>) outs(%start : tensor<512xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<512xf32>
  return %y : tensor<512xf32>
}

func.func private @many_weights() {
  %weights = arith.constant dense_resource<many> : tensor<1048577xf32>
  return
}

// -----

#row = affine_map<(n, k) -> (k)>
#weights = affine_map<(n, k) -> (k, n)>
#sums = affine_map<(n, k) -> (n)>

// The second cache needs no asking.
// CHECK-LABEL: func private @near(
// CHECK-NOT:     memref.prefetch
func.func private @near(%x: tensor<256xf32>, %w: tensor<256x256xf32> {ktn.constant}, %out: tensor<256xf32>) -> tensor<256xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<256xf32>) -> tensor<256xf32>
  %y = linalg.generic {indexing_maps = [#row, #weights, #sums], iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : tensor<256xf32>, tensor<256x256xf32>) outs(%start : tensor<256xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<256xf32>
  return %y : tensor<256xf32>
}

// -----

// A turn of one row's steps goes less than 2 KiB through the weights: three
// gates of two vectors are 384 bytes a step. Who fetches ahead farther has eight.
// CHECK-LABEL: func private @gates(
// CHECK:         scf.for %{{.+}} = %c0 to %c256 step %c4 iter_args
// FARTHER-LABEL: func private @gates(
// FARTHER:         scf.for %{{.+}} = %c0 to %c256 step %c8 iter_args
func.func private @gates(%x: tensor<1x256xf32>, %w: tensor<256x3x256xf32> {ktn.constant}, %out: tensor<1x256xf32>) -> tensor<1x256xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x3x256xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<1x3x256xf32>) -> tensor<1x3x256xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, g, n, k) -> (m, k)>, affine_map<(m, g, n, k) -> (k, g, n)>, affine_map<(m, g, n, k) -> (m, g, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x256xf32>, tensor<256x3x256xf32>) outs(%start : tensor<1x3x256xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x3x256xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, 0, n)>, affine_map<(m, n) -> (m, 1, n)>, affine_map<(m, n) -> (m, 2, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %sum, %sum : tensor<1x3x256xf32>, tensor<1x3x256xf32>, tensor<1x3x256xf32>) outs(%out : tensor<1x256xf32>) {
  ^bb0(%a: f32, %c: f32, %d: f32, %o: f32):
    %g = math.exp %a : f32
    %p = arith.mulf %g, %c : f32
    %q = arith.addf %p, %d : f32
    linalg.yield %q : f32
  } -> tensor<1x256xf32>
  return %y : tensor<1x256xf32>
}
