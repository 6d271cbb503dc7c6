// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" | FileCheck %s --check-prefix=LARGE
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 second-cache-kib=1024" | FileCheck %s --check-prefix=SMALL
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=256 vector-registers=16 second-cache-kib=512" | FileCheck %s --check-prefix=PANEL

#x = affine_map<(kh, kw, i, o, n, h, w) -> (n, h + kh, w + kw, i)>
#z = affine_map<(kh, kw, i, o, n, h, w) -> (n, h, w, o)>
#y = affine_map<(kh, kw, i, o, n, h, w) -> (kh, kw, i, o)>

// The gradient of a 3x3 kernel. Two images of 16 x 16 x 256 are half of a
// second cache of 2 MiB, so that all of their channels meet a block of columns.
// Beside the sums that pass through one of 1 MiB it would lose them: a block of
// channels meets all columns.
// LARGE-LABEL: func private @gradient(
// LARGE:         scf.for %{{.+}} = %c0 to %c8 step %c1 {
// LARGE:           scf.for %{{.+}} = %c0 to %c3 step %c1 {
// LARGE-NEXT:        scf.for %{{.+}} = %c0 to %c3 step %c1 {
// LARGE-NOT:     %c0 to %c256 step
// LARGE:         return
// SMALL-LABEL: func private @gradient(
// SMALL:         scf.for %{{.+}} = %c0 to %c3 step %c1 {
// SMALL-NEXT:      scf.for %{{.+}} = %c0 to %c3 step %c1 {
// SMALL-NEXT:        scf.for %{{.+}} = %c0 to %c256 step %c{{[0-9]+}} {
// SMALL:               scf.for %{{.+}} = %c0 to %c8 step %c1 {
// One of 512 KiB gives lines of both factors too slowly. What all tiles of a
// block of columns share is copied to where the first cache keeps it, an image
// at a time; and before that the image, in the order in which tiles read it,
// once for all nine windows.
// PANEL-LABEL: func private @gradient(
// PANEL-SAME:    %[[X:[^:]+]]: memref<8x16x16x256xf32>, %[[Z:[^:]+]]: memref<8x14x14x256xf32>,
// PANEL-SAME:    %[[COPY:[^:]+]]: memref<65536xf32> {ktn.scratch}
// PANEL:         %[[PANEL:.+]] = memref.alloca() {{.*}} : memref<1x1x14x14x16xf32>
// PANEL:         scf.for %{{.+}} = %c0 to %c8 step %c1 {
// PANEL:           scf.for %{{.+}} = %c0 to %c16 step %c1 {
// PANEL-NEXT:        scf.for %{{.+}} = %c0 to %c16 step %c1 {
// PANEL:               %[[LINE:.+]] = vector.load %[[X]]{{.*}}, vector<6xf32>
// PANEL:               vector.store %[[LINE]], %[[COPY]]
// PANEL:           scf.for %{{.+}} = %c0 to %c16 step %c1 {
// PANEL:             vector.store %{{.+}}, %[[PANEL]]
// PANEL:             scf.for %{{.+}} = %c0 to %c3 step %c1 {
// PANEL:               scf.for %{{.+}} = %c0 to %c252 step %c6 {
// PANEL:                 vector.load %[[PANEL]]
// PANEL:                 memref.load %[[COPY]]
// PANEL:         return
func.func private @gradient(%x: tensor<8x16x16x256xf32>, %z: tensor<8x14x14x256xf32>, %out: tensor<3x3x256x256xf32>) -> tensor<3x3x256x256xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<3x3x256x256xf32>) -> tensor<3x3x256x256xf32>
  %sum = linalg.generic {indexing_maps = [#x, #z, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %z : tensor<8x16x16x256xf32>, tensor<8x14x14x256xf32>) outs(%start : tensor<3x3x256x256xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<3x3x256x256xf32>
  return %sum : tensor<3x3x256x256xf32>
}
