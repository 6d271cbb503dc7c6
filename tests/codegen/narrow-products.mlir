// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 little-code=true" --split-input-file | FileCheck %s --check-prefix=LITTLE
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=256 vector-registers=16 parallel=true" --split-input-file | FileCheck %s --check-prefix=AVX2
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=128 vector-registers=32" --split-input-file | FileCheck %s --check-prefix=SMALL

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// Of few columns the vectors go along the sum, and weights are packed in blocks
// of it: five rows and five columns make 25 vectors. Four turns make one
// vector of those of two rows, each of which meets what follows.
// CHECK-LABEL: func private @classes(
// CHECK-SAME:    %[[X:[^:]+]]: memref<64x512xf32>
// CHECK-SAME:    %[[W:[^:]+]]: memref<32x10x16xf32> {ktn.constant, ktn.packed = {block = 16 : i64, dim = 0 : i64}, ktn.unpacked_type = tensor<512x10xf32>}
// CHECK:         scf.for {{.+}} = %c0{{.*}} to %c60{{.*}} step %c5
// CHECK:           scf.for {{.+}} = %c0{{.*}} to %c10{{.*}} step %c5
// CHECK:             scf.for %[[STEP:.+]] = %c0{{.*}} to %c32{{.*}} step %c1{{.*}} -> ({{((vector<16xf32>(, )?){25})}})
// CHECK:               %[[K:.+]] = arith.muli %[[STEP]], %c16
// CHECK-DAG:           vector.load %[[X]][%{{.+}}, %[[K]]] : memref<64x512xf32>, vector<16xf32>
// CHECK-DAG:           vector.load %[[W]][%[[STEP]], %{{.+}}, %c0{{.*}}] : memref<32x10x16xf32>, vector<16xf32>
// CHECK:               scf.yield
// CHECK:             vector.shuffle {{.+}} [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23] : vector<16xf32>, vector<16xf32>
// CHECK:             vector.shuffle {{.+}} [0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30]
// CHECK:             vector.extract_strided_slice {{.+}}offsets = [0]{{.+}} vector<16xf32> to vector<5xf32>
// CHECK:             arith.maximumf {{.+}} : vector<5xf32>
// CHECK:             vector.store {{.+}} vector<5xf32>
// CHECK:             vector.extract_strided_slice {{.+}}offsets = [8]{{.+}} vector<16xf32> to vector<5xf32>
// Little code has smaller tiles of the same sums.
// LITTLE-LABEL: func private @classes(
// LITTLE-SAME:    memref<32x10x16xf32>
// LITTLE:         scf.for {{.+}} to %c32{{.*}} -> ({{((vector<16xf32>(, )?){15})}})
// AVX2-LABEL: func private @classes(
// AVX2-SAME:    memref<64x10x8xf32>
// AVX2:         scf.for {{.+}} to %c64{{.*}} -> ({{((vector<8xf32>(, )?){10})}})
func.func private @classes(%x: tensor<64x512xf32>, %w: tensor<512x10xf32> {ktn.constant}, %out: tensor<64x10xf32>) -> tensor<64x10xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<64x10xf32>) -> tensor<64x10xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<64x512xf32>, tensor<512x10xf32>) outs(%start : tensor<64x10xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<64x10xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<64x10xf32>) outs(%out : tensor<64x10xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.maximumf %a, %zero : f32
    linalg.yield %r : f32
  } -> tensor<64x10xf32>
  return %y : tensor<64x10xf32>
}

// -----

// Rows of unknown number go down a ladder. What is behind the last whole vector
// of a row is read in part, with zeros behind it; those of the weights are
// packed.
// CHECK-LABEL: func private @open(
// CHECK-SAME:    memref<7x4x16xf32> {ktn.constant
// CHECK:         %[[ROWS:.+]] = memref.dim
// CHECK:         scf.for {{.+}} step %c6
// CHECK:           scf.for {{.+}} to %c6{{.*}} -> ({{((vector<16xf32>(, )?){24})}})
// CHECK:           vector.load {{.+}} : memref<?x100xf32>, vector<4xf32>
// CHECK:           vector.insert_strided_slice {{.+}} : vector<4xi32> into vector<16xi32>
// CHECK-COUNT-6:   vector.store {{.+}} vector<4xf32>
// CHECK:         scf.for {{.+}} step %c3
// CHECK:         scf.for {{.+}} to %c6{{.*}} -> ({{((vector<16xf32>(, )?){12})}})
// CHECK:         scf.for {{.+}} to %c6{{.*}} -> ({{((vector<16xf32>(, )?){4})}})
func.func private @open(%x: tensor<?x100xf32>, %w: tensor<100x4xf32> {ktn.constant}, %out: tensor<?x4xf32>) -> tensor<?x4xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<?x4xf32>) -> tensor<?x4xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x100xf32>, tensor<100x4xf32>) outs(%start : tensor<?x4xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x4xf32>
  return %sum : tensor<?x4xf32>
}

// -----

// Rows that no near cache holds are asked for two tiles ahead. Of a product
// with a vector its rows are the columns: their sums are neighbours.
// CHECK-LABEL: func private @vector(
// CHECK-NOT:     memref.prefetch
// CHECK:         scf.for {{.+}} to %c32{{.*}} step %c16
// CHECK:           scf.for {{.+}} to %c16{{.*}} -> ({{((vector<16xf32>(, )?){16})}})
// CHECK:           vector.store {{.+}} vector<16xf32>
func.func private @vector(%x: tensor<32x256xf32>, %w: tensor<256xf32>, %out: tensor<32xf32>) -> tensor<32xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<32xf32>) -> tensor<32xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m)>], iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : tensor<32x256xf32>, tensor<256xf32>) outs(%start : tensor<32xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<32xf32>
  return %sum : tensor<32xf32>
}

// -----

// Eight columns are two vectors with four elements of the sum each, of which a
// load spreads those of a row. Rows that follow each other are asked for as one
// run: 512 * 13 elements behind those of this tile, 4 * 13 of them in a step.
// CHECK-LABEL: func private @far(
// CHECK-SAME:    %[[X:[^:]+]]: memref<4096x512xf32>, %[[W:[^:]+]]: memref<128x8x4xf32> {ktn.constant, ktn.packed = {block = 4 : i64, dim = 0 : i64}
// CHECK-DAG:     %[[ALL:.+]] = memref.collapse_shape %[[X]] {{.+}} into memref<2097152xf32>
// CHECK-DAG:     %[[ROWS:.+]] = memref.collapse_shape %[[W]] {{.+}} into memref<128x32xf32>
// CHECK:         scf.for %[[ROW:.+]] = %c0 to %{{.+}} step %c13 {
// CHECK:           scf.for %[[STEP:.+]] = %c0 to %c128 step %c1 iter_args({{.+}} -> (
// CHECK:             %[[AT:.+]] = arith.muli %[[STEP]], %c4
// CHECK:             %[[FROM:.+]] = arith.muli %[[AT]], %c13
// CHECK:             arith.addi %{{.+}}, %c6656
// CHECK:             memref.prefetch %[[ALL]]{{.+}} read, locality<3>
// CHECK:             %[[SOME:.+]] = vector.load %[[X]][%[[ROW]], %[[AT]]] : memref<4096x512xf32>, vector<4xf32>
// CHECK:             vector.shuffle %[[SOME]], %[[SOME]] [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]
// CHECK:             vector.load %[[ROWS]][%[[STEP]], %{{.+}}] : memref<128x32xf32>, vector<16xf32>
// CHECK:             vector.load %[[ROWS]][%[[STEP]], %{{.+}}] : memref<128x32xf32>, vector<16xf32>
// CHECK:           vector.shuffle %{{.+}}, %{{.+}} [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30]
// CHECK:           vector.shuffle %{{.+}}, %{{.+}} [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31]
// CHECK:           vector.store %{{.+}} : memref<4096x8xf32>, vector<8xf32>
func.func private @far(%x: tensor<4096x512xf32>, %w: tensor<512x8xf32> {ktn.constant}, %out: tensor<4096x8xf32>) -> tensor<4096x8xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<4096x8xf32>) -> tensor<4096x8xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4096x512xf32>, tensor<512x8xf32>) outs(%start : tensor<4096x8xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<4096x8xf32>
  return %sum : tensor<4096x8xf32>
}

// -----

// A short sum of many rows is not worth adding up lanes: tiles as elsewhere.
// CHECK-LABEL: func private @short(
// CHECK-SAME:    memref<1x64x16xf32> {ktn.constant, ktn.packed = {block = 16 : i64, dim = 1 : i64}
func.func private @short(%x: tensor<640x64xf32>, %w: tensor<64x10xf32> {ktn.constant}, %out: tensor<640x10xf32>) -> tensor<640x10xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<640x10xf32>) -> tensor<640x10xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<640x64xf32>, tensor<64x10xf32>) outs(%start : tensor<640x10xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<640x10xf32>
  return %sum : tensor<640x10xf32>
}

// -----

// Weights that are not known before are copied so in each call: 24 columns are
// three vectors with two elements of the sum each.
// CHECK-LABEL: func private @computed_weights(
// CHECK-SAME:    %[[X:[^:]+]]: memref<3136x96xf32>, %[[W:[^:]+]]: memref<96x24xf32>
// CHECK:         %[[COPY:.+]] = memref.alloca() {{.+}} : memref<48x24x2xf32>
// CHECK:         %[[ROWS:.+]] = memref.collapse_shape %[[COPY]] {{.+}} into memref<48x48xf32>
// CHECK:         scf.for %[[K:.+]] = %c0 to %c48 step %c1 {
// CHECK:           scf.for %[[N:.+]] = %c0 to %c24 step %c1 {
// CHECK:             %[[FIRST:.+]] = memref.load %[[W]][%{{.+}}, %[[N]]]
// CHECK:             memref.store %[[FIRST]], %[[COPY]][%[[K]], %[[N]], %c0]
// CHECK:             %[[SECOND:.+]] = memref.load %[[W]][%{{.+}}, %[[N]]]
// CHECK:             memref.store %[[SECOND]], %[[COPY]][%[[K]], %[[N]], %c1]
// CHECK:         scf.for {{.+}} -> ({{((vector<16xf32>(, )?){24})}})
// CHECK-COUNT-3:   vector.load %[[ROWS]]
func.func private @computed_weights(%x: tensor<3136x96xf32>, %w: tensor<96x24xf32>, %out: tensor<3136x24xf32>) -> tensor<3136x24xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<3136x24xf32>) -> tensor<3136x24xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<3136x96xf32>, tensor<96x24xf32>) outs(%start : tensor<3136x24xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<3136x24xf32>
  return %sum : tensor<3136x24xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// No four columns lie across a vector of two.
// SMALL-LABEL: func private @doubles(
// SMALL:         vector<2xf64>
func.func private @doubles(%x: tensor<64x512xf64>, %w: tensor<512x10xf64> {ktn.constant}, %out: tensor<64x10xf64>) -> tensor<64x10xf64> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f64
  %start = linalg.fill ins(%zero : f64) outs(%out : tensor<64x10xf64>) -> tensor<64x10xf64>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<64x512xf64>, tensor<512x10xf64>) outs(%start : tensor<64x10xf64>) {
  ^bb0(%a: f64, %c: f64, %s: f64):
    %p = arith.mulf %a, %c : f64
    %t = arith.addf %s, %p : f64
    linalg.yield %t : f64
  } -> tensor<64x10xf64>
  return %sum : tensor<64x10xf64>
}
