// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 fetches-ahead" --split-input-file | FileCheck %s --check-prefix=AHEAD

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>

// What is read 512 elements later is asked for, and what is written 256 later;
// a row that every other one reads again is not.
// CHECK-LABEL: func private @large(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<512x1024xf32>{{.*}}, %[[BIAS:.+]]: memref<1024xf32>, %[[Y:.+]]: memref<512x1024xf32>
// CHECK:         scf.for %[[I:.+]] = %c0 to %c512
// CHECK:           scf.for %[[J:.+]] = %c0 to %c1024 step %c16
// CHECK:             vector.store
// CHECK:             %[[OUT:.+]] = arith.addi %[[J]], %c256
// CHECK:             memref.prefetch %[[Y]][%[[I]], %[[OUT]]], write, locality<3>, data
// CHECK:             %[[IN:.+]] = arith.addi %[[J]], %c512
// CHECK:             memref.prefetch %[[X]][%[[I]], %[[IN]]], read, locality<3>, data
// CHECK-NOT:         memref.prefetch
// AHEAD-LABEL: func private @large(
// AHEAD:         vector.store
// AHEAD-NOT:     memref.prefetch
// AHEAD:         return
func.func private @large(%x: tensor<512x1024xf32>, %bias: tensor<1024xf32>, %out: tensor<512x1024xf32>) -> tensor<512x1024xf32> attributes {ktn.kernel = "add"} {
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %bias : tensor<512x1024xf32>, tensor<1024xf32>) outs(%out : tensor<512x1024xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %t = arith.addf %l, %r : f32
    linalg.yield %t : f32
  } -> tensor<512x1024xf32>
  return %y : tensor<512x1024xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// The second cache holds what is small.
// CHECK-LABEL: func private @small(
// CHECK-NOT:     memref.prefetch
func.func private @small(%x: tensor<32x512xf32>, %out: tensor<32x512xf32>) -> tensor<32x512xf32> attributes {ktn.kernel = "abs"} {
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<32x512xf32>) outs(%out : tensor<32x512xf32>) {
  ^bb0(%l: f32, %s: f32):
    %t = math.absf %l : f32
    linalg.yield %t : f32
  } -> tensor<32x512xf32>
  return %y : tensor<32x512xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#none = affine_map<(i, j) -> ()>

// Eight runs of rows side by side, each with its own partial results; ten
// columns are left in each.
// CHECK-LABEL: func private @sum(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<1024x1034xf32>,
// CHECK:         scf.for %[[I:.+]] = %c0 to %c128 step %c1 iter_args
// CHECK:           scf.for %[[J:.+]] = %c0 to %c1024 step %c16 iter_args
// CHECK:             vector.load %[[X]][%[[I]], %[[J]]]
// CHECK:             memref.prefetch %[[X]][%[[I]], %{{.+}}], read, locality<3>, data
// CHECK:             %[[SECOND:.+]] = arith.addi %[[I]], %c128
// CHECK:             vector.load %[[X]][%[[SECOND]], %[[J]]]
// CHECK:             %[[LAST:.+]] = arith.addi %[[I]], %c896
// CHECK:             vector.load %[[X]][%[[LAST]], %[[J]]]
// CHECK:           }
// CHECK-COUNT-8:   vector.load %[[X]][%{{.+}}, %c1024] : memref<1024x1034xf32>, vector<10xf32>

// Where nothing has to be asked for, four lines of four runs.
// AHEAD-LABEL: func private @sum(
// AHEAD-SAME:    %[[X:[a-z0-9]+]]: memref<1024x1034xf32>,
// AHEAD:         scf.for %[[I:.+]] = %c0 to %c256 step %c1 iter_args
// AHEAD:           scf.for %[[J:.+]] = %c0 to %c1024 step %c64 iter_args
// AHEAD-COUNT-4:     vector.load %[[X]][%[[I]], %{{.+}}]
// AHEAD:             %[[SECOND:.+]] = arith.addi %[[I]], %c256
// AHEAD-COUNT-4:     vector.load %[[X]][%[[SECOND]], %{{.+}}]
// AHEAD-NOT:         memref.prefetch
// AHEAD:           }
// AHEAD-COUNT-4:   vector.load %[[X]][%{{.+}}, %c1024] : memref<1024x1034xf32>, vector<10xf32>
func.func private @sum(%x: tensor<1024x1034xf32>, %out: tensor<f32>) -> tensor<f32> attributes {ktn.kernel = "sum"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<f32>) -> tensor<f32>
  %sum = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction", "reduction"]}
      ins(%x : tensor<1024x1034xf32>) outs(%start : tensor<f32>) {
  ^bb0(%l: f32, %s: f32):
    %t = arith.addf %s, %l : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  return %sum : tensor<f32>
}

// -----

#id = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>

// Along one loop runs are parts of it, of whole lines; what is left behind the
// last one is a part of each in turn.
// CHECK-LABEL: func private @line(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<1000003xf32>
// CHECK:         scf.for %[[I:.+]] = %c0 to %c124992 step %c16 iter_args
// CHECK:           vector.load %[[X]][%[[I]]]
// CHECK:           %[[SECOND:.+]] = arith.addi %[[I]], %c124992
// CHECK:           vector.load %[[X]][%[[SECOND]]]
// CHECK:         }
// CHECK-COUNT-4: vector.load %[[X]][%{{.+}}] : memref<1000003xf32>, vector<16xf32>
// CHECK:         vector.load %[[X]][%{{.+}}] : memref<1000003xf32>, vector<3xf32>
// AHEAD-LABEL: func private @line(
// AHEAD:         scf.for %{{.+}} = %c0 to %c249984 step %c64 iter_args
func.func private @line(%x: tensor<1000003xf32>, %out: tensor<f32>) -> tensor<f32> attributes {ktn.kernel = "max"} {
  %least = arith.constant 0xFF800000 : f32
  %start = linalg.fill ins(%least : f32) outs(%out : tensor<f32>) -> tensor<f32>
  %most = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]}
      ins(%x : tensor<1000003xf32>) outs(%start : tensor<f32>) {
  ^bb0(%l: f32, %s: f32):
    %t = arith.maximumf %s, %l : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  return %most : tensor<f32>
}
