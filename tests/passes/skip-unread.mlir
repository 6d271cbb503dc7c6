// RUN: keratin-opt %s --ktn-skip-unread | FileCheck %s

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#even = affine_map<(d0, d1, d2, d3) -> (d0, d1 * 2, d3)>
#fourth = affine_map<(d0, d1, d2, d3) -> (d0, d1 * 4, d3)>
#unit = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 * 2 + d4, d3)>
#window = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 + d4, d3)>
#strided = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 * 2 + d4, d3)>
#taps = affine_map<(d0, d1, d2, d3, d4) -> (d4, d3, d2)>
#sum5 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>
#weights = affine_map<(d0, d1, d2, d3) -> (d3, d2)>
#sum4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>

// A window with a residual, of which two products read every second row: the
// window has a stride of 2, and so has the residual.
// CHECK-DAG:   #[[WINDOW:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 * 2 + d4, d3)>
// CHECK-DAG:   #[[ROWS:.*]] = affine_map<(d0, d1, d2) -> (d0, d1 * 2, d2)>
// CHECK-DAG:   #[[LEFT:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
// CHECK-DAG:   #[[FAR:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1 * 2, d3)>
// CHECK-DAG:   #[[FIRST:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3)>
// CHECK-LABEL: func @block(
// CHECK:         linalg.generic {indexing_maps = [#[[WINDOW]], {{.*}}ins(%{{.*}} : tensor<?x11x4xf32>, {{.*}}) outs(%{{.*}} : tensor<?x5x4xf32>)
// CHECK:         linalg.generic {indexing_maps = [{{#map[0-9]*}}, #[[ROWS]], {{.*}}ins(%{{.*}} : tensor<?x5x4xf32>, tensor<?x9x4xf32>)
// CHECK:         linalg.generic {indexing_maps = [#[[FIRST]], {{.*}}outs(%{{.*}} : tensor<?x5x8xf32>)
// CHECK:         linalg.generic {indexing_maps = [#[[LEFT]], {{.*}}outs(%{{.*}} : tensor<?x5x8xf32>)
// CHECK:         linalg.generic {indexing_maps = [#[[FAR]], {{.*}}outs(%{{.*}} : tensor<?x3x8xf32>)
func.func @block(%x: tensor<?x11x4xf32>, %r: tensor<?x9x4xf32>, %w: tensor<3x4x4xf32>, %w0: tensor<1x4x8xf32>, %w1: tensor<4x8xf32>)
    -> (tensor<?x5x8xf32>, tensor<?x5x8xf32>, tensor<?x3x8xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x11x4xf32>
  %e = tensor.empty(%n) : tensor<?x9x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x9x4xf32>) -> tensor<?x9x4xf32>
  %0 = linalg.generic {indexing_maps = [#window, #taps, #sum5], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<?x11x4xf32>, tensor<3x4x4xf32>) outs(%f : tensor<?x9x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<?x9x4xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0, %r : tensor<?x9x4xf32>, tensor<?x9x4xf32>) outs(%e : tensor<?x9x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<?x9x4xf32>
  %g = tensor.empty(%n) : tensor<?x5x8xf32>
  %h = linalg.fill ins(%zero : f32) outs(%g : tensor<?x5x8xf32>) -> tensor<?x5x8xf32>
  %2 = linalg.generic {indexing_maps = [#unit, #taps, #sum5], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%1, %w0 : tensor<?x9x4xf32>, tensor<1x4x8xf32>) outs(%h : tensor<?x5x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<?x5x8xf32>
  %3 = linalg.generic {indexing_maps = [#even, #weights, #sum4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%1, %w1 : tensor<?x9x4xf32>, tensor<4x8xf32>) outs(%h : tensor<?x5x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<?x5x8xf32>
  %i = tensor.empty(%n) : tensor<?x3x8xf32>
  %j = linalg.fill ins(%zero : f32) outs(%i : tensor<?x3x8xf32>) -> tensor<?x3x8xf32>
  %4 = linalg.generic {indexing_maps = [#fourth, #weights, #sum4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%1, %w1 : tensor<?x9x4xf32>, tensor<4x8xf32>) outs(%j : tensor<?x3x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<?x3x8xf32>
  return %2, %3, %4 : tensor<?x5x8xf32>, tensor<?x5x8xf32>, tensor<?x3x8xf32>
}

// A window of three taps reads what is between, and a caller reads all.
// CHECK-LABEL: func @all_read(
// CHECK:         linalg.generic {{.*}}outs(%{{.*}} : tensor<2x9x4xf32>)
// CHECK:         linalg.generic {{.*}}outs(%{{.*}} : tensor<2x9x4xf32>)
func.func @all_read(%x: tensor<2x9x4xf32>, %w: tensor<3x4x8xf32>, %w1: tensor<4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x5x8xf32>, tensor<2x9x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x9x4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<2x9x4xf32>) outs(%e : tensor<2x9x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = math.exp %a : f32
    linalg.yield %s : f32
  } -> tensor<2x9x4xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<2x9x4xf32>) outs(%e : tensor<2x9x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = math.sin %a : f32
    linalg.yield %s : f32
  } -> tensor<2x9x4xf32>
  %g = tensor.empty() : tensor<2x4x8xf32>
  %h = linalg.fill ins(%zero : f32) outs(%g : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %2 = linalg.generic {indexing_maps = [#strided, #taps, #sum5], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%0, %w : tensor<2x9x4xf32>, tensor<3x4x8xf32>) outs(%h : tensor<2x4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x4x8xf32>
  %i = tensor.empty() : tensor<2x5x8xf32>
  %j = linalg.fill ins(%zero : f32) outs(%i : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %3 = linalg.generic {indexing_maps = [#even, #weights, #sum4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%1, %w1 : tensor<2x9x4xf32>, tensor<4x8xf32>) outs(%j : tensor<2x5x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x5x8xf32>
  return %2, %3, %1 : tensor<2x4x8xf32>, tensor<2x5x8xf32>, tensor<2x9x4xf32>
}
