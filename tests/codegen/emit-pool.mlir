// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=256 vector-registers=16" --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=256 vector-registers=16 little-code" --split-input-file | FileCheck %s --check-prefix=LITTLE

#x = affine_map<(h, w, c, i, j) -> (h * 2 + i, w * 2 + j, c)>
#k = affine_map<(h, w, c, i, j) -> (i, j)>
#y = affine_map<(h, w, c, i, j) -> (h, w, c)>

// Windows that share nothing: one pixel of the result, all of its channels,
// from four runs of memory. Little code has few of them.
// CHECK-LABEL: func private @apart(
// CHECK-SAME:    %[[X:[^:]+]]: memref<64x64x64xf32>{{.*}}, %[[K:[^:]+]]: memref<2x2xf32>, %[[Y:[^:]+]]: memref<32x32x64xf32>
// CHECK:         scf.for %{{.+}} = %c0 to %c32 step %c1
// CHECK:           scf.for %{{.+}} = %c0 to %c32 step %c1
// CHECK-NOT:         scf.for
// CHECK-COUNT-32:    vector.load %[[X]]
// CHECK-NOT:         vector.load
// CHECK-COUNT-8:     vector.store %{{.+}}, %[[Y]]
// CHECK-NOT:         vector.store
// LITTLE-LABEL: func private @apart(
// LITTLE-COUNT-16: vector.load
// LITTLE-NOT:      vector.load
func.func private @apart(%x: tensor<64x64x64xf32>, %k: tensor<2x2xf32>, %out: tensor<32x32x64xf32>) -> tensor<32x32x64xf32> attributes {ktn.kernel = "pool"} {
  %least = arith.constant 0xFF800000 : f32
  %start = linalg.fill ins(%least : f32) outs(%out : tensor<32x32x64xf32>) -> tensor<32x32x64xf32>
  %y = linalg.generic {indexing_maps = [#x, #k, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %k : tensor<64x64x64xf32>, tensor<2x2xf32>) outs(%start : tensor<32x32x64xf32>) {
  ^bb0(%in: f32, %w: f32, %m: f32):
    %t = arith.maximumf %in, %m : f32
    linalg.yield %t : f32
  } -> tensor<32x32x64xf32>
  return %y : tensor<32x32x64xf32>
}

// -----

#x = affine_map<(h, w, c, i, j) -> (h * 2 + i, w * 2 + j, c)>
#k = affine_map<(h, w, c, i, j) -> (i, j)>
#y = affine_map<(h, w, c, i, j) -> (h, w, c)>

// Windows that overlap share what they read: some pixels, a vector of each.
// CHECK-LABEL: func private @overlap(
// LITTLE-LABEL: func private @overlap(
// CHECK-SAME:    %[[X:[^:]+]]: memref<65x65x64xf32>
// CHECK:         scf.for %{{.+}} = %c0 to %c32 step %c4
// CHECK:           scf.for %{{.+}} = %c0 to %c32 step %c2
// CHECK:             scf.for %{{.+}} = %c0 to %c8 step %c1
// CHECK:               vector.load %[[X]]
// CHECK-COUNT-8:       vector.store
// CHECK-NOT:           vector.store
func.func private @overlap(%x: tensor<65x65x64xf32>, %k: tensor<3x3xf32>, %out: tensor<32x32x64xf32>) -> tensor<32x32x64xf32> attributes {ktn.kernel = "pool"} {
  %least = arith.constant 0xFF800000 : f32
  %start = linalg.fill ins(%least : f32) outs(%out : tensor<32x32x64xf32>) -> tensor<32x32x64xf32>
  %y = linalg.generic {indexing_maps = [#x, #k, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %k : tensor<65x65x64xf32>, tensor<3x3xf32>) outs(%start : tensor<32x32x64xf32>) {
  ^bb0(%in: f32, %w: f32, %m: f32):
    %t = arith.maximumf %in, %m : f32
    linalg.yield %t : f32
  } -> tensor<32x32x64xf32>
  return %y : tensor<32x32x64xf32>
}
