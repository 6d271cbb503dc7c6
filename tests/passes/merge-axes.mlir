// RUN: keratin-opt %s --ktn-merge-axes --split-input-file | FileCheck %s

#x = affine_map<(b, t, h, d, k) -> (b, t, k)>
#w = affine_map<(b, t, h, d, k) -> (k, h, d)>
#y = affine_map<(b, t, h, d, k) -> (b, t, h, d)>
#all = affine_map<(b, t, h, d) -> (b, t, h, d)>
#bias = affine_map<(b, t, h, d) -> (h, d)>

// A projection to three heads of 20 and its bias have 60 columns. The weights
// have them, too, and what reads the heads a view.
// CHECK-LABEL: func @heads(
// CHECK-SAME:    %[[X:.+]]: tensor<?x7x48xf32>, %[[S:.+]]: tensor<3x20xf32>)
// CHECK-DAG:     %[[W:.+]] = arith.constant dense<5.000000e-01> : tensor<48x60xf32>
// CHECK:         %[[P:.+]] = linalg.generic {{.+}} iterator_types = ["parallel", "parallel", "parallel", "reduction"]
// CHECK-SAME:      ins(%[[X]], %[[W]] : tensor<?x7x48xf32>, tensor<48x60xf32>)
// CHECK:         %[[B:.+]] = tensor.collapse_shape %[[S]] {{\[}}[0, 1]]
// CHECK:         %[[Q:.+]] = linalg.generic {{.+}} iterator_types = ["parallel", "parallel", "parallel"]
// CHECK-SAME:      ins(%[[P]], %[[B]] : tensor<?x7x60xf32>, tensor<60xf32>)
// CHECK:         %[[V:.+]] = tensor.expand_shape %[[Q]] {{\[}}[0], [1], [2, 3]] output_shape [%{{.+}}, 7, 3, 20]
// CHECK:         return %[[V]] : tensor<?x7x3x20xf32>
func.func @heads(%x: tensor<?x7x48xf32>, %s: tensor<3x20xf32>) -> tensor<?x7x3x20xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<0.5> : tensor<48x3x20xf32>
  %n = tensor.dim %x, %c0 : tensor<?x7x48xf32>
  %e = tensor.empty(%n) : tensor<?x7x3x20xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x7x3x20xf32>) -> tensor<?x7x3x20xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
    ins(%x, %w : tensor<?x7x48xf32>, tensor<48x3x20xf32>) outs(%f : tensor<?x7x3x20xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %0 = arith.mulf %a, %c : f32
    %1 = arith.addf %0, %o : f32
    linalg.yield %1 : f32
  } -> tensor<?x7x3x20xf32>
  %q = linalg.generic {indexing_maps = [#all, #bias, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%p, %s : tensor<?x7x3x20xf32>, tensor<3x20xf32>) outs(%e : tensor<?x7x3x20xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %0 = arith.addf %a, %c : f32
    linalg.yield %0 : f32
  } -> tensor<?x7x3x20xf32>
  return %q : tensor<?x7x3x20xf32>
}

// -----

#x = affine_map<(b, t, n, h, d) -> (b, t, h, d)>
#w = affine_map<(b, t, n, h, d) -> (h, d, n)>
#y = affine_map<(b, t, n, h, d) -> (b, t, n)>

// The sum over heads and what each of them has is one sum.
// CHECK-LABEL: func @join(
// CHECK-SAME:    %[[X:.+]]: tensor<2x7x3x20xf32>, %[[W:.+]]: tensor<3x20x48xf32>)
// CHECK-DAG:     %[[U:.+]] = tensor.collapse_shape %[[X]] {{\[}}[0], [1], [2, 3]]
// CHECK-DAG:     %[[V:.+]] = tensor.collapse_shape %[[W]] {{\[}}[0, 1], [2]]
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel", "parallel", "parallel", "reduction"]
// CHECK-SAME:      ins(%[[U]], %[[V]] : tensor<2x7x60xf32>, tensor<60x48xf32>) outs(%{{.+}} : tensor<2x7x48xf32>)
func.func @join(%x: tensor<2x7x3x20xf32>, %w: tensor<3x20x48xf32>) -> tensor<2x7x48xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x7x48xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x7x48xf32>) -> tensor<2x7x48xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
    ins(%x, %w : tensor<2x7x3x20xf32>, tensor<3x20x48xf32>) outs(%f : tensor<2x7x48xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %0 = arith.mulf %a, %c : f32
    %1 = arith.addf %0, %o : f32
    linalg.yield %1 : f32
  } -> tensor<2x7x48xf32>
  return %p : tensor<2x7x48xf32>
}

// -----

#x = affine_map<(t, h, d, k) -> (t, k)>
#w = affine_map<(t, h, d, k) -> (k, h, d)>
#turned = affine_map<(t, h, d, k) -> (k, d, h)>
#y = affine_map<(t, h, d, k) -> (t, h, d)>
#all = affine_map<(t, h, d) -> (t, h, d)>
#each = affine_map<(t, h, d) -> (t, d)>

// What is added for each head alike would be read at two axes of one: the
// columns stay as they are, for both to be one kernel. So do those that weights
// have in another order.
// CHECK-LABEL: func @apart(
// CHECK-NOT:     tensor.collapse_shape
// CHECK-NOT:     tensor.expand_shape
// CHECK:         return
func.func @apart(%x: tensor<7x48xf32>, %w: tensor<48x3x20xf32>, %s: tensor<7x20xf32>, %u: tensor<48x20x3xf32>) -> (tensor<7x3x20xf32>, tensor<7x3x20xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<7x3x20xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<7x3x20xf32>) -> tensor<7x3x20xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%x, %w : tensor<7x48xf32>, tensor<48x3x20xf32>) outs(%f : tensor<7x3x20xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %0 = arith.mulf %a, %c : f32
    %1 = arith.addf %0, %o : f32
    linalg.yield %1 : f32
  } -> tensor<7x3x20xf32>
  %q = linalg.generic {indexing_maps = [#all, #each, #all], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%p, %s : tensor<7x3x20xf32>, tensor<7x20xf32>) outs(%e : tensor<7x3x20xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %0 = arith.addf %a, %c : f32
    linalg.yield %0 : f32
  } -> tensor<7x3x20xf32>
  %r = linalg.generic {indexing_maps = [#x, #turned, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%x, %u : tensor<7x48xf32>, tensor<48x20x3xf32>) outs(%f : tensor<7x3x20xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %0 = arith.mulf %a, %c : f32
    %1 = arith.addf %0, %o : f32
    linalg.yield %1 : f32
  } -> tensor<7x3x20xf32>
  return %q, %r : tensor<7x3x20xf32>, tensor<7x3x20xf32>
}

// -----

#x = affine_map<(m, h, d, k) -> (m, k)>
#w = affine_map<(m, h, d, k) -> (k, h, d)>
#y = affine_map<(m, h, d, k) -> (m, h, d)>
#all = affine_map<(m, h, d) -> (m, h, d)>

// The sizes of views of views are plain arithmetic, too.
// CHECK-LABEL: func @view(
// CHECK-NOT:     affine.apply
// CHECK:         tensor.expand_shape %{{.+}} {{\[}}[0], [1, 2]] output_shape [%{{.+}}, 2, 3]
// CHECK-NOT:     affine.apply
// CHECK:         return
func.func @view(%x: tensor<?x4x6xf32>, %w: tensor<6x2x3xf32>) -> tensor<?x2x3xf32> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x4x6xf32>
  %m = arith.muli %n, %c4 : index
  %v = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x4x6xf32> into tensor<?x6xf32>
  %e = tensor.empty(%m) : tensor<?x2x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x2x3xf32>) -> tensor<?x2x3xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%v, %w : tensor<?x6xf32>, tensor<6x2x3xf32>) outs(%f : tensor<?x2x3xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %0 = arith.mulf %a, %c : f32
    %1 = arith.addf %0, %o : f32
    linalg.yield %1 : f32
  } -> tensor<?x2x3xf32>
  %q = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%p : tensor<?x2x3xf32>) outs(%e : tensor<?x2x3xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.absf %a : f32
    linalg.yield %0 : f32
  } -> tensor<?x2x3xf32>
  return %q : tensor<?x2x3xf32>
}

// -----

#both = affine_map<(h, d) -> (h, d)>
#none = affine_map<(h, d) -> ()>

// A number has no columns, but two axes to sum over.
// CHECK-LABEL: func @number(
// CHECK:         linalg.generic {{.+}} iterator_types = ["reduction"]
// CHECK-SAME:      ins(%{{.+}}, %{{.+}} : tensor<60xf32>, tensor<60xf32>) outs(%{{.+}} : tensor<f32>)
func.func @number(%x: tensor<3x20xf32>, %y: tensor<3x20xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %p = linalg.generic {indexing_maps = [#both, #both, #none], iterator_types = ["reduction", "reduction"]}
    ins(%x, %y : tensor<3x20xf32>, tensor<3x20xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %0 = arith.mulf %a, %c : f32
    %1 = arith.addf %0, %o : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  return %p : tensor<f32>
}
