// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 stores-at-once=12" | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" | FileCheck %s --check-prefix=ATONCE

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#e = affine_map<(m, n) -> (m, n)>
#c = affine_map<(m, n) -> (n)>

// The last three of 20 steps are made row by row, each of which is stored
// before the next one is multiplied. The sums begin with what is added.
// CHECK-LABEL:  func private @ends(
// CHECK:         %[[START:.+]] = vector.load %arg2[{{.+}}] : memref<48xf32>, vector<16xf32>
// CHECK:         %[[END:.+]] = arith.constant 17 : index
// CHECK:         %{{.+}}:24 = scf.for %{{.+}} = %{{.+}} to %[[END]] step %{{.+}} iter_args(%{{[^ ]+}} = %[[START]],
// CHECK:         scf.yield
// CHECK-COUNT-9: arith.addf {{.+}} fastmath<contract>
// CHECK-NOT:     arith.addf
// CHECK-COUNT-3: vector.store
// CHECK-NOT:     vector.store
// CHECK:         llvm.fence syncscope("singlethread") acq_rel
// CHECK-COUNT-9: arith.addf {{.+}} fastmath<contract>
// CHECK-NOT:     arith.addf
// CHECK-COUNT-3: vector.store
// CHECK-NOT:     vector.store
// CHECK:         llvm.fence
// ATONCE-LABEL: func private @ends(
// ATONCE:       vector.load %arg2[{{.+}}] : memref<48xf32>, vector<16xf32>
// ATONCE-NOT:   llvm.fence
// ATONCE-LABEL: func private @some_columns(
func.func private @ends(%x: tensor<16x20xf32>, %w: tensor<20x48xf32> {ktn.constant}, %b: tensor<48xf32> {ktn.constant}, %out: tensor<16x48xf32>) -> tensor<16x48xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x48xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x48xf32>) -> tensor<16x48xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<16x20xf32>, tensor<20x48xf32>) outs(%start : tensor<16x48xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<16x48xf32>
  %biased = linalg.generic {indexing_maps = [#e, #c, #e], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %b : tensor<16x48xf32>, tensor<48xf32>) outs(%out : tensor<16x48xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %t = arith.addf %a, %c : f32
    %m = arith.maximumf %t, %zero : f32
    linalg.yield %m : f32
  } -> tensor<16x48xf32>
  return %biased : tensor<16x48xf32>
}

// Lanes behind the last column would begin with what is behind the last number.
// CHECK-LABEL: func private @some_columns(
// CHECK:       arith.addf %{{[^ ]+}}, %{{[^ ]+}} : vector
func.func private @some_columns(%x: tensor<16x20xf32>, %w: tensor<20x45xf32> {ktn.constant}, %b: tensor<45xf32> {ktn.constant}, %out: tensor<16x45xf32>) -> tensor<16x45xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x45xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x45xf32>) -> tensor<16x45xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<16x20xf32>, tensor<20x45xf32>) outs(%start : tensor<16x45xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<16x45xf32>
  %biased = linalg.generic {indexing_maps = [#e, #c, #e], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %b : tensor<16x45xf32>, tensor<45xf32>) outs(%out : tensor<16x45xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %t = arith.addf %a, %c : f32
    linalg.yield %t : f32
  } -> tensor<16x45xf32>
  return %biased : tensor<16x45xf32>
}

// What differs from row to row is added at the end.
// CHECK-LABEL: func private @other_rows(
// CHECK:       arith.addf %{{[^ ]+}}, %{{[^ ]+}} : vector
func.func private @other_rows(%x: tensor<16x20xf32>, %w: tensor<20x48xf32> {ktn.constant}, %b: tensor<16x48xf32>, %out: tensor<16x48xf32>) -> tensor<16x48xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x48xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x48xf32>) -> tensor<16x48xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<16x20xf32>, tensor<20x48xf32>) outs(%start : tensor<16x48xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<16x48xf32>
  %added = linalg.generic {indexing_maps = [#e, #e, #e], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %b : tensor<16x48xf32>, tensor<16x48xf32>) outs(%out : tensor<16x48xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %t = arith.addf %a, %c : f32
    linalg.yield %t : f32
  } -> tensor<16x48xf32>
  return %added : tensor<16x48xf32>
}
