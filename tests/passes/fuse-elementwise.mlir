// RUN: keratin-opt %s --ktn-fuse-elementwise | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#vec = affine_map<(d0) -> (d0)>

// One reader: one loop. A size that is asked of a dynamic batch is no reader.
// CHECK-LABEL: func @chain(
// CHECK:         linalg.generic
// CHECK:         math.exp
// CHECK:         arith.negf
// CHECK-NOT:     linalg.generic
func.func @chain(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.exp %a : f32
    linalg.yield %r : f32
  } -> tensor<?x4xf32>
  %m = tensor.dim %0, %c0 : tensor<?x4xf32>
  %f = tensor.empty(%m) : tensor<?x4xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<?x4xf32>) outs(%f : tensor<?x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.negf %a : f32
    linalg.yield %r : f32
  } -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// Two readers: nothing is computed twice.
// CHECK-LABEL: func @two_readers(
// CHECK-COUNT-2: linalg.generic
func.func @two_readers(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %e = tensor.empty() : tensor<4x4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.exp %a : f32
    linalg.yield %r : f32
  } -> tensor<4x4xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.negf %a : f32
    linalg.yield %r : f32
  } -> tensor<4x4xf32>
  return %0, %1 : tensor<4x4xf32>, tensor<4x4xf32>
}

// A square root for each row is not computed again for each element of the row,
// a product is.
// CHECK-LABEL: func @broadcast(
// CHECK:         linalg.generic
// CHECK:         math.sqrt
// CHECK:         linalg.generic
// CHECK:         arith.mulf
// CHECK:         arith.addf
// CHECK:         arith.addf
// CHECK-NOT:     linalg.generic
func.func @broadcast(%x: tensor<4x8xf32>, %s: tensor<4xf32>, %t: tensor<4xf32>) -> tensor<4x8xf32> {
  %es = tensor.empty() : tensor<4xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %root = linalg.generic {indexing_maps = [#vec, #vec], iterator_types = ["parallel"]}
      ins(%s : tensor<4xf32>) outs(%es : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.sqrt %a : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %square = linalg.generic {indexing_maps = [#vec, #vec], iterator_types = ["parallel"]}
      ins(%t : tensor<4xf32>) outs(%es : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.mulf %a, %a : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %root, %square : tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
    %p = arith.addf %a, %b : f32
    %q = arith.addf %p, %c : f32
    linalg.yield %q : f32
  } -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// A view between two chains moves behind the second, and they are one.
// CHECK-LABEL: func @view(
// CHECK:         %[[UNSET:.+]] = tensor.empty(%{{.+}}) : tensor<?x2x3xf32>
// CHECK:         %[[Y:.+]] = linalg.generic
// CHECK-SAME:      outs(%[[UNSET]] :
// CHECK:         math.exp
// CHECK:         arith.addf
// CHECK-NOT:     linalg.generic
// CHECK:         tensor.collapse_shape %[[Y]]
func.func @view(%x: tensor<?x2x3xf32>, %b: tensor<6xf32>) -> tensor<?x6xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x2x3xf32>
  %e3 = tensor.empty(%n) : tensor<?x2x3xf32>
  %e2 = tensor.empty(%n) : tensor<?x6xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<?x2x3xf32>) outs(%e3 : tensor<?x2x3xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.exp %a : f32
    linalg.yield %r : f32
  } -> tensor<?x2x3xf32>
  %flat = tensor.collapse_shape %0 [[0], [1, 2]] : tensor<?x2x3xf32> into tensor<?x6xf32>
  %1 = linalg.generic {indexing_maps = [#id, affine_map<(d0, d1) -> (d1)>, #id], iterator_types = ["parallel", "parallel"]}
      ins(%flat, %b : tensor<?x6xf32>, tensor<6xf32>) outs(%e2 : tensor<?x6xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %r = arith.addf %a, %c : f32
    linalg.yield %r : f32
  } -> tensor<?x6xf32>
  return %1 : tensor<?x6xf32>
}

// A square and what is made of it: three tensors of which others read the first
// anyway, so the square is computed by each of its readers and never stored. A
// sign of one bit is smaller than what it is made of, and is stored; a root is
// not cheap.
// CHECK-LABEL: func @again(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<4x8xf32>
// CHECK:         %[[SIGN:.+]] = linalg.generic
// CHECK-SAME:      ins(%[[X]] :
// CHECK:           arith.cmpf
// CHECK:         %[[ROOT:.+]] = linalg.generic
// CHECK-SAME:      ins(%[[X]] :
// CHECK:           math.sqrt
// CHECK:         linalg.generic
// CHECK-SAME:      ins(%[[X]], %[[SIGN]], %[[ROOT]] :
// CHECK:           arith.mulf
// CHECK:         linalg.generic
// CHECK-SAME:      ins(%[[X]], %[[SIGN]], %[[ROOT]] :
// CHECK:           arith.mulf
// CHECK-NOT:     linalg.generic
func.func @again(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %bits = tensor.empty() : tensor<4x8xi1>
  %zero = arith.constant 0.0 : f32
  %square = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.mulf %a, %a : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %sign = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%bits : tensor<4x8xi1>) {
  ^bb0(%a: f32, %o: i1):
    %r = arith.cmpf ogt, %a, %zero : f32
    linalg.yield %r : i1
  } -> tensor<4x8xi1>
  %root = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.sqrt %a : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %square, %sign, %root : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xi1>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: i1, %d: f32, %o: f32):
    %r = arith.select %c, %b, %d : f32
    %s = arith.addf %r, %a : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  %z = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %square, %sign, %root : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xi1>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: i1, %d: f32, %o: f32):
    %r = arith.select %c, %d, %b : f32
    %s = arith.subf %r, %a : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  return %y, %z : tensor<4x8xf32>, tensor<4x8xf32>
}

// What is looked up and added to a product stays out of the sum, which is to be
// done with the product; without one it is looked up where it is added.
// CHECK-LABEL: func @looked_up(
// CHECK:         tensor.extract
// CHECK-NEXT:    linalg.yield
// CHECK:         iterator_types = ["parallel", "parallel", "reduction"]
// CHECK:         arith.addf
// CHECK:         linalg.generic
// CHECK-NOT:     linalg.generic
// CHECK:         math.exp
// CHECK:         linalg.generic
// CHECK:         tensor.extract
// CHECK-NEXT:    arith.addf
// CHECK-NOT:     linalg.generic
#lhs = affine_map<(d0, d1, d2) -> (d0, d2)>
#rhs = affine_map<(d0, d1, d2) -> (d2, d1)>
#out = affine_map<(d0, d1, d2) -> (d0, d1)>
func.func @looked_up(%t: tensor<9x4xf32>, %i: tensor<8xindex>, %x: tensor<8x3xf32>, %w: tensor<3x4xf32>, %z: tensor<8x4xf32>)
    -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x4xf32>
  %rows = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%i : tensor<8xindex>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%a: index, %o: f32):
    %column = linalg.index 1 : index
    %r = tensor.extract %t[%a, %column] : tensor<9x4xf32>
    linalg.yield %r : f32
  } -> tensor<8x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
  %p = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x3xf32>, tensor<3x4xf32>) outs(%f : tensor<8x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<8x4xf32>
  %sum = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p, %rows : tensor<8x4xf32>, tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  %more = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%i : tensor<8xindex>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%a: index, %o: f32):
    %column = linalg.index 1 : index
    %next = arith.addi %column, %column : index
    %r = tensor.extract %t[%a, %next] : tensor<9x4xf32>
    linalg.yield %r : f32
  } -> tensor<8x4xf32>
  %plain = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%z, %more : tensor<8x4xf32>, tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<8x4xf32>
  return %y, %plain : tensor<8x4xf32>, tensor<8x4xf32>
}

#channels = affine_map<(d0, d1) -> (d1)>
#rows = affine_map<(d0, d1) -> (d0)>

// What is off the mean of a channel is made of a tensor that others read, too,
// and a few numbers: each reader computes it, also the one that adds up its
// squares over the rows. What is off the mean of a row stays for the sum along
// it, as of a layer normalization.
// CHECK-LABEL: func @off_mean(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<4x8xf32>, %[[M:[a-z0-9]+]]: tensor<8xf32>, %[[R:[a-z0-9]+]]: tensor<4xf32>
// CHECK:         linalg.generic
// CHECK-SAME:      iterator_types = ["parallel", "reduction"]} ins(%[[X]], %[[M]] :
// CHECK:           arith.subf
// CHECK:           arith.mulf
// CHECK:           arith.addf
// CHECK:         linalg.generic
// CHECK-SAME:      ins(%[[X]], %[[M]] :
// CHECK:         %[[OFF:.+]] = linalg.generic
// CHECK-SAME:      ins(%[[X]], %[[R]] :
// CHECK:         linalg.generic
// CHECK-SAME:      iterator_types = ["parallel", "reduction"]} ins(%[[OFF]] :
// CHECK:         linalg.generic
// CHECK-SAME:      ins(%[[OFF]] :
// CHECK-NOT:     linalg.generic
func.func @off_mean(%x: tensor<4x8xf32>, %m: tensor<8xf32>, %rm: tensor<4xf32>) -> (tensor<8xf32>, tensor<4x8xf32>, tensor<4xf32>, tensor<4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %ec = tensor.empty() : tensor<8xf32>
  %er = tensor.empty() : tensor<4xf32>
  %fc = linalg.fill ins(%zero : f32) outs(%ec : tensor<8xf32>) -> tensor<8xf32>
  %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<4xf32>) -> tensor<4xf32>
  %off = linalg.generic {indexing_maps = [#id, #channels, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<4x8xf32>, tensor<8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.subf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %v = linalg.generic {indexing_maps = [affine_map<(c, n) -> (n, c)>, affine_map<(c, n) -> (c)>], iterator_types = ["parallel", "reduction"]}
      ins(%off : tensor<4x8xf32>) outs(%fc : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.mulf %a, %a : f32
    %r = arith.addf %s, %o : f32
    linalg.yield %r : f32
  } -> tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%off : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.exp %a : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %roff = linalg.generic {indexing_maps = [#id, #rows, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %rm : tensor<4x8xf32>, tensor<4xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.subf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %rv = linalg.generic {indexing_maps = [#id, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%roff : tensor<4x8xf32>) outs(%fr : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.mulf %a, %a : f32
    %r = arith.addf %s, %o : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %ry = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%roff : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.exp %a : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  return %v, %y, %rv, %ry : tensor<8xf32>, tensor<4x8xf32>, tensor<4xf32>, tensor<4x8xf32>
}

#point = affine_map<(i, j, k) -> (i, k)>
#other = affine_map<(i, j, k) -> (j, k)>
#apart = affine_map<(i, j, k) -> (i, j, k)>
#each = affine_map<(i, j, k) -> (i, j)>

// Distances have the loops of a product, and no tensor of all differences. What
// is beside numbers of its row alone has no more of them than it was.
// CHECK-LABEL: func @distances(
// CHECK-SAME:    %[[X:.+]]: tensor<4x8xf32>, %[[Y:.+]]: tensor<5x8xf32>,
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[X]], %[[Y]] : tensor<4x8xf32>, tensor<5x8xf32>) outs(%{{.+}} : tensor<4x5xf32>)
// CHECK:           arith.subf
// CHECK-NEXT:      arith.mulf
// CHECK-NEXT:      arith.addf
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel", "parallel", "parallel"]} {{.+}} outs(%{{.+}} : tensor<4x5x8xf32>)
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel", "parallel", "reduction"]} ins(%{{.+}} : tensor<4x5x8xf32>)
func.func @distances(%x: tensor<4x8xf32>, %y: tensor<5x8xf32>, %z: tensor<4x5x8xf32>) -> (tensor<4x5xf32>, tensor<4x5xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x5x8xf32>
  %es = tensor.empty() : tensor<4x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%es : tensor<4x5xf32>) -> tensor<4x5xf32>
  %squares = linalg.generic {indexing_maps = [#point, #other, #apart], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %y : tensor<4x8xf32>, tensor<5x8xf32>) outs(%e : tensor<4x5x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.subf %a, %b : f32
    %s = arith.mulf %r, %r : f32
    linalg.yield %s : f32
  } -> tensor<4x5x8xf32>
  %d = linalg.generic {indexing_maps = [#apart, #each], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%squares : tensor<4x5x8xf32>) outs(%f : tensor<4x5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x5xf32>
  %shifted = linalg.generic {indexing_maps = [#apart, #other, #apart], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%z, %y : tensor<4x5x8xf32>, tensor<5x8xf32>) outs(%e : tensor<4x5x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.subf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<4x5x8xf32>
  %sum = linalg.generic {indexing_maps = [#apart, #each], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%shifted : tensor<4x5x8xf32>) outs(%f : tensor<4x5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x5xf32>
  return %d, %sum : tensor<4x5xf32>, tensor<4x5xf32>
}
