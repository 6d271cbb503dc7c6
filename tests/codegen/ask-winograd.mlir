// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 winograd=4 second-cache-kib=512" --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=256 vector-registers=16 winograd=4 second-cache-kib=512" --split-input-file | FileCheck %s --check-prefix=SHORT

#x = affine_map<(h, w, k, i, j, c) -> (h + i, w + j, c)>
#g = affine_map<(h, w, k, i, j, c) -> (i, j, c, k)>
#y = affine_map<(h, w, k, i, j, c) -> (h, w, k)>
#all = affine_map<(h, w, k) -> (h, w, k)>

// Of an image that no second cache holds, a tile asks for the next one: of its
// inputs the four columns that are new, with four pixels a line, of six rows;
// of what is added to its outputs, and of those, each of 4 x 4 pixels.
// CHECK-LABEL: func private @large(
// CHECK-SAME:    %[[X:[^:]+]]: memref<258x258x4xf32>, %[[G:[^:]+]]: memref<36x{{[^,]*}},
// CHECK-SAME:    %[[A:[^:]+]]: memref<256x256x32xf32>{{.*}}, %[[Y:[^:]+]]: memref<256x256x32xf32>
// CHECK-COUNT-6:  memref.prefetch %[[X]][{{.+}}], read, locality<3>, data
// CHECK-NOT:      memref.prefetch
// CHECK:          vector.load %[[X]]
// CHECK:          memref.prefetch %[[G]]
// CHECK-COUNT-16: memref.prefetch %[[Y]][{{.+}}], write, locality<3>, data
// CHECK-COUNT-16: memref.prefetch %[[A]][{{.+}}], read, locality<3>, data
// CHECK-NOT:      memref.prefetch
func.func private @large(%x: tensor<258x258x4xf32>, %g: tensor<3x3x4x32xf32> {ktn.constant}, %a: tensor<256x256x32xf32>, %out: tensor<256x256x32xf32>) -> tensor<256x256x32xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<256x256x32xf32>) -> tensor<256x256x32xf32>
  %sum = linalg.generic {indexing_maps = [#x, #g, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %g : tensor<258x258x4xf32>, tensor<3x3x4x32xf32>) outs(%start : tensor<256x256x32xf32>) {
  ^bb0(%in: f32, %w: f32, %s: f32):
    %p = arith.mulf %in, %w : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<256x256x32xf32>
  %y = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%sum, %a : tensor<256x256x32xf32>, tensor<256x256x32xf32>) outs(%out : tensor<256x256x32xf32>) {
  ^bb0(%s: f32, %b: f32, %o: f32):
    %t = arith.addf %s, %b : f32
    linalg.yield %t : f32
  } -> tensor<256x256x32xf32>
  return %y : tensor<256x256x32xf32>
}

// -----

#x = affine_map<(h, w, k, i, j, c) -> (h + i, w + j, c)>
#g = affine_map<(h, w, k, i, j, c) -> (i, j, c, k)>
#y = affine_map<(h, w, k, i, j, c) -> (h, w, k)>

// Many channels go no nearer than the second cache, and a small image is there
// anyway.
// CHECK-LABEL: func private @channels(
// CHECK-SAME:    %[[X:[^:]+]]: memref<34x34x256xf32>, %[[G:[^:]+]]: memref<36x{{[^,]*}},
// CHECK-COUNT-24: memref.prefetch %[[X]][{{.+}}], read, locality<2>, data
// CHECK-NOT:      memref.prefetch
// CHECK:          vector.load %[[X]]
// CHECK:          memref.prefetch %[[G]]
// CHECK-NOT:      memref.prefetch
// Where vectors are half a line, four steps ask together: for eight vectors, as
// three tiles of rows ask for a panel, two lines.
// SHORT-LABEL: func private @channels(
// SHORT-SAME:    %{{[^:]+}}: memref<34x34x256xf32>, %[[G:[^:]+]]: memref<36x{{[^,]*}},
// SHORT:          %[[FOUR:.+]] = arith.constant 4 : index
// SHORT:          scf.for %{{.+}} = %{{.+}} to %{{.+}} step %[[FOUR]] iter_args
// SHORT-COUNT-2:  memref.prefetch %[[G]]
// SHORT-NOT:      memref.prefetch
// SHORT-COUNT-8:  vector.load %[[G]]
// SHORT-NOT:      vector.load %[[G]]
// SHORT:          scf.yield
func.func private @channels(%x: tensor<34x34x256xf32>, %g: tensor<3x3x256x32xf32> {ktn.constant}, %out: tensor<32x32x32xf32>) -> tensor<32x32x32xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<32x32x32xf32>) -> tensor<32x32x32xf32>
  %sum = linalg.generic {indexing_maps = [#x, #g, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %g : tensor<34x34x256xf32>, tensor<3x3x256x32xf32>) outs(%start : tensor<32x32x32xf32>) {
  ^bb0(%in: f32, %w: f32, %s: f32):
    %p = arith.mulf %in, %w : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<32x32x32xf32>
  return %sum : tensor<32x32x32xf32>
}
