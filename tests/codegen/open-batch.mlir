// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=256 vector-registers=16" | FileCheck %s

#x = affine_map<(n, h, w, o, y, x, i) -> (n, h + y, w + x, i)>
#w = affine_map<(n, h, w, o, y, x, i) -> (y, x, i, o)>
#o = affine_map<(n, h, w, o, y, x, i) -> (n, h, w, o)>

// Of a batch of unknown size the rows of a tile are pixels, if only nine: there
// may be one sample, for each pixel of which all weights would be read again.
// CHECK-LABEL: func private @open_batch(
// CHECK:         %[[SAMPLES:.+]] = memref.dim %arg0, %c0
// CHECK:         scf.for %{{.+}} = %c0 to %[[SAMPLES]] step
// CHECK:         scf.for %{{.+}} = %c0 to %c9 step %c1 {
// CHECK:         scf.for {{.+}} -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>
// CHECK-NOT:     to %[[SAMPLES]]
// CHECK:         return
func.func private @open_batch(%x: tensor<?x10x10x256xf32>, %w: tensor<2x2x256x128xf32> {ktn.constant}, %out: tensor<?x9x9x128xf32>) -> tensor<?x9x9x128xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<?x9x9x128xf32>) -> tensor<?x9x9x128xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #o], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<?x10x10x256xf32>, tensor<2x2x256x128xf32>) outs(%start : tensor<?x9x9x128xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x9x9x128xf32>
  return %sum : tensor<?x9x9x128xf32>
}
