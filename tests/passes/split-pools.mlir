// RUN: keratin-opt %s --ktn-split-pools --split-input-file | FileCheck %s

#x = affine_map<(n, p, c, k) -> (n, p, k)>
#w = affine_map<(n, p, c, k) -> (k, c)>
#y = affine_map<(n, p, c, k) -> (n, p, c)>
#same = affine_map<(n, p, c) -> (n, p, c)>
#all = affine_map<(n, c, p) -> (n, p, c)>
#max = affine_map<(n, c, p) -> (n, c)>

// 64 points of 4 KiB are a band.
// CHECK-DAG:   #[[POINT:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1 * 64 + d3, d2)>
// CHECK-DAG:   #[[OF_BAND:.+]] = affine_map<(d0, d1, d2, d3) -> (d3)>
// CHECK-DAG:   #[[BAND:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-DAG:   #[[BANDS:.+]] = affine_map<(d0, d1, d2) -> (d0, d2, d1)>
// CHECK-DAG:   #[[ALL:.+]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func @points(
// CHECK-DAG:     %[[WINDOW:.+]] = tensor.empty() : tensor<64xf32>
// CHECK-DAG:     %[[START:.+]] = linalg.fill {{.+}} -> tensor<?x32x1024xf32>
// CHECK:         %[[PARTS:.+]] = linalg.generic {indexing_maps = [#[[POINT]], #[[OF_BAND]], #[[BAND]]], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%{{.+}}, %[[WINDOW]] : {{.+}}) outs(%[[START]] :
// CHECK:           arith.maximumf
// CHECK:         %[[MOST:.+]] = linalg.generic {indexing_maps = [#[[BANDS]], #[[ALL]]], iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[PARTS]] :
// CHECK:           arith.maximumf
// CHECK:         return %[[MOST]]
func.func @points(%points: tensor<?x2048x128xf32>, %weights: tensor<128x1024xf32>) -> tensor<?x1024xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %n = tensor.dim %points, %c0 : tensor<?x2048x128xf32>
  %e = tensor.empty(%n) : tensor<?x2048x1024xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x2048x1024xf32>) -> tensor<?x2048x1024xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%points, %weights : tensor<?x2048x128xf32>, tensor<128x1024xf32>) outs(%f : tensor<?x2048x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %m, %s : f32
    linalg.yield %t : f32
  } -> tensor<?x2048x1024xf32>
  %r = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p : tensor<?x2048x1024xf32>) outs(%e : tensor<?x2048x1024xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.maximumf %a, %zero : f32
    linalg.yield %t : f32
  } -> tensor<?x2048x1024xf32>
  %em = tensor.empty(%n) : tensor<?x1024xf32>
  %fm = linalg.fill ins(%lowest : f32) outs(%em : tensor<?x1024xf32>) -> tensor<?x1024xf32>
  %max = linalg.generic {indexing_maps = [#all, #max], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%r : tensor<?x2048x1024xf32>) outs(%fm : tensor<?x1024xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.maximumf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<?x1024xf32>
  return %max : tensor<?x1024xf32>
}

// -----

#all = affine_map<(n, c, p) -> (n, p, c)>
#max = affine_map<(n, c, p) -> (n, c)>

// Nothing makes these points right before.
// CHECK-LABEL: func @given(
// CHECK-COUNT-1: linalg.generic
// CHECK-NOT:     linalg.generic
func.func @given(%points: tensor<4x2048x1024xf32>) -> tensor<4x1024xf32> {
  %lowest = arith.constant 0xFF800000 : f32
  %em = tensor.empty() : tensor<4x1024xf32>
  %fm = linalg.fill ins(%lowest : f32) outs(%em : tensor<4x1024xf32>) -> tensor<4x1024xf32>
  %most = linalg.generic {indexing_maps = [#all, #max], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%points : tensor<4x2048x1024xf32>) outs(%fm : tensor<4x1024xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.maximumf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<4x1024xf32>
  return %most : tensor<4x1024xf32>
}

// -----

#x = affine_map<(n, p, c, k) -> (n, p, k)>
#w = affine_map<(n, p, c, k) -> (k, c)>
#y = affine_map<(n, p, c, k) -> (n, p, c)>
#all = affine_map<(n, c, p) -> (n, p, c)>
#max = affine_map<(n, c, p) -> (n, c)>

// A sum that begins with something is not begun once for each band.
// CHECK-LABEL: func @begun(
// CHECK-COUNT-2: linalg.generic
// CHECK-NOT:     linalg.generic
func.func @begun(%points: tensor<1x2048x128xf32>, %weights: tensor<128x1024xf32>) -> tensor<1x1024xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<1x2048x1024xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x2048x1024xf32>) -> tensor<1x2048x1024xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%points, %weights : tensor<1x2048x128xf32>, tensor<128x1024xf32>) outs(%f : tensor<1x2048x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %m, %s : f32
    linalg.yield %t : f32
  } -> tensor<1x2048x1024xf32>
  %em = tensor.empty() : tensor<1x1024xf32>
  %fm = linalg.fill ins(%one : f32) outs(%em : tensor<1x1024xf32>) -> tensor<1x1024xf32>
  %sum = linalg.generic {indexing_maps = [#all, #max], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p : tensor<1x2048x1024xf32>) outs(%fm : tensor<1x1024xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<1x1024xf32>
  return %sum : tensor<1x1024xf32>
}

// -----

#same = affine_map<(n, p, c) -> (n, p, c)>
#all = affine_map<(n, c, p) -> (n, p, c)>
#max = affine_map<(n, c, p) -> (n, c)>

// What is made of nothing follows from no product.
// CHECK-LABEL: func @counted(
// CHECK-COUNT-2: linalg.generic
// CHECK-NOT:     linalg.generic
func.func @counted() -> tensor<1x1024xf32> {
  %lowest = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<1x2048x1024xf32>
  %numbers = linalg.generic {indexing_maps = [#same], iterator_types = ["parallel", "parallel", "parallel"]} outs(%e : tensor<1x2048x1024xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 1 : index
    %n = arith.index_cast %i : index to i32
    %t = arith.sitofp %n : i32 to f32
    linalg.yield %t : f32
  } -> tensor<1x2048x1024xf32>
  %em = tensor.empty() : tensor<1x1024xf32>
  %fm = linalg.fill ins(%lowest : f32) outs(%em : tensor<1x1024xf32>) -> tensor<1x1024xf32>
  %most = linalg.generic {indexing_maps = [#all, #max], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%numbers : tensor<1x2048x1024xf32>) outs(%fm : tensor<1x1024xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.maximumf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<1x1024xf32>
  return %most : tensor<1x1024xf32>
}
