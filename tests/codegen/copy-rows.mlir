// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=256 vector-registers=16" --split-input-file | FileCheck %s --check-prefix=SIX
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 little-code" --split-input-file | FileCheck %s --check-prefix=LITTLE

#x = affine_map<(m, n, k) -> (k, m)>
#z = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// Neighbours in a row of a transposed factor are the rows of a tile, and steps
// are pages apart: before the columns begin, the rows are copied to memory of
// the arena in the order in which tiles read them, step by step.
// CHECK-LABEL: func private @transposed(
// CHECK-SAME:    %[[X:[^:]+]]: memref<256x1024xf32>, %[[Z:[^:]+]]: memref<256x128xf32>,
// CHECK-SAME:    %[[COPY:[^:]+]]: memref<{{[0-9]+}}xf32> {ktn.scratch}
// CHECK:         scf.for %[[K:.+]] = %c0 to %c256 step %c1 {
// CHECK:           scf.for %[[ROW:.+]] =
// CHECK:             %[[LINE:.+]] = vector.load %[[X]][%[[K]], %[[ROW]]] : memref<256x1024xf32>, vector<[[ROWS:[0-9]+]]xf32>
// CHECK:             vector.store %[[LINE]], %[[COPY]]
// CHECK:         iter_args
// CHECK-NOT:     %[[X]]
// CHECK:         memref.load %[[COPY]]
// CHECK-NOT:     %[[X]]
// CHECK:         return
// LITTLE-LABEL: func private @transposed(
// LITTLE-NOT:    ktn.scratch
// LITTLE:        return
func.func private @transposed(%x: tensor<256x1024xf32>, %z: tensor<256x128xf32>, %out: tensor<1024x128xf32>) -> tensor<1024x128xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1024x128xf32>) -> tensor<1024x128xf32>
  %y = linalg.generic {indexing_maps = [#x, #z, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %z : tensor<256x1024xf32>, tensor<256x128xf32>) outs(%start : tensor<1024x128xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1024x128xf32>
  return %y : tensor<1024x128xf32>
}
func.func @main(%x: tensor<256x1024xf32>, %z: tensor<256x128xf32>) -> tensor<1024x128xf32> {
  %out = tensor.empty() : tensor<1024x128xf32>
  %y = call @transposed(%x, %z, %out) : (tensor<256x1024xf32>, tensor<256x128xf32>, tensor<1024x128xf32>) -> tensor<1024x128xf32>
  return %y : tensor<1024x128xf32>
}

// -----

#x = affine_map<(m, n, k) -> (k, m)>
#z = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// What one block of columns reads is read in place, and so are steps that are
// near.
// CHECK-LABEL: func private @few_columns(
// CHECK-NOT:     ktn.scratch
// CHECK:         return
func.func private @few_columns(%x: tensor<256x1024xf32>, %z: tensor<256x16xf32>, %out: tensor<1024x16xf32>) -> tensor<1024x16xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1024x16xf32>) -> tensor<1024x16xf32>
  %y = linalg.generic {indexing_maps = [#x, #z, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %z : tensor<256x1024xf32>, tensor<256x16xf32>) outs(%start : tensor<1024x16xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1024x16xf32>
  return %y : tensor<1024x16xf32>
}
// CHECK-LABEL: func private @near_steps(
// CHECK-NOT:     ktn.scratch
// CHECK:         return
func.func private @near_steps(%x: tensor<256x128xf32>, %z: tensor<256x128xf32>, %out: tensor<128x128xf32>) -> tensor<128x128xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<128x128xf32>) -> tensor<128x128xf32>
  %y = linalg.generic {indexing_maps = [#x, #z, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %z : tensor<256x128xf32>, tensor<256x128xf32>) outs(%start : tensor<128x128xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<128x128xf32>
  return %y : tensor<128x128xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// Rows that are far apart, and that many blocks of columns read, are copied
// in transposed squares, once for all of those.
// CHECK-LABEL: func private @many_columns(
// CHECK-SAME:    %[[X:[^:]+]]: memref<64x768xf32>,
// CHECK-SAME:    %[[COPY:[^:]+]]: memref<49152xf32> {ktn.scratch}
// CHECK-COUNT-8: vector.load %[[X]][{{.+}}] : memref<64x768xf32>, vector<4xf32>
// CHECK-COUNT-8: vector.shuffle {{.+}} : vector<8xf32>, vector<8xf32>
// CHECK-COUNT-4: vector.store {{.+}}, %[[COPY]][{{.+}}] : memref<49152xf32>, vector<8xf32>
// CHECK-COUNT-8: vector.load %[[X]][{{.+}}] : memref<64x768xf32>, vector<4xf32>
// CHECK-COUNT-8: vector.shuffle {{.+}} : vector<8xf32>, vector<8xf32>
// CHECK-COUNT-4: vector.store {{.+}}, %[[COPY]][{{.+}}] : memref<49152xf32>, vector<8xf32>
// CHECK:         iter_args
// CHECK-NOT:     %[[X]]
// CHECK:         memref.load %[[COPY]]
// CHECK-NOT:     %[[X]]
// CHECK:         return
// Of six rows a square has six.
// SIX-LABEL:     func private @many_columns(
// SIX-SAME:        %[[X:[^:]+]]: memref<64x768xf32>,
// SIX-SAME:        %[[COPY:[^:]+]]: memref<49152xf32> {ktn.scratch}
// SIX-COUNT-6:     vector.load %[[X]][{{.+}}] : memref<64x768xf32>, vector<4xf32>
// SIX-COUNT-8:     vector.shuffle {{.+}} : vector<8xf32>, vector<8xf32>
// SIX-COUNT-4:     vector.store {{.+}}, %[[COPY]][{{.+}}] : memref<49152xf32>, vector<6xf32>
// SIX-NOT:         memref.load %[[X]]
// SIX:             iter_args
func.func private @many_columns(%x: tensor<64x768xf32>, %w: tensor<768x512xf32> {ktn.constant}, %out: tensor<64x512xf32>) -> tensor<64x512xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<64x512xf32>) -> tensor<64x512xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<64x768xf32>, tensor<768x512xf32>) outs(%start : tensor<64x512xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<64x512xf32>
  return %y : tensor<64x512xf32>
}
func.func @main(%x: tensor<64x768xf32>, %w: tensor<768x512xf32>) -> tensor<64x512xf32> {
  %out = tensor.empty() : tensor<64x512xf32>
  %y = call @many_columns(%x, %w, %out) : (tensor<64x768xf32>, tensor<768x512xf32>, tensor<64x512xf32>) -> tensor<64x512xf32>
  return %y : tensor<64x512xf32>
}
