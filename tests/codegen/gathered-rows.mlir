// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 fetches-ahead" | FileCheck %s

// Which row of an embedding comes next only the indices tell.
// CHECK-LABEL: func private @large(
// CHECK:       scf.for %[[ROW:.+]] = %{{.+}} to %{{.+}} step
// CHECK:         %[[AHEAD:.+]] = arith.addi %[[ROW]], %{{.+}} : index
// CHECK:         %[[NEXT:.+]] = arith.minui %[[AHEAD]], %{{.+}} : index
// CHECK:         %[[INDEX:.+]] = memref.load %arg0[%[[NEXT]]]
// CHECK:         %[[PLACE:.+]] = arith.index_cast %[[INDEX]]
// CHECK-COUNT-4: memref.prefetch %arg1[%[[PLACE]], %{{.+}}], read, locality<2>, data
// CHECK-NOT:     memref.prefetch
func.func private @large(%i: tensor<100xi32>, %t: tensor<20000x64xf32> {ktn.constant}, %out: tensor<100x64xf32>) -> tensor<100x64xf32> attributes {ktn.kernel = "gather"} {
  %y = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
      ins(%i : tensor<100xi32>) outs(%out : tensor<100x64xf32>) {
  ^bb0(%in: i32, %o: f32):
    %row = arith.index_cast %in : i32 to index
    %column = linalg.index 1 : index
    %e = tensor.extract %t[%row, %column] : tensor<20000x64xf32>
    linalg.yield %e : f32
  } -> tensor<100x64xf32>
  return %y : tensor<100x64xf32>
}

// A near cache holds this table, and of short rows many are loaded at a time.
// CHECK-LABEL: func private @small(
// CHECK-NOT:   memref.prefetch
func.func private @small(%i: tensor<100xi32>, %t: tensor<2000x64xf32> {ktn.constant}, %out: tensor<100x64xf32>) -> tensor<100x64xf32> attributes {ktn.kernel = "gather"} {
  %y = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
      ins(%i : tensor<100xi32>) outs(%out : tensor<100x64xf32>) {
  ^bb0(%in: i32, %o: f32):
    %row = arith.index_cast %in : i32 to index
    %column = linalg.index 1 : index
    %e = tensor.extract %t[%row, %column] : tensor<2000x64xf32>
    linalg.yield %e : f32
  } -> tensor<100x64xf32>
  return %y : tensor<100x64xf32>
}

// CHECK-LABEL: func private @short_rows(
// CHECK-NOT:   memref.prefetch
func.func private @short_rows(%i: tensor<100xi32>, %t: tensor<200000x16xf32> {ktn.constant}, %out: tensor<100x16xf32>) -> tensor<100x16xf32> attributes {ktn.kernel = "gather"} {
  %y = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
      ins(%i : tensor<100xi32>) outs(%out : tensor<100x16xf32>) {
  ^bb0(%in: i32, %o: f32):
    %row = arith.index_cast %in : i32 to index
    %column = linalg.index 1 : index
    %e = tensor.extract %t[%row, %column] : tensor<200000x16xf32>
    linalg.yield %e : f32
  } -> tensor<100x16xf32>
  return %y : tensor<100x16xf32>
}
