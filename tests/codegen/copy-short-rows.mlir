// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>

// Rows of nine elements are read as one of 360: 22 vectors and half of one.
// CHECK-LABEL: func private @sums(
// CHECK-DAG:     memref.collapse_shape %{{.*}} {{\[\[}}0, 1]] : memref<40x9xf32> into memref<360xf32>
// CHECK-DAG:     %[[END:.*]] = arith.constant 352 : index
// CHECK:         scf.for %{{.*}} = %{{.*}} to %[[END]] step %{{.*}} {
// CHECK-NOT:     scf.for
// CHECK:           vector.store %{{.*}} : memref<360xf32>, vector<16xf32>
// CHECK:         vector.store %{{.*}} : memref<360xf32>, vector<8xf32>
func.func private @sums(%x: tensor<40x9xf32>, %y: tensor<40x9xf32>, %out: tensor<40x9xf32>) -> tensor<40x9xf32>
    attributes {ktn.kernel = "elementwise"} {
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<40x9xf32>, tensor<40x9xf32>) outs(%out : tensor<40x9xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<40x9xf32>
  return %0 : tensor<40x9xf32>
}

// A function is a chain of operations: those of four vectors go side by side,
// then those of the rest one by one.
// CHECK-LABEL: func private @functions(
// CHECK:         math.exp %{{.*}} : vector<64xf32>
// CHECK:         math.exp %{{.*}} : vector<16xf32>
// CHECK-NOT:     math.exp
// CHECK:         return
func.func private @functions(%x: tensor<4x160xf32>, %out: tensor<4x160xf32>) -> tensor<4x160xf32>
    attributes {ktn.kernel = "elementwise"} {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x160xf32>) outs(%out : tensor<4x160xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = math.exp %a : f32
    linalg.yield %s : f32
  } -> tensor<4x160xf32>
  return %0 : tensor<4x160xf32>
}

// Pieces are contiguous from the axis on along which they are joined.
// CHECK-LABEL: func private @pieces(
// CHECK-DAG:     memref.collapse_shape %{{.*}} {{\[\[}}0, 1]] : memref<5x9xf32> into memref<45xf32>
// CHECK:         vector.store %{{.*}} : memref<72xf32>
// CHECK:         return
func.func private @pieces(%x: tensor<5x9xf32>, %y: tensor<3x9xf32>, %out: tensor<8x9xf32>) -> tensor<8x9xf32>
    attributes {ktn.kernel = "concat"} {
  %0 = tensor.concat dim(0) %x, %y : (tensor<5x9xf32>, tensor<3x9xf32>) -> tensor<8x9xf32>
  return %0 : tensor<8x9xf32>
}

// Where an element of the rows is picked by its place, they stay rows.
// CHECK-LABEL: func private @picks(
// CHECK-NOT:     memref.collapse_shape
// CHECK:         memref.load %{{.*}}[%{{.*}}, %{{.*}}] : memref<5x9xf32>
func.func private @picks(%x: tensor<5x9xf32>, %out: tensor<5x9xf32>) -> tensor<5x9xf32>
    attributes {ktn.kernel = "elementwise"} {
  %c2 = arith.constant 2 : index
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<5x9xf32>) outs(%out : tensor<5x9xf32>) {
  ^bb0(%a: f32, %o: f32):
    %p = tensor.extract %x[%c2, %c2] : tensor<5x9xf32>
    %s = arith.addf %a, %p : f32
    linalg.yield %s : f32
  } -> tensor<5x9xf32>
  return %0 : tensor<5x9xf32>
}

// Pixels of three colours from the second line and pixel on: lines are one, of
// which the second begins three elements on, and the third with it, where two
// are added.
// CHECK-LABEL: func private @crop(
// CHECK-DAG:     %[[X:.*]] = memref.collapse_shape %arg0 {{\[\[}}0], [1, 2]] : memref<10x12x3xf32> into memref<10x36xf32>
// CHECK-DAG:     %[[Y:.*]] = memref.collapse_shape %arg1 {{\[\[}}0], [1, 2]] : memref<8x11x3xf32> into memref<8x33xf32>
// CHECK:         scf.for %[[LINE:.*]] = %{{.*}} to %{{.*}} step
// CHECK:           %[[FROM:.*]] = arith.addi %[[LINE]], %c1
// CHECK:           %[[AT:.*]] = arith.addi %{{.*}}, %c3
// CHECK:           vector.load %[[X]][%[[FROM]], %[[AT]]] : memref<10x36xf32>, vector<16xf32>
// CHECK:           vector.load %[[Y]][%[[LINE]], %{{.*}}] : memref<8x33xf32>, vector<16xf32>
func.func private @crop(%x: tensor<10x12x3xf32>, %y: tensor<8x11x3xf32>, %out: tensor<8x11x3xf32>) -> tensor<8x11x3xf32>
    attributes {ktn.kernel = "elementwise"} {
  %0 = linalg.generic {indexing_maps = [affine_map<(h, w, c) -> (h + 1, w + 1, c)>, affine_map<(h, w, c) -> (h, w, c)>, affine_map<(h, w, c) -> (h, w, c)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %y : tensor<10x12x3xf32>, tensor<8x11x3xf32>) outs(%out : tensor<8x11x3xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<8x11x3xf32>
  return %0 : tensor<8x11x3xf32>
}

// Each other pixel is none of a line.
// CHECK-LABEL: func private @every_other(
// CHECK-NOT:     memref.collapse_shape
// CHECK:         return
func.func private @every_other(%x: tensor<10x12x3xf32>, %out: tensor<10x6x3xf32>) -> tensor<10x6x3xf32>
    attributes {ktn.kernel = "elementwise"} {
  %0 = linalg.generic {indexing_maps = [affine_map<(h, w, c) -> (h, w * 2, c)>, affine_map<(h, w, c) -> (h, w, c)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<10x12x3xf32>) outs(%out : tensor<10x6x3xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<10x6x3xf32>
  return %0 : tensor<10x6x3xf32>
}
