// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 pairs" --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" --split-input-file | FileCheck %s --check-prefix=OFF

// 22 rows are copied, as large as the weights, which are panels of two vectors
// of one gate. Two tiles of 11 rows are multiplied with a panel of each gate,
// and then their sums, which are in memory, are completed, four rows at once.
// CHECK-LABEL: func private @step(
// CHECK-SAME:    %[[X:[^:]+]]: memref<22x128xf32>,
// CHECK-SAME:    %[[W:[^:]+]]: memref<4x130x32xf32> {ktn.constant, ktn.packed = {block = 32 : i64, columns_inside, paired = array<i64: 128, 128>}, ktn.unpacked_type = tensor<128x4x32xf32>}
// CHECK-SAME:    ktn.kernel = "paired"
// CHECK-DAG:     %[[SUMS:.+]] = memref.alloca() {{.+}} : memref<2816xf32>
// CHECK-DAG:     %[[COPIES:.+]] = memref.alloca() {{.+}} : memref<22x144xf32>
// CHECK-DAG:     %[[FACTS:.+]] = memref.alloca() {{.+}} : memref<22x2xf32>
// CHECK:         vector.shuffle
// CHECK:         vector.store {{.+}}, %[[COPIES]]
// CHECK-COUNT-2: memref.store {{.+}}, %[[FACTS]]
// CHECK:         scf.for {{.+}} = %c0{{.*}} to %c4
// CHECK:           scf.for {{.+}} = %c0{{.*}} to %c22{{.*}} step %c11
// CHECK:             vector.load %[[W]]
// CHECK:             llvm.inline_asm has_side_effects "vaddps 0(
// CHECK:             vector.store {{.+}}, %[[SUMS]]
// CHECK:         vector.load %[[SUMS]]
// CHECK:         memref.load %[[FACTS]]
// CHECK:         math.exp {{.+}} : vector<64xf32>
// OFF-LABEL: func private @step(
// OFF-SAME:    memref<2x128x4x16xf32>
// OFF-NOT:     vaddps
func.func private @step(%x: tensor<22x128xf32>, %w: tensor<128x4x32xf32> {ktn.constant}, %state: tensor<22x32xf32>, %out: tensor<22x32xf32>) -> tensor<22x32xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<22x4x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<22x4x32xf32>) -> tensor<22x4x32xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, g, n, k) -> (m, k)>, affine_map<(m, g, n, k) -> (k, g, n)>, affine_map<(m, g, n, k) -> (m, g, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<22x128xf32>, tensor<128x4x32xf32>) outs(%start : tensor<22x4x32xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<22x4x32xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, 0, n)>, affine_map<(m, n) -> (m, 3, n)>, affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %sum, %state : tensor<22x4x32xf32>, tensor<22x4x32xf32>, tensor<22x32xf32>) outs(%out : tensor<22x32xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32, %o: f32):
    %g = math.exp %a : f32
    %p = arith.mulf %g, %c : f32
    %q = arith.addf %p, %s : f32
    linalg.yield %q : f32
  } -> tensor<22x32xf32>
  return %y : tensor<22x32xf32>
}
func.func @call(%x: tensor<22x128xf32>, %state: tensor<22x32xf32>) -> tensor<22x32xf32> {
  %w = arith.constant dense<0.5> : tensor<128x4x32xf32>
  %out = tensor.empty() : tensor<22x32xf32>
  %y = func.call @step(%x, %w, %state, %out) : (tensor<22x128xf32>, tensor<128x4x32xf32>, tensor<22x32xf32>, tensor<22x32xf32>) -> tensor<22x32xf32>
  return %y : tensor<22x32xf32>
}
