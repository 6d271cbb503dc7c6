// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" --split-input-file | FileCheck %s --check-prefix=PANEL
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 attention-keys=96" --split-input-file | FileCheck %s --check-prefix=RUNNING
// RUN: keratin-opt %s --ktn-emit-plain-loops --split-input-file | FileCheck %s --check-prefix=PLAIN

// Keys are copied to a panel in the order of tiles; scores, 8 queries by three
// vectors, are masked on their way to a panel of all 32 queries, and become
// weights there: the exponential takes the place of the score.
// CHECK-LABEL: func private @attention(
// CHECK:         %[[KEYS:.+]] = memref.alloca() {{.+}} : memref<1x1x16x48xf32>
// CHECK:         %[[SCORES:.+]] = memref.alloca() {{.+}} : memref<32x48xf32>
// CHECK-NOT:     memref.alloca
// CHECK:         vector.store %{{.+}}, %[[KEYS]]
// CHECK:         scf.for {{.+}} step %c8
// CHECK:           scf.for {{.+}} -> (vector<16xf32>, vector<16xf32>, vector<8xf32>,
// CHECK:           arith.select {{.+}} : vector<16xi1>, vector<16xf32>
// CHECK:           vector.store %{{.+}}, %[[SCORES]]
// CHECK:         scf.for
// CHECK:           vector.load %[[SCORES]]
// CHECK:           arith.maximumf
// CHECK:           math.exp
// CHECK:           vector.store %{{.+}}, %[[SCORES]]
// CHECK:           arith.{{divf|mulf}}
// CHECK:           vector.store %{{.+}}, %[[SCORES]]
// CHECK:         memref.load %[[SCORES]]
// CHECK:         vector.store %{{.+}}, %arg4[
// PANEL-LABEL: func private @attention(
// PANEL-NOT:     ktn.scratch
// RUNNING-LABEL: func private @attention(
// RUNNING-NOT:     ktn.scratch
// PLAIN-LABEL: func private @attention(
// PLAIN-NOT:     vector
#map = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map4 = affine_map<(d0, d1, d2) -> (d0, d2)>
#map5 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map6 = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
#map7 = affine_map<(d0, d1, d2) -> (d1, d0, d2)>
func.func private @attention(%arg0: tensor<?x16x32xf32>, %arg1: tensor<?x40x16xf32>, %arg2: tensor<?x40xi1>, %arg3: tensor<?x40x16xf32>, %arg4: tensor<32x?x16xf32>) -> tensor<32x?x16xf32> attributes {ktn.kernel = "attention"} {
  %cst = arith.constant 0xFF800000 : f32
  %cst_0 = arith.constant -1.000000e+30 : f32
  %cst_1 = arith.constant 0.000000e+00 : f32
  %c0 = arith.constant 0 : index
  %dim = tensor.dim %arg0, %c0 : tensor<?x16x32xf32>
  %0 = tensor.empty(%dim) : tensor<?x32x40xf32>
  %1 = linalg.fill ins(%cst_1 : f32) outs(%0 : tensor<?x32x40xf32>) -> tensor<?x32x40xf32>
  %2 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<?x16x32xf32>, tensor<?x40x16xf32>) outs(%1 : tensor<?x32x40xf32>) {
  ^bb0(%in: f32, %in_8: f32, %out: f32):
    %19 = arith.mulf %in, %in_8 : f32
    %20 = arith.addf %out, %19 : f32
    linalg.yield %20 : f32
  } -> tensor<?x32x40xf32>
  %dim_2 = tensor.dim %arg0, %c0 : tensor<?x16x32xf32>
  %3 = tensor.empty(%dim_2) : tensor<?x32x40xf32>
  %4 = linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%2, %arg2 : tensor<?x32x40xf32>, tensor<?x40xi1>) outs(%3 : tensor<?x32x40xf32>) {
  ^bb0(%in: f32, %in_8: i1, %out: f32):
    %19 = arith.select %in_8, %in, %cst_0 : f32
    linalg.yield %19 : f32
  } -> tensor<?x32x40xf32>
  %dim_3 = tensor.dim %arg0, %c0 : tensor<?x16x32xf32>
  %5 = tensor.empty(%dim_3) : tensor<?x32xf32>
  %6 = linalg.fill ins(%cst : f32) outs(%5 : tensor<?x32xf32>) -> tensor<?x32xf32>
  %7 = linalg.generic {indexing_maps = [#map3, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%4 : tensor<?x32x40xf32>) outs(%6 : tensor<?x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %19 = arith.maximumf %in, %out : f32
    linalg.yield %19 : f32
  } -> tensor<?x32xf32>
  %dim_4 = tensor.dim %arg0, %c0 : tensor<?x16x32xf32>
  %8 = tensor.empty(%dim_4) : tensor<?x32x40xf32>
  %9 = linalg.generic {indexing_maps = [#map3, #map5, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%4, %7 : tensor<?x32x40xf32>, tensor<?x32xf32>) outs(%8 : tensor<?x32x40xf32>) {
  ^bb0(%in: f32, %in_8: f32, %out: f32):
    %19 = arith.subf %in, %in_8 : f32
    %20 = math.exp %19 : f32
    linalg.yield %20 : f32
  } -> tensor<?x32x40xf32>
  %dim_5 = tensor.dim %arg0, %c0 : tensor<?x16x32xf32>
  %10 = tensor.empty(%dim_5) : tensor<?x32xf32>
  %11 = linalg.fill ins(%cst_1 : f32) outs(%10 : tensor<?x32xf32>) -> tensor<?x32xf32>
  %12 = linalg.generic {indexing_maps = [#map3, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%9 : tensor<?x32x40xf32>) outs(%11 : tensor<?x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %19 = arith.addf %in, %out : f32
    linalg.yield %19 : f32
  } -> tensor<?x32xf32>
  %dim_6 = tensor.dim %arg0, %c0 : tensor<?x16x32xf32>
  %13 = tensor.empty(%dim_6) : tensor<?x32x40xf32>
  %14 = linalg.generic {indexing_maps = [#map3, #map5, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%9, %12 : tensor<?x32x40xf32>, tensor<?x32xf32>) outs(%13 : tensor<?x32x40xf32>) {
  ^bb0(%in: f32, %in_8: f32, %out: f32):
    %19 = arith.divf %in, %in_8 : f32
    %weight = arith.mulf %19, %cst_0 : f32
    linalg.yield %weight : f32
  } -> tensor<?x32x40xf32>
  %dim_7 = tensor.dim %arg0, %c0 : tensor<?x16x32xf32>
  %15 = tensor.empty(%dim_7) : tensor<?x32x16xf32>
  %16 = linalg.fill ins(%cst_1 : f32) outs(%15 : tensor<?x32x16xf32>) -> tensor<?x32x16xf32>
  %17 = linalg.generic {indexing_maps = [#map8, #map6, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%14, %arg3 : tensor<?x32x40xf32>, tensor<?x40x16xf32>) outs(%16 : tensor<?x32x16xf32>) {
  ^bb0(%in: f32, %in_8: f32, %out: f32):
    %19 = arith.mulf %in, %in_8 : f32
    %20 = arith.addf %out, %19 : f32
    linalg.yield %20 : f32
  } -> tensor<?x32x16xf32>
  %18 = linalg.generic {indexing_maps = [#map7, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%17 : tensor<?x32x16xf32>) outs(%arg4 : tensor<32x?x16xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<32x?x16xf32>
  return %18 : tensor<32x?x16xf32>
}

// -----

// Many queries are done in blocks, with keys put in order before.
// What has no room on the stack is in the arena.
// CHECK-LABEL: func private @blocks(
// With room for fewer keys a block of queries goes over them in blocks: the
// maxima, totals and sums of values so far are beside the scores, and outputs
// are divided by the totals after the last block.
// RUNNING-LABEL: func private @blocks(
// RUNNING-SAME:    {ktn.scratch}
// RUNNING:         %[[SCORES:.+]] = memref.reinterpret_cast {{.+}} strides: [96, 1]
// RUNNING:         %[[SUMS:.+]] = memref.reinterpret_cast {{.+}} strides: [16, 1]
// RUNNING:         %[[MOST:.+]] = memref.reinterpret_cast {{.+}} strides: [1]
// RUNNING:         %[[TOTAL:.+]] = memref.reinterpret_cast {{.+}} strides: [1]
// RUNNING:         memref.store {{.+}}, %[[MOST]]
// RUNNING:         memref.store {{.+}}, %[[TOTAL]]
// RUNNING:         vector.store {{.+}}, %[[SUMS]]
// RUNNING:         scf.for {{.+}} step %c96
// RUNNING:           vector.store {{.+}}, %[[SCORES]]
// RUNNING:           memref.load %[[MOST]]
// RUNNING:           arith.maximumf
// RUNNING:           math.exp
// RUNNING:           vector.store {{.+}}, %[[SCORES]]
// RUNNING:           memref.store {{.+}}, %[[MOST]]
// RUNNING:           vector.load %[[SUMS]]
// RUNNING:           vector.store {{.+}}, %[[SUMS]]
// RUNNING:         memref.load %[[TOTAL]]
// RUNNING:         arith.divf
// PANEL-LABEL: func private @blocks(
// PANEL-SAME:    {ktn.scratch}
// PANEL-NOT:     memref.alloca() {{.+}}x640x640
// PANEL:         memref.reinterpret_cast {{.+}} sizes: [{{[0-9]+}}, 6{{[0-9]+}}]
#map = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map4 = affine_map<(d0, d1, d2) -> (d0, d2)>
#map5 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map6 = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
#map7 = affine_map<(d0, d1, d2) -> (d1, d0, d2)>
func.func private @blocks(%arg0: tensor<?x16x640xf32>, %arg1: tensor<?x640x16xf32>, %arg2: tensor<?x640xi1>, %arg3: tensor<?x640x16xf32>, %arg4: tensor<640x?x16xf32>) -> tensor<640x?x16xf32> attributes {ktn.kernel = "attention"} {
  %cst = arith.constant 0xFF800000 : f32
  %cst_0 = arith.constant -1.000000e+30 : f32
  %cst_1 = arith.constant 0.000000e+00 : f32
  %c0 = arith.constant 0 : index
  %dim = tensor.dim %arg0, %c0 : tensor<?x16x640xf32>
  %0 = tensor.empty(%dim) : tensor<?x640x640xf32>
  %1 = linalg.fill ins(%cst_1 : f32) outs(%0 : tensor<?x640x640xf32>) -> tensor<?x640x640xf32>
  %2 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<?x16x640xf32>, tensor<?x640x16xf32>) outs(%1 : tensor<?x640x640xf32>) {
  ^bb0(%in: f32, %in_8: f32, %out: f32):
    %19 = arith.mulf %in, %in_8 : f32
    %20 = arith.addf %out, %19 : f32
    linalg.yield %20 : f32
  } -> tensor<?x640x640xf32>
  %dim_2 = tensor.dim %arg0, %c0 : tensor<?x16x640xf32>
  %3 = tensor.empty(%dim_2) : tensor<?x640x640xf32>
  %4 = linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%2, %arg2 : tensor<?x640x640xf32>, tensor<?x640xi1>) outs(%3 : tensor<?x640x640xf32>) {
  ^bb0(%in: f32, %in_8: i1, %out: f32):
    %19 = arith.select %in_8, %in, %cst_0 : f32
    linalg.yield %19 : f32
  } -> tensor<?x640x640xf32>
  %dim_3 = tensor.dim %arg0, %c0 : tensor<?x16x640xf32>
  %5 = tensor.empty(%dim_3) : tensor<?x640xf32>
  %6 = linalg.fill ins(%cst : f32) outs(%5 : tensor<?x640xf32>) -> tensor<?x640xf32>
  %7 = linalg.generic {indexing_maps = [#map3, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%4 : tensor<?x640x640xf32>) outs(%6 : tensor<?x640xf32>) {
  ^bb0(%in: f32, %out: f32):
    %19 = arith.maximumf %in, %out : f32
    linalg.yield %19 : f32
  } -> tensor<?x640xf32>
  %dim_4 = tensor.dim %arg0, %c0 : tensor<?x16x640xf32>
  %8 = tensor.empty(%dim_4) : tensor<?x640x640xf32>
  %9 = linalg.generic {indexing_maps = [#map3, #map5, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%4, %7 : tensor<?x640x640xf32>, tensor<?x640xf32>) outs(%8 : tensor<?x640x640xf32>) {
  ^bb0(%in: f32, %in_8: f32, %out: f32):
    %19 = arith.subf %in, %in_8 : f32
    %20 = math.exp %19 : f32
    linalg.yield %20 : f32
  } -> tensor<?x640x640xf32>
  %dim_5 = tensor.dim %arg0, %c0 : tensor<?x16x640xf32>
  %10 = tensor.empty(%dim_5) : tensor<?x640xf32>
  %11 = linalg.fill ins(%cst_1 : f32) outs(%10 : tensor<?x640xf32>) -> tensor<?x640xf32>
  %12 = linalg.generic {indexing_maps = [#map3, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%9 : tensor<?x640x640xf32>) outs(%11 : tensor<?x640xf32>) {
  ^bb0(%in: f32, %out: f32):
    %19 = arith.addf %in, %out : f32
    linalg.yield %19 : f32
  } -> tensor<?x640xf32>
  %dim_6 = tensor.dim %arg0, %c0 : tensor<?x16x640xf32>
  %13 = tensor.empty(%dim_6) : tensor<?x640x640xf32>
  %14 = linalg.generic {indexing_maps = [#map3, #map5, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%9, %12 : tensor<?x640x640xf32>, tensor<?x640xf32>) outs(%13 : tensor<?x640x640xf32>) {
  ^bb0(%in: f32, %in_8: f32, %out: f32):
    %19 = arith.divf %in, %in_8 : f32
    %weight = arith.mulf %19, %cst_0 : f32
    linalg.yield %weight : f32
  } -> tensor<?x640x640xf32>
  %dim_7 = tensor.dim %arg0, %c0 : tensor<?x16x640xf32>
  %15 = tensor.empty(%dim_7) : tensor<?x640x16xf32>
  %16 = linalg.fill ins(%cst_1 : f32) outs(%15 : tensor<?x640x16xf32>) -> tensor<?x640x16xf32>
  %17 = linalg.generic {indexing_maps = [#map8, #map6, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%14, %arg3 : tensor<?x640x640xf32>, tensor<?x640x16xf32>) outs(%16 : tensor<?x640x16xf32>) {
  ^bb0(%in: f32, %in_8: f32, %out: f32):
    %19 = arith.mulf %in, %in_8 : f32
    %20 = arith.addf %out, %19 : f32
    linalg.yield %20 : f32
  } -> tensor<?x640x16xf32>
  %18 = linalg.generic {indexing_maps = [#map7, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%17 : tensor<?x640x16xf32>) outs(%arg4 : tensor<640x?x16xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<640x?x16xf32>
  return %18 : tensor<640x?x16xf32>
}

// -----

// Where rows are a softmax and queries are read along their depth, a query is in
// each lane: 40 of them in three vectors, of which the last one has some twice. Scores are
// sums of keys, one after the other, times vectors of queries; neither they nor
// their powers are joined over lanes; keys and values are read where they are;
// what the mask says of a query and a key is transposed. Keys at both ends that
// no query of a block sees are left out, if each sees one; with them the block
// is computed once more where scores are not far above theirs.
// CHECK-LABEL: func private @lanes(
// CHECK-DAG:     %[[QUERIES:.+]] = memref.alloca() {{.+}} : memref<20x48xf32>
// CHECK-DAG:     %[[SCORES:.+]] = memref.alloca() {{.+}} : memref<64x48xf32>
// CHECK-DAG:     %[[SUMS:.+]] = memref.alloca() {{.+}} : memref<24x48xf32>
// CHECK-DAG:     %[[MASK:.+]] = memref.alloca() {{.+}} : memref<96x48xi1>
// CHECK-NOT:     ktn.scratch
// CHECK:         vector.load %arg0[{{.+}}] : memref<3x40x20xf32>, vector<16xf32>
// CHECK:         vector.shuffle
// CHECK:         vector.store %{{.+}}, %[[QUERIES]]
// CHECK:         vector.load %{{.+}} : memref<3x40x64xi8>, vector<16xi8>
// CHECK:         vector.shuffle {{.+}} vector<16xi8>
// CHECK:         scf.while
// CHECK:           scf.yield
// CHECK:         %[[ALL_SEE:.+]] = vector.reduction <and>
// CHECK-NEXT:    scf.while (%{{.+}} = %[[ALL_SEE]])
// CHECK:           scf.while {{.+}} : (index) -> index
// CHECK:             vector.reduction <or>
// CHECK:           scf.while {{.+}} : (index) -> index
// CHECK:         scf.for
// CHECK:           memref.load %arg1
// CHECK:           vector.load %[[QUERIES]]
// CHECK:           arith.select {{.+}} : vector<16xi1>, vector<16xf32>
// CHECK:           vector.store %{{.+}}, %[[SCORES]]
// CHECK:           arith.maximumf {{.+}} : vector<16xf32>
// CHECK:         scf.for
// CHECK:           vector.load %[[SCORES]]
// CHECK:           math.exp {{.+}} : vector<16xf32>
// CHECK:           vector.store %{{.+}}, %[[SCORES]]
// CHECK:         scf.for
// CHECK:           memref.load %arg3
// CHECK:           vector.load %[[SCORES]]
// CHECK:         vector.store %{{.+}}, %[[SUMS]]
// CHECK:         scf.condition
// CHECK:         arith.divf
// CHECK:         vector.shuffle
// CHECK:         vector.store %{{.+}}, %arg4
#lanes = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
#lanes1 = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
#lanes2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#lanes3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#lanes4 = affine_map<(d0, d1, d2) -> (d0, d1)>
#lanes5 = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
func.func private @lanes(%arg0: tensor<3x40x20xf32>, %arg1: tensor<3x64x20xf32>, %arg2: tensor<3x40x64xi1>, %arg3: tensor<3x64x24xf32>, %arg4: tensor<3x40x24xf32>) -> tensor<3x40x24xf32> attributes {ktn.kernel = "attention"} {
  %nothing = arith.constant 0xFF800000 : f32
  %low = arith.constant -1.000000e+30 : f32
  %zero = arith.constant 0.000000e+00 : f32
  %0 = tensor.empty() : tensor<3x40x64xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<3x40x64xf32>) -> tensor<3x40x64xf32>
  %2 = linalg.generic {indexing_maps = [#lanes, #lanes1, #lanes2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<3x40x20xf32>, tensor<3x64x20xf32>) outs(%1 : tensor<3x40x64xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %product = arith.mulf %in, %in_0 : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  } -> tensor<3x40x64xf32>
  %3 = linalg.generic {indexing_maps = [#lanes3, #lanes3, #lanes3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%2, %arg2 : tensor<3x40x64xf32>, tensor<3x40x64xi1>) outs(%0 : tensor<3x40x64xf32>) {
  ^bb0(%in: f32, %in_0: i1, %out: f32):
    %chosen = arith.select %in_0, %in, %low : f32
    linalg.yield %chosen : f32
  } -> tensor<3x40x64xf32>
  %4 = tensor.empty() : tensor<3x40xf32>
  %5 = linalg.fill ins(%nothing : f32) outs(%4 : tensor<3x40xf32>) -> tensor<3x40xf32>
  %6 = linalg.generic {indexing_maps = [#lanes3, #lanes4], iterator_types = ["parallel", "parallel", "reduction"]} ins(%3 : tensor<3x40x64xf32>) outs(%5 : tensor<3x40xf32>) {
  ^bb0(%in: f32, %out: f32):
    %most = arith.maximumf %out, %in : f32
    linalg.yield %most : f32
  } -> tensor<3x40xf32>
  %7 = linalg.generic {indexing_maps = [#lanes3, #lanes4, #lanes3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%3, %6 : tensor<3x40x64xf32>, tensor<3x40xf32>) outs(%0 : tensor<3x40x64xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %difference = arith.subf %in, %in_0 : f32
    %power = math.exp %difference : f32
    linalg.yield %power : f32
  } -> tensor<3x40x64xf32>
  %8 = linalg.fill ins(%zero : f32) outs(%4 : tensor<3x40xf32>) -> tensor<3x40xf32>
  %9 = linalg.generic {indexing_maps = [#lanes3, #lanes4], iterator_types = ["parallel", "parallel", "reduction"]} ins(%7 : tensor<3x40x64xf32>) outs(%8 : tensor<3x40xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %out, %in : f32
    linalg.yield %sum : f32
  } -> tensor<3x40xf32>
  %10 = linalg.generic {indexing_maps = [#lanes3, #lanes4, #lanes3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%7, %9 : tensor<3x40x64xf32>, tensor<3x40xf32>) outs(%0 : tensor<3x40x64xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %weight = arith.divf %in, %in_0 : f32
    linalg.yield %weight : f32
  } -> tensor<3x40x64xf32>
  %11 = tensor.empty() : tensor<3x40x24xf32>
  %12 = linalg.fill ins(%zero : f32) outs(%11 : tensor<3x40x24xf32>) -> tensor<3x40x24xf32>
  %13 = linalg.generic {indexing_maps = [#lanes, #lanes5, #lanes2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%10, %arg3 : tensor<3x40x64xf32>, tensor<3x64x24xf32>) outs(%12 : tensor<3x40x24xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %product = arith.mulf %in, %in_0 : f32
    %sum = arith.addf %out, %product : f32
    linalg.yield %sum : f32
  } -> tensor<3x40x24xf32>
  %14 = linalg.generic {indexing_maps = [#lanes3, #lanes3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%13 : tensor<3x40x24xf32>) outs(%arg4 : tensor<3x40x24xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<3x40x24xf32>
  return %14 : tensor<3x40x24xf32>
}
