// RUN: keratin-opt %s --ktn-emit-plain-loops --split-input-file | FileCheck %s

#conv_x = affine_map<(n, h, w, o, kh, kw, c) -> (n, h * 2 + kh, w * 2 + kw, c)>
#conv_w = affine_map<(n, h, w, o, kh, kw, c) -> (kh, kw, c, o)>
#conv_y = affine_map<(n, h, w, o, kh, kw, c) -> (n, h, w, o)>
#all = affine_map<(n, h, w, o) -> (n, h, w, o)>
#channel = affine_map<(n, h, w, o) -> (o)>

// The sum of a window is carried by the loops of the reduction, what follows it
// is applied to the finished sum, and the element is stored once.
// CHECK-LABEL: func private @conv(
// CHECK-SAME:    %[[X:.+]]: memref<?x9x9x3xf32>, %[[W:.+]]: memref<3x3x3x5xf32>, %[[BIAS:.+]]: memref<5xf32>, %[[Y:.+]]: memref<?x4x4x5xf32>)
// CHECK-NOT:     ->
// CHECK:         %[[N:.+]] = memref.dim
// CHECK:         scf.for %{{.+}} = %{{.+}} to %[[N]]
// CHECK-COUNT-3:   scf.for
// CHECK:             %[[SUM:.+]] = scf.for {{.+}} iter_args(
// CHECK:               arith.mulf
// CHECK-NEXT:          arith.addf
// CHECK:             %[[B:.+]] = memref.load %[[BIAS]]
// CHECK:             %[[V:.+]] = arith.addf %[[SUM]], %[[B]]
// CHECK:             memref.store %[[V]], %[[Y]]
// CHECK-NOT:         memref.store
func.func private @conv(%x: tensor<?x9x9x3xf32>, %w: tensor<3x3x3x5xf32>, %bias: tensor<5xf32>, %out: tensor<?x4x4x5xf32>) -> tensor<?x4x4x5xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<?x4x4x5xf32>) -> tensor<?x4x4x5xf32>
  %sum = linalg.generic {indexing_maps = [#conv_x, #conv_w, #conv_y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<?x9x9x3xf32>, tensor<3x3x3x5xf32>) outs(%start : tensor<?x4x4x5xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x4x4x5xf32>
  %y = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%sum, %bias : tensor<?x4x4x5xf32>, tensor<5xf32>) outs(%out : tensor<?x4x4x5xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<?x4x4x5xf32>
  return %y : tensor<?x4x4x5xf32>
}

// -----

// A pad is the border everywhere and then the middle, shifted.
// CHECK-LABEL: func private @pad(
// CHECK-SAME:    %[[X:.+]]: memref<4x8xf32>, %[[Y:.+]]: memref<4x11xf32>)
// CHECK-DAG:     %[[BORDER:.+]] = arith.constant 5.0{{.+}} : f32
// CHECK:         memref.store %[[BORDER]], %[[Y]]
// CHECK:         %[[TO:.+]] = arith.addi %[[J:.+]], %{{.+}} : index
// CHECK:         %[[V:.+]] = memref.load %[[X]][%[[I:.+]], %[[J]]]
// CHECK:         memref.store %[[V]], %[[Y]][%[[I]], %[[TO]]]
func.func private @pad(%x: tensor<4x8xf32>, %out: tensor<4x11xf32>) -> tensor<4x11xf32> attributes {ktn.kernel = "pad"} {
  %border = arith.constant 5.0 : f32
  %y = tensor.pad %x low[0, 1] high[0, 2] {
  ^bb0(%i: index, %j: index):
    tensor.yield %border : f32
  } : tensor<4x8xf32> to tensor<4x11xf32>
  return %y : tensor<4x11xf32>
}

// -----

// Of two accumulators that move together only the wanted one is stored.
// CHECK-LABEL: func private @argmax(
// CHECK-SAME:    %[[X:.+]]: memref<?x8xf32>, %[[Y:.+]]: memref<?xi64>)
// CHECK:         %[[BOTH:.+]]:2 = scf.for
// CHECK:         memref.store %[[BOTH]]#1, %[[Y]]
func.func private @argmax(%x: tensor<?x8xf32>, %out: tensor<?xi64>) -> tensor<?xi64> attributes {ktn.kernel = "reduce"} {
  %c0 = arith.constant 0 : index
  %lowest = arith.constant 0xFF800000 : f32
  %first = arith.constant 0 : i64
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %values = tensor.empty(%n) : tensor<?xf32>
  %v0 = linalg.fill ins(%lowest : f32) outs(%values : tensor<?xf32>) -> tensor<?xf32>
  %i0 = linalg.fill ins(%first : i64) outs(%out : tensor<?xi64>) -> tensor<?xi64>
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x8xf32>) outs(%v0, %i0 : tensor<?xf32>, tensor<?xi64>) {
  ^bb0(%a: f32, %v: f32, %i: i64):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i64
    %more = arith.cmpf ogt, %a, %v : f32
    %vn = arith.select %more, %a, %v : f32
    %in = arith.select %more, %k, %i : i64
    linalg.yield %vn, %in : f32, i64
  } -> (tensor<?xf32>, tensor<?xi64>)
  return %r#1 : tensor<?xi64>
}

// -----

// The extent of a value with a border is told by its source and the border.
// CHECK-LABEL: func private @sum_with_border(
// CHECK-SAME:    %[[X:.+]]: memref<?x4xf32>, %{{.+}}: memref<4xf32>)
// CHECK:         memref.dim %[[X]]
// CHECK:         %[[N:.+]] = memref.dim %[[X]]
// CHECK:         %[[LOW:.+]] = arith.addi %[[N]], %c1
// CHECK:         %[[ALL:.+]] = arith.addi %[[LOW]], %c2
// CHECK:         scf.for %{{.+}} = %{{.+}} to %[[ALL]]
func.func private @sum_with_border(%x: tensor<?x4xf32>, %out: tensor<4xf32>) -> tensor<4xf32> attributes {ktn.kernel = "reduce"} {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[1, 0] high[2, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<?x4xf32> to tensor<?x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%out : tensor<4xf32>) -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}
      ins(%p : tensor<?x4xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// The extent of joined pieces is the sum of theirs.
// CHECK-LABEL: func private @sum_of_both(
// CHECK-SAME:    %[[A:.+]]: memref<?x4xf32>, %[[B:.+]]: memref<?x4xf32>, %{{.+}}: memref<4xf32>)
// CHECK:         memref.dim %[[A]]
// CHECK:         %[[N:.+]] = memref.dim %[[B]]
// CHECK:         %[[M:.+]] = memref.dim %[[A]]
// CHECK:         %[[ALL:.+]] = arith.addi %[[M]], %[[N]]
// CHECK:         scf.for %{{.+}} = %{{.+}} to %[[ALL]]
func.func private @sum_of_both(%a: tensor<?x4xf32>, %b: tensor<?x4xf32>, %out: tensor<4xf32>) -> tensor<4xf32> attributes {ktn.kernel = "reduce"} {
  %zero = arith.constant 0.0 : f32
  %p = tensor.concat dim(0) %a, %b : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%out : tensor<4xf32>) -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}
      ins(%p : tensor<?x4xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%v: f32, %o: f32):
    %s = arith.addf %v, %o : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// A sum whose places do not tell its loops is made in the first destination; the
// second has the same elements in the end.
// CHECK-LABEL: func private @twice(
// CHECK-SAME:    %{{.+}}: memref<4xf32>, %[[A:.+]]: memref<7xf32>, %[[B:.+]]: memref<7xf32>)
// CHECK-NOT:     memref.store %{{.+}}, %[[B]]
// CHECK:         memref.copy %[[A]], %[[B]]
func.func private @twice(%x: tensor<4xf32>, %a: tensor<7xf32>, %b: tensor<7xf32>) -> (tensor<7xf32>, tensor<7xf32>) attributes {ktn.kernel = "reduce"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%a : tensor<7xf32>) -> tensor<7xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i + j)>], iterator_types = ["reduction", "reduction"]}
      ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%start : tensor<7xf32>) {
  ^bb0(%p: f32, %q: f32, %s: f32):
    %t = arith.mulf %p, %q : f32
    %u = arith.addf %s, %t : f32
    linalg.yield %u : f32
  } -> tensor<7xf32>
  return %y, %y : tensor<7xf32>, tensor<7xf32>
}

// -----

// A border may be computed from what the kernel is given.
// CHECK-LABEL: func private @border(
// CHECK-SAME:    %[[S:[a-z0-9]+]]: f32, %[[OUT:[a-z0-9]+]]: memref<9xf32>)
// CHECK:         %[[BORDER:.+]] = arith.addf %[[S]], %[[S]]
// CHECK:         memref.store %[[BORDER]], %[[OUT]]
func.func private @border(%x: tensor<8xf32>, %s: f32, %out: tensor<9xf32>) -> tensor<9xf32> attributes {ktn.kernel = "pad"} {
  %y = tensor.pad %x low[1] high[0] {
  ^bb0(%i: index):
    %v = arith.addf %s, %s : f32
    tensor.yield %v : f32
  } : tensor<8xf32> to tensor<9xf32>
  return %y : tensor<9xf32>
}
