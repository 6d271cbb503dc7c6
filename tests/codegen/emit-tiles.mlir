// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=256 vector-registers=16" --split-input-file | FileCheck %s --check-prefix=AVX2

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(m, n) -> (m, n)>
#bias = affine_map<(m, n) -> (n)>

// A product keeps rows times vectors of sums over the reduction, 6 by 4 of 16
// numbers with 32 registers; its constant operand is wanted in blocks of those
// columns; bias and maximum meet the sums before they are stored.
// CHECK-LABEL: func private @matmul(
// CHECK-SAME:    memref<1x64x64xf32> {ktn.constant, ktn.packed = {block = 64 : i64, dim = 1 : i64}, ktn.unpacked_type = tensor<64x64xf32>}
// CHECK:         scf.for {{.+}} -> ({{((vector<16xf32>(, )?){24})}})
// CHECK:           arith.mulf {{.+}} fastmath<contract> : vector<16xf32>
// CHECK-NEXT:      arith.addf {{.+}} fastmath<contract> : vector<16xf32>
// CHECK:           scf.yield
// CHECK-NOT:       scf.for
// CHECK:           arith.maximumf
// CHECK:           vector.store
// AVX2-LABEL: func private @matmul(
// AVX2-SAME:    memref<4x64x16xf32> {ktn.constant, ktn.packed = {block = 16 : i64, dim = 1 : i64}
// AVX2:         scf.for {{.+}} -> ({{((vector<8xf32>(, )?){12})}})
func.func private @matmul(%x: tensor<84x64xf32>, %w: tensor<64x64xf32> {ktn.constant}, %b: tensor<64xf32>, %out: tensor<84x64xf32>) -> tensor<84x64xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<84x64xf32>) -> tensor<84x64xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<84x64xf32>, tensor<64x64xf32>) outs(%start : tensor<84x64xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<84x64xf32>
  %y = linalg.generic {indexing_maps = [#all, #bias, #all], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %b : tensor<84x64xf32>, tensor<64xf32>) outs(%out : tensor<84x64xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %t = arith.addf %a, %c : f32
    %r = arith.maximumf %t, %zero : f32
    linalg.yield %r : f32
  } -> tensor<84x64xf32>
  return %y : tensor<84x64xf32>
}

// -----

// Rows of unknown number: full tiles, then tiles of half the rows, down to one.
// CHECK-LABEL: func private @ladder(
// CHECK:         memref.dim
// CHECK-COUNT-2: arith.divui
// CHECK:         scf.for
func.func private @ladder(%x: tensor<?x64xf32>, %w: tensor<64x100xf32> {ktn.constant}, %out: tensor<?x100xf32>) -> tensor<?x100xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<?x100xf32>) -> tensor<?x100xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x64xf32>, tensor<64x100xf32>) outs(%start : tensor<?x100xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x100xf32>
  return %sum : tensor<?x100xf32>
}

// -----

#window = affine_map<(h, w, c, kh, kw) -> (h + kh, w + kw, c)>
#taps = affine_map<(h, w, c, kh, kw) -> (kh, kw, c)>
#out = affine_map<(h, w, c, kh, kw) -> (h, w, c)>

// A window over one channel: 4 by 4 neighbouring pixels read the 6 by 6 that
// they share once, and each of the 9 weights once; channels are innermost. The
// last rows come first, for they are the nearest in the cache, and what is
// written may be over them: rows of 1280 bytes, of which the last tile needs all
// 10, end so far behind the 4 of 1024 bytes that come before its own.
// CHECK-LABEL: func private @depthwise(
// CHECK-SAME:    %[[X:[^:]+]]: memref<10x10x32xf32> {ktn.behind = 8704 : i64}, %[[W:[^:]+]]: memref<3x3x32xf32>
// CHECK:         %[[LAST:.+]] = arith.subi %{{.+}}, %c4
// CHECK:         scf.for %[[TURN:.+]] = %c0 to %c8 step %c4
// CHECK:           %[[H:.+]] = arith.subi %[[LAST]], %[[TURN]]
// CHECK:           scf.for %[[V:.+]] = %c0 to %c8 step %c4
// CHECK:             scf.for
// CHECK:               vector.load %[[X]][%[[H]], %[[V]],
// CHECK-COUNT-9:       vector.load %[[W]]
// CHECK-NOT:           vector.load %[[W]]
// CHECK-COUNT-16:      vector.store
// CHECK-NOT:     vector.load
func.func private @depthwise(%x: tensor<10x10x32xf32>, %w: tensor<3x3x32xf32>, %y: tensor<8x8x32xf32>) -> tensor<8x8x32xf32> attributes {ktn.kernel = "depthwise"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%y : tensor<8x8x32xf32>) -> tensor<8x8x32xf32>
  %sum = linalg.generic {indexing_maps = [#window, #taps, #out], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<10x10x32xf32>, tensor<3x3x32xf32>) outs(%start : tensor<8x8x32xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<8x8x32xf32>
  return %sum : tensor<8x8x32xf32>
}

// -----

// A sum along contiguous elements has four vectors of partial sums, and the
// rest of the row, 5 elements, is a vector of its own.
// CHECK-LABEL: func private @sum(
// CHECK:         scf.for {{.+}} -> ({{((vector<16xf32>(, )?){4})}})
// CHECK:         vector.load {{.+}} vector<5xf32>
// CHECK:         vector.extract {{.+}} : f32 from vector<1xf32>
// CHECK:         memref.store
func.func private @sum(%x: tensor<3x133xf32>, %out: tensor<3xf32>) -> tensor<3xf32> attributes {ktn.kernel = "reduce"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<3xf32>) -> tensor<3xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<3x133xf32>) outs(%start : tensor<3xf32>) {
  ^bb0(%a: f32, %s: f32):
    %t = arith.addf %s, %a : f32
    linalg.yield %t : f32
  } -> tensor<3xf32>
  return %sum : tensor<3xf32>
}

// -----

#row = affine_map<(i, j) -> (i, j)>
#perRow = affine_map<(i, j) -> (i)>

// An expensive value that a row needs twice is computed once, by the pass that
// sums it, and kept in a scratch row. Four short rows go through that pass
// before the first of them begins with the next; the last ones go one by one.
// CHECK-LABEL: func private @softmax(
// CHECK-COUNT-3: memref.alloca() {{.+}} : memref<48xf32>
// CHECK:         %[[KEPT:.+]] = memref.alloca() {{.+}} : memref<48xf32>
// CHECK:         scf.for {{.+}} step %c4 {
// CHECK:           math.exp
// CHECK:           vector.store {{.+}}, %[[KEPT]]
// CHECK:           arith.addf
// CHECK-NOT:       vector.load %[[KEPT]]
// CHECK-COUNT-7:   math.exp
// CHECK-NOT:       math.exp
// CHECK:           vector.load %[[KEPT]]
// CHECK:         scf.for
// CHECK:           math.exp
// CHECK:         return
func.func private @softmax(%x: tensor<?x48xf32>, %out: tensor<?x48xf32>) -> tensor<?x48xf32> attributes {ktn.kernel = "rows"} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x48xf32>
  %sums = tensor.empty(%n) : tensor<?xf32>
  %values = tensor.empty(%n) : tensor<?x48xf32>
  %e = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x48xf32>) outs(%values : tensor<?x48xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.exp %a : f32
    linalg.yield %t : f32
  } -> tensor<?x48xf32>
  %start = linalg.fill ins(%zero : f32) outs(%sums : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.generic {indexing_maps = [#row, #perRow], iterator_types = ["parallel", "reduction"]} ins(%e : tensor<?x48xf32>) outs(%start : tensor<?xf32>) {
  ^bb0(%a: f32, %s: f32):
    %t = arith.addf %s, %a : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  %y = linalg.generic {indexing_maps = [#row, #perRow, #row], iterator_types = ["parallel", "parallel"]} ins(%e, %sum : tensor<?x48xf32>, tensor<?xf32>) outs(%out : tensor<?x48xf32>) {
  ^bb0(%a: f32, %s: f32, %o: f32):
    %t = arith.divf %a, %s : f32
    linalg.yield %t : f32
  } -> tensor<?x48xf32>
  return %y : tensor<?x48xf32>
}

// -----

// Rows of a table: the index is the same along the row, so the row is read by
// vectors.
// CHECK-LABEL: func private @gather(
// CHECK-SAME:    %[[TABLE:[^:]+]]: memref<10x32xf32>, %[[AT:[^:]+]]: memref<?xi32>
// CHECK:         %[[I:.+]] = memref.load %[[AT]]
// CHECK:         %[[ROW:.+]] = arith.index_cast %[[I]]
// CHECK:         vector.load %[[TABLE]][%[[ROW]], %{{.+}}]
func.func private @gather(%x: tensor<10x32xf32>, %at: tensor<?xi32>, %out: tensor<?x32xf32>) -> tensor<?x32xf32> attributes {ktn.kernel = "gather"} {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%at : tensor<?xi32>) outs(%out : tensor<?x32xf32>) {
  ^bb0(%a: i32, %o: f32):
    %i = arith.index_cast %a : i32 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %x[%i, %j] : tensor<10x32xf32>
    linalg.yield %v : f32
  } -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

// Truth values are bytes in memory and bits in vectors.
// CHECK-LABEL: func private @compare(
// CHECK:         %[[BITS:.+]] = arith.cmpf
// CHECK:         %[[BYTES:.+]] = arith.extui %[[BITS]] : vector<16xi1> to vector<16xi8>
// CHECK:         vector.store %[[BYTES]]
func.func private @compare(%x: tensor<64xf32>, %y: tensor<64xf32>, %out: tensor<64xi1>) -> tensor<64xi1> attributes {ktn.kernel = "elementwise"} {
  %z = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x, %y : tensor<64xf32>, tensor<64xf32>) outs(%out : tensor<64xi1>) {
  ^bb0(%a: f32, %b: f32, %o: i1):
    %t = arith.cmpf olt, %a, %b : f32
    linalg.yield %t : i1
  } -> tensor<64xi1>
  return %z : tensor<64xi1>
}

// -----

// A kernel that ends in a pad stores the product one column to the right, and
// fills nothing but the border.
// CHECK-LABEL: func private @padded(
// CHECK-SAME:    memref<8x18xf32>)
// CHECK:         scf.for {{.+}} -> (vector<16xf32>
// CHECK-COUNT-8: vector.store {{.+}} : memref<8x18xf32>, vector<16xf32>
// CHECK:         scf.for
// CHECK:           memref.store
// CHECK:         scf.for
// CHECK:           memref.store
// CHECK-NOT:     scf.for
func.func private @padded(%x: tensor<8x4xf32>, %w: tensor<4x16xf32>, %out: tensor<8x18xf32>) -> tensor<8x18xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x4xf32>, tensor<4x16xf32>) outs(%start : tensor<8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<8x16xf32>
  %p = tensor.pad %y low[0, 1] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<8x16xf32> to tensor<8x18xf32>
  return %p : tensor<8x18xf32>
}

// -----

// Columns that are not contiguous, as in q times k transposed, are copied to a
// panel, inside of the loops that they depend on and outside of the rows.
// CHECK-LABEL: func private @scores(
// CHECK-SAME:    %[[Q:[^:]+]]: memref<4x28x8xf32>, %[[K:[^:]+]]: memref<4x32x8xf32>
// CHECK:         %[[PANEL:.+]] = memref.alloca() {{.+}} : memref<1x1x8x32xf32>
// CHECK:         scf.for %[[HEAD:[^ ]+]] =
// CHECK:           memref.load %[[K]][%[[HEAD]],
// CHECK:           vector.store {{.+}}, %[[PANEL]]
// CHECK:           scf.for {{.+}} step
// CHECK:             scf.for {{.+}} iter_args
// CHECK:               vector.load %[[PANEL]]
// CHECK:               memref.load %[[Q]][%[[HEAD]],
func.func private @scores(%q: tensor<4x28x8xf32>, %k: tensor<4x32x8xf32>, %out: tensor<4x28x32xf32>) -> tensor<4x28x32xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<4x28x32xf32>) -> tensor<4x28x32xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<4x28x8xf32>, tensor<4x32x8xf32>) outs(%start : tensor<4x28x32xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<4x28x32xf32>
  return %y : tensor<4x28x32xf32>
}

// Both factors of a product of a tensor with itself are that tensor: a panel of
// one would be read for the other.
// CHECK-LABEL: func private @squares(
// CHECK-SAME:    %[[X:[^:]+]]: memref<4x28x8xf32>
// CHECK-NOT:     memref.alloca
// CHECK:         vector.load %[[X]]
// CHECK:         vector.load %[[X]]
// CHECK-NOT:     memref.alloca
// CHECK:         return
func.func private @squares(%x: tensor<4x28x8xf32>, %out: tensor<4x28x28xf32>) -> tensor<4x28x28xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<4x28x28xf32>) -> tensor<4x28x28xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %x : tensor<4x28x8xf32>, tensor<4x28x8xf32>) outs(%start : tensor<4x28x28xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<4x28x28xf32>
  return %y : tensor<4x28x28xf32>
}

// -----

// A sum so long that one tile walks through more than a cache goes block by
// block over all tiles. The output holds the sums between the blocks; the first
// block starts them, and the last one computes from them what is wanted.
// CHECK-LABEL: func private @long_sum(
// CHECK-SAME:    %[[X:.+]]: memref<16384x28xf32>, %[[Z:.+]]: memref<16384x32xf32>, %[[W:.+]]: memref<28x32xf32>, %[[OUT:.+]]: memref<28x32xf32>
// CHECK:         %[[STEP:.+]] = arith.constant 256 : index
// CHECK:         scf.for %[[FROM:.+]] = %c0 to %[[DEPTH:.+]] step %[[STEP]] {
// CHECK:           %[[TO:.+]] = arith.minui
// CHECK:           %[[FIRST:.+]] = arith.cmpi eq, %[[FROM]], %c0
// CHECK:           %[[SUMS:.+]]:28 = scf.if %[[FIRST]]
// CHECK:           } else {
// CHECK:             vector.load %[[OUT]]
// CHECK:           scf.for %{{.+}} = %[[FROM]] to %[[TO]] {{.+}} -> ({{((vector<16xf32>(, )?){28})}})
// CHECK:           %[[LAST:.+]] = arith.cmpi eq, %[[TO]], %[[DEPTH]]
// CHECK:           scf.if %[[LAST]] {
// CHECK:             arith.subf
// CHECK:             vector.store %{{.+}}, %[[OUT]]
// CHECK:           } else {
// CHECK-NOT:         arith.subf
// CHECK:             vector.store %{{.+}}, %[[OUT]]
func.func private @long_sum(%x: tensor<16384x28xf32>, %z: tensor<16384x32xf32>, %w: tensor<28x32xf32>, %out: tensor<28x32xf32>) -> tensor<28x32xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<28x32xf32>) -> tensor<28x32xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %z : tensor<16384x28xf32>, tensor<16384x32xf32>) outs(%start : tensor<28x32xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<28x32xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%w, %sum : tensor<28x32xf32>, tensor<28x32xf32>) outs(%out : tensor<28x32xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %t = arith.subf %a, %c : f32
    linalg.yield %t : f32
  } -> tensor<28x32xf32>
  return %y : tensor<28x32xf32>
}

// -----

// The passes over a row store each value to one place: a row that is returned
// twice, which the compiler does not make of a model, is left to plain loops,
// and the table of kernels says so.
// CHECK-LABEL: func private @rows_twice(
// CHECK-SAME:    %{{[a-z0-9]+}}: memref<8x16xf32>, %[[A:[a-z0-9]+]]: memref<8x16xf32>, %[[B:[a-z0-9]+]]: memref<8x16xf32>) attributes {ktn.kernel = "rows, plain loops"}
// CHECK-NOT:     vector
// CHECK:         memref.store %[[VALUE:.+]], %[[A]]
// CHECK-NEXT:    memref.store %[[VALUE]], %[[B]]
// CHECK-NOT:     vector
// CHECK:         return
func.func private @rows_twice(%x: tensor<8x16xf32>, %a: tensor<8x16xf32>, %b: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) attributes {ktn.kernel = "rows"} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x16xf32>) outs(%start : tensor<8xf32>) {
  ^bb0(%v: f32, %s: f32):
    %t = arith.addf %s, %v : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<8x16xf32>, tensor<8xf32>) outs(%a : tensor<8x16xf32>) {
  ^bb0(%v: f32, %s: f32, %o: f32):
    %t = arith.divf %v, %s : f32
    linalg.yield %t : f32
  } -> tensor<8x16xf32>
  return %y, %y : tensor<8x16xf32>, tensor<8x16xf32>
}

// -----

// The gradient of the kernel of a depthwise convolution sums over all places;
// its 3 by 3 taps are one tile, which reads the other factor once.
// CHECK-LABEL: func private @depthwise_grad(
// CHECK-SAME:    %[[X:[^:]+]]: memref<2x30x30x32xf32>, %[[Z:[^:]+]]: memref<2x28x28x32xf32>
// CHECK:         scf.for {{.+}} -> ({{((vector<16xf32>(, )?){18})}})
// CHECK:           vector.load %[[X]]
// CHECK:           vector.load %[[Z]]
// CHECK:           vector.load %[[Z]]
// CHECK-NOT:       vector.load %[[Z]]
// CHECK:         return
func.func private @depthwise_grad(%x: tensor<2x30x30x32xf32>, %z: tensor<2x28x28x32xf32>, %out: tensor<3x3x32xf32>) -> tensor<3x3x32xf32> attributes {ktn.kernel = "reduce"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<3x3x32xf32>) -> tensor<3x3x32xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j, c, n, h, w) -> (n, h + i, w + j, c)>, affine_map<(i, j, c, n, h, w) -> (n, h, w, c)>, affine_map<(i, j, c, n, h, w) -> (i, j, c)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %z : tensor<2x30x30x32xf32>, tensor<2x28x28x32xf32>) outs(%start : tensor<3x3x32xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<3x3x32xf32>
  return %sum : tensor<3x3x32xf32>
}

// -----

// So is that of a small image, whose rows and columns are no taps.
// CHECK-LABEL: func private @depthwise_grad_of_small_image(
// CHECK-SAME:    %[[X:[^:]+]]: memref<2x10x10x32xf32>, %[[Z:[^:]+]]: memref<2x8x8x32xf32>
// CHECK:         scf.for {{.+}} -> ({{((vector<16xf32>(, )?){18})}})
// CHECK:           vector.load %[[X]]
// CHECK:           vector.load %[[Z]]
// CHECK:           vector.load %[[Z]]
// CHECK-NOT:       vector.load %[[Z]]
// CHECK:         return
func.func private @depthwise_grad_of_small_image(%x: tensor<2x10x10x32xf32>, %z: tensor<2x8x8x32xf32>, %out: tensor<3x3x32xf32>) -> tensor<3x3x32xf32> attributes {ktn.kernel = "reduce"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<3x3x32xf32>) -> tensor<3x3x32xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j, c, n, h, w) -> (n, h + i, w + j, c)>, affine_map<(i, j, c, n, h, w) -> (n, h, w, c)>, affine_map<(i, j, c, n, h, w) -> (i, j, c)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %z : tensor<2x10x10x32xf32>, tensor<2x8x8x32xf32>) outs(%start : tensor<3x3x32xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<3x3x32xf32>
  return %sum : tensor<3x3x32xf32>
}

// -----

// Rows that are wanted as columns are transposed in squares of one vector each
// way, in four rounds of shuffles, and the rest of the sum element by element.
// CHECK-LABEL: func private @transposed(
// CHECK-SAME:    %[[Q:[^:]+]]: memref<4x28x40xf32>, %[[K:[^:]+]]: memref<4x32x40xf32>
// CHECK:         %[[PANEL:.+]] = memref.alloca() {{.+}} : memref<1x1x40x32xf32>
// CHECK:         scf.for %{{.+}} = %c0 to %c32 step %c16
// CHECK-COUNT-16:  vector.load %[[K]]
// CHECK-COUNT-64:  vector.shuffle
// CHECK-NOT:       vector.shuffle
// CHECK-COUNT-16:  vector.store %{{.+}}, %[[PANEL]]
// CHECK:         scf.for %{{.+}} = %c32 to %c40 step %c1
// CHECK:           memref.load %[[K]]
// CHECK:           vector.store %{{.+}}, %[[PANEL]]
func.func private @transposed(%q: tensor<4x28x40xf32>, %k: tensor<4x32x40xf32>, %out: tensor<4x28x32xf32>) -> tensor<4x28x32xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<4x28x32xf32>) -> tensor<4x28x32xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<4x28x40xf32>, tensor<4x32x40xf32>) outs(%start : tensor<4x28x32xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<4x28x32xf32>
  return %y : tensor<4x28x32xf32>
}

// -----

// A vector times a matrix that is an argument: 16 of its rows at a time along
// all columns, whose sums wait in the output.
// CHECK-LABEL: func private @vector(
// CHECK-SAME:    memref<1x512xf32>, %[[W:[^:]+]]: memref<512x1024xf32>, %[[OUT:[^:]+]]: memref<1x1024xf32>
// CHECK:         scf.for %[[FROM:.+]] = %c0 to %c512 step %c16 {
// CHECK:           scf.for
// CHECK:             vector.load %[[OUT]]
// CHECK:             scf.for %{{.+}} = %[[FROM]] to
// CHECK:               vector.load %[[W]]
func.func private @vector(%x: tensor<1x512xf32>, %w: tensor<512x1024xf32>, %out: tensor<1x1024xf32>) -> tensor<1x1024xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x1024xf32>) -> tensor<1x1024xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x512xf32>, tensor<512x1024xf32>) outs(%start : tensor<1x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x1024xf32>
  return %sum : tensor<1x1024xf32>
}

// -----

// Functions of the sums are computed in a loop over the rows of the tile, for
// four vectors as for one: so there are registers for their constants, and their
// chains hide each other's latency.
// CHECK-LABEL: func private @with_exp(
// CHECK:         %[[SUMS:.+]] = memref.alloca() {{.+}} : memref<448xf32>
// CHECK:         scf.for %[[FIRST:.+]] = %c0 to %c28 step %c14
// CHECK-COUNT-28:  vector.store %{{.+}}, %[[SUMS]]
// CHECK:           scf.for %[[ROW:.+]] = %c0 to %c14 step %c2
// CHECK-COUNT-4:     vector.load %[[SUMS]]{{.+}} : memref<448xf32>, vector<16xf32>
// CHECK:             %[[Y:.+]] = math.exp %{{.+}} : vector<64xf32>
// CHECK:             %[[PART:.+]] = vector.extract_strided_slice %[[Y]] {offsets = [0]
// CHECK:             %[[PLACE:.+]] = arith.addi %[[FIRST]], %[[ROW]]
// CHECK:             vector.store %[[PART]], %{{.+}}[%[[PLACE]], %c0] : memref<28x32xf32>, vector<16xf32>
// AVX2-LABEL: func private @with_exp(
// AVX2:         math.exp %{{.+}} : vector<16xf32>
func.func private @with_exp(%x: tensor<28x64xf32>, %w: tensor<64x32xf32> {ktn.constant}, %out: tensor<28x32xf32>) -> tensor<28x32xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<28x32xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<28x32xf32>) -> tensor<28x32xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<28x64xf32>, tensor<64x32xf32>) outs(%start : tensor<28x32xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<28x32xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<28x32xf32>) outs(%out : tensor<28x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.exp %a : f32
    linalg.yield %t : f32
  } -> tensor<28x32xf32>
  return %y : tensor<28x32xf32>
}

// -----

// So are those of one row side by side, without a loop.
// CHECK-LABEL: func private @row_with_exp(
// CHECK-NOT:     memref.alloca
// CHECK:         vector.shuffle {{.+}} : vector<16xf32>, vector<16xf32>
// CHECK:         math.exp %{{.+}} : vector<64xf32>
func.func private @row_with_exp(%x: tensor<1x64xf32>, %w: tensor<64x128xf32> {ktn.constant}, %out: tensor<1x128xf32>) -> tensor<1x128xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<1x128xf32>) -> tensor<1x128xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x64xf32>, tensor<64x128xf32>) outs(%start : tensor<1x128xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x128xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<1x128xf32>) outs(%out : tensor<1x128xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.exp %a : f32
    linalg.yield %t : f32
  } -> tensor<1x128xf32>
  return %y : tensor<1x128xf32>
}

// -----

// A window goes two ways, and so does the loop over its rows.
// CHECK-LABEL: func private @window_with_exp(
// CHECK-SAME:    %[[R:[^:]+]]: memref<8x8x16xf32> {ktn.in_place}, %{{[^:]+}}: memref<8x8x16xf32>)
// CHECK:         %[[SUMS:.+]] = memref.alloca() {{.+}} : memref<256xf32>
// CHECK:         scf.for %{{.+}} = %c0 to %c8 step %c4
// CHECK:           %[[H:.+]] = arith.subi
// CHECK:           scf.for %[[V:.+]] = %c0 to %c8 step %c4
// CHECK-COUNT-16:      vector.store %{{.+}}, %[[SUMS]]
// CHECK:             scf.for %[[DOWN:.+]] = %c0 to %c4 step %c1
// CHECK-NOT:             scf.for
// CHECK-COUNT-4:         vector.load %[[SUMS]]
// CHECK:                 %[[ROW:.+]] = arith.addi %[[H]], %[[DOWN]]
// CHECK:                 %[[COLUMN:.+]] = arith.addi %[[V]], %c0
// CHECK:                 vector.load %[[R]][%[[ROW]], %[[COLUMN]],
// CHECK:                 math.exp %{{.+}} : vector<64xf32>
func.func private @window_with_exp(%x: tensor<10x10x16xf32>, %w: tensor<3x3x16xf32>, %r: tensor<8x8x16xf32>, %out: tensor<8x8x16xf32>) -> tensor<8x8x16xf32> attributes {ktn.kernel = "depthwise"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8x16xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8x16xf32>) -> tensor<8x8x16xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(h, v, c, y, z) -> (h + y, v + z, c)>, affine_map<(h, v, c, y, z) -> (y, z, c)>, affine_map<(h, v, c, y, z) -> (h, v, c)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<10x10x16xf32>, tensor<3x3x16xf32>) outs(%start : tensor<8x8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<8x8x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(h, v, c) -> (h, v, c)>, affine_map<(h, v, c) -> (h, v, c)>, affine_map<(h, v, c) -> (h, v, c)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%sum, %r : tensor<8x8x16xf32>, tensor<8x8x16xf32>) outs(%out : tensor<8x8x16xf32>) {
  ^bb0(%a: f32, %q: f32, %o: f32):
    %u = math.exp %a : f32
    %t = arith.addf %u, %q : f32
    linalg.yield %t : f32
  } -> tensor<8x8x16xf32>
  return %y : tensor<8x8x16xf32>
}

// -----

// An output that no cache near holds: the lines of a tile are asked for while
// its sums are computed. Few weights are gone along inside of the rows.
// CHECK-LABEL: func private @large_output(
// CHECK:         scf.for %[[FIRST:.+]] = %c0 to %c14334 step %c6
// CHECK:           scf.for %{{.+}} = %c0 to %c2 step %c1
// CHECK:             scf.for %[[STEP:.+]] = %c0 to %c16 step %c1
// CHECK:               %[[HALF:.+]] = arith.shrui %[[STEP]], %c1
// CHECK:               %[[DOWN:.+]] = arith.minui %[[HALF]], %c5
// CHECK:               %[[ROW:.+]] = arith.addi %[[FIRST]], %[[DOWN]]
// CHECK:               memref.prefetch %[[OUT:.+]][%[[ROW]], %{{.+}}], write, locality<3>, data
// CHECK-COUNT-1:       memref.prefetch %[[OUT]][%[[ROW]], %{{.+}}], write
// CHECK:               scf.yield
// CHECK:             vector.store %{{.+}}, %[[OUT]][%[[FIRST]], %{{.+}}] : memref<14334x128xf32>, vector<16xf32>
// CHECK-NOT:         memref.prefetch
// CHECK:         return
func.func private @large_output(%x: tensor<14334x16xf32>, %w: tensor<16x128xf32> {ktn.constant}, %out: tensor<14334x128xf32>) -> tensor<14334x128xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<14334x128xf32>) -> tensor<14334x128xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<14334x16xf32>, tensor<16x128xf32>) outs(%start : tensor<14334x128xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<14334x128xf32>
  return %sum : tensor<14334x128xf32>
}

// -----

// Small weights for each of some parts of what is written: pixels are read once,
// so the parts are inside of the rows of pixels.
// CHECK-LABEL: func private @parts(
// CHECK-SAME:    memref<2x1x64x32xf32> {ktn.constant, ktn.packed = {block = 32 : i64, dim = 1 : i64, outer = array<i64: 0>}
// CHECK:         scf.for %{{.+}} = %c0 to %c40 step %c1
// CHECK:           scf.for %{{.+}} = %c0 to %c2 step %c1
// CHECK:             scf.for %{{.+}} = %c0 to %c56 step %c14
func.func private @parts(%x: tensor<40x56x64xf32>, %w: tensor<2x32x64xf32> {ktn.constant}, %out: tensor<40x56x2x32xf32>) -> tensor<40x56x2x32xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<40x56x2x32xf32>) -> tensor<40x56x2x32xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(h, m, i, n, k) -> (h, m, k)>, affine_map<(h, m, i, n, k) -> (i, n, k)>, affine_map<(h, m, i, n, k) -> (h, m, i, n)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<40x56x64xf32>, tensor<2x32x64xf32>) outs(%start : tensor<40x56x2x32xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %p, %s : f32
    linalg.yield %t : f32
  } -> tensor<40x56x2x32xf32>
  return %sum : tensor<40x56x2x32xf32>
}

// -----

// Weights for each of some heads: all of a head is together.
// CHECK-LABEL: func private @heads(
// CHECK-SAME:    memref<12x2x64x32xf32> {ktn.constant, ktn.packed = {block = 32 : i64, dim = 2 : i64, outer = array<i64: 1>}, ktn.unpacked_type = tensor<64x12x64xf32>}
// CHECK:         vector.load %{{.+}}[%{{.+}}, %{{.+}}, %{{.+}}, %c{{.+}}] : memref<12x2x64x32xf32>
func.func private @heads(%x: tensor<56x64xf32>, %w: tensor<64x12x64xf32> {ktn.constant}, %out: tensor<56x12x64xf32>) -> tensor<56x12x64xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<56x12x64xf32>) -> tensor<56x12x64xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, h, n, k) -> (m, k)>, affine_map<(m, h, n, k) -> (k, h, n)>, affine_map<(m, h, n, k) -> (m, h, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<56x64xf32>, tensor<64x12x64xf32>) outs(%start : tensor<56x12x64xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<56x12x64xf32>
  return %sum : tensor<56x12x64xf32>
}

// -----

// Rows of the right factor that are far apart, and not known ahead of time: a
// block of columns and of the sum is copied to a panel at a time.
// CHECK-LABEL: func private @far(
// CHECK-SAME:    %[[X:[^:]+]]: memref<128x2048xf32>, %[[W:[^:]+]]: memref<2048x1024xf32>
// CHECK:         %[[PANEL:.+]] = memref.alloca() {alignment = 64 : i64} : memref<1x512x48xf32>
// CHECK:         scf.for %[[FROM:.+]] = %c0 to %c2048 step %c512
// CHECK:           scf.for
// CHECK:             vector.load %[[W]]
// CHECK:             arith.subi %{{.+}}, %[[FROM]]
// CHECK:             vector.store %{{.+}}, %[[PANEL]]
// CHECK:             scf.for {{.+}} -> ({{((vector<16xf32>(, )?)+)}})
// CHECK-NOT:           vector.load %[[W]]
// CHECK:               vector.load %[[PANEL]]
func.func private @far(%x: tensor<128x2048xf32>, %w: tensor<2048x1024xf32>, %out: tensor<128x1024xf32>) -> tensor<128x1024xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<128x1024xf32>) -> tensor<128x1024xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<128x2048xf32>, tensor<2048x1024xf32>) outs(%start : tensor<128x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<128x1024xf32>
  return %sum : tensor<128x1024xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// Blocks of rows are outside of the columns where the second cache does not
// hold all rows. While the tiles of a block of weights are computed the next
// block is asked for, some elements a step; after the last one comes the first.
// CHECK-LABEL: func private @streamed(
// CHECK-SAME:    memref<512x512xf32>, %[[W:[^:]+]]: memref<16x512x48xf32>
// CHECK:         %[[FLAT:.+]] = memref.collapse_shape %[[W]] {{.+}} into memref<393216xf32>
// CHECK:         scf.for %[[ROWS:.+]] = %c0 to %c512 step %c{{[0-9]+}} {
// CHECK:           %[[END:.+]] = arith.minui
// CHECK:           scf.for %[[BLOCK:.+]] = %c0 to %c16 step %c1 {
// CHECK:             %[[NEXT:.+]] = arith.addi %[[BLOCK]], %c1
// CHECK:             %[[WRAP:.+]] = arith.cmpi uge, %[[NEXT]], %c16
// CHECK:             arith.select %[[WRAP]], %c0, %[[NEXT]]
// CHECK:             scf.for %{{.+}} = %[[ROWS]] to
// CHECK:               scf.for
// CHECK:                 memref.prefetch %[[FLAT]][%{{.+}}], read, locality<2>, data
// CHECK-NOT:             read, locality
// CHECK:                 scf.yield
func.func private @streamed(%x: tensor<512x512xf32>, %w: tensor<512x768xf32> {ktn.constant}, %out: tensor<512x768xf32>) -> tensor<512x768xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<512x768xf32>) -> tensor<512x768xf32>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<512x512xf32>, tensor<512x768xf32>) outs(%start : tensor<512x768xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<512x768xf32>
  return %sum : tensor<512x768xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// Where each block is read once, the last one is followed by the weights of the
// next product: in memory they are behind it.
// CHECK-LABEL: func private @read_once(
// CHECK-SAME:    memref<64x512xf32>, %[[W:[^:]+]]: memref<16x512x48xf32>
// CHECK:         %[[FLAT:.+]] = memref.collapse_shape %[[W]] {{.+}} into memref<393216xf32>
// CHECK:         scf.for %[[BLOCK:.+]] = %c0 to %c16 step %c1 {
// CHECK:           %[[NEXT:.+]] = arith.addi %[[BLOCK]], %c1
// CHECK-NOT:       arith.select
// CHECK:           arith.muli %[[NEXT]], %c24576
// CHECK:           memref.prefetch %[[FLAT]][%{{.+}}], read, locality<2>, data
func.func private @read_once(%x: tensor<64x512xf32>, %w: tensor<512x768xf32> {ktn.constant}, %out: tensor<64x768xf32>) -> tensor<64x768xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<64x768xf32>) -> tensor<64x768xf32>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<64x512xf32>, tensor<512x768xf32>) outs(%start : tensor<64x768xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<64x768xf32>
  return %sum : tensor<64x768xf32>
}

// -----

// What is computed from gates of another row is not computed in tiles of gates.
// No other emitter takes it, and the kind of the kernel says so.
// CHECK-LABEL: func private @gates_of_other_rows(
// CHECK-SAME:    %{{[a-z0-9]+}}: memref<32x2x16xf32> {ktn.constant},
// CHECK-SAME:    attributes {ktn.kernel = "matmul, plain loops"}
// CHECK:         memref.store
func.func private @gates_of_other_rows(%x: tensor<4x32xf32>, %w: tensor<32x2x16xf32> {ktn.constant}, %out: tensor<4x16xf32>) -> tensor<4x16xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x2x16xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<4x2x16xf32>) -> tensor<4x2x16xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, g, n, k) -> (m, k)>, affine_map<(m, g, n, k) -> (k, g, n)>, affine_map<(m, g, n, k) -> (m, g, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x32xf32>, tensor<32x2x16xf32>) outs(%start : tensor<4x2x16xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<4x2x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (3 - m, 0, n)>, affine_map<(m, n) -> (m, 1, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %sum : tensor<4x2x16xf32>, tensor<4x2x16xf32>) outs(%out : tensor<4x16xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %p = arith.mulf %a, %c : f32
    linalg.yield %p : f32
  } -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// -----

#pixels = affine_map<(n, h, w, o, i) -> (n, h, w, i)>
#weights = affine_map<(n, h, w, o, i) -> (i, o)>
#sums = affine_map<(n, h, w, o, i) -> (n, h, w, o)>

// Pixels that are read once come from far: each step of a tile asks for a part
// of those of the next one, but for none behind the last.
// CHECK-LABEL: func private @pixels(
// CHECK-SAME:    %[[X:[^:]+]]: memref<?x56x56x256xf32>
// CHECK:         %[[FLAT:.+]] = memref.collapse_shape %[[X]] {{.+}} into memref<?xf32>
// CHECK:         %[[END:.+]] = memref.dim %[[FLAT]], %c0
// CHECK:         scf.for
// CHECK:           %[[LAST:.+]] = arith.subi %[[END]], %c1
// CHECK:           %[[AT:.+]] = arith.minui %{{.+}}, %[[LAST]]
// CHECK:           memref.prefetch %[[FLAT]][%[[AT]]], read, locality<2>, data
func.func private @pixels(%x: tensor<?x56x56x256xf32>, %w: tensor<256x64xf32> {ktn.constant}, %out: tensor<?x56x56x64xf32>) -> tensor<?x56x56x64xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<?x56x56x64xf32>) -> tensor<?x56x56x64xf32>
  %sum = linalg.generic {indexing_maps = [#pixels, #weights, #sums], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x56x56x256xf32>, tensor<256x64xf32>) outs(%start : tensor<?x56x56x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %product = arith.mulf %a, %b : f32
    %next = arith.addf %c, %product : f32
    linalg.yield %next : f32
  } -> tensor<?x56x56x64xf32>
  return %sum : tensor<?x56x56x64xf32>
}

// The second cache holds these.
// CHECK-LABEL: func private @few_pixels(
// CHECK-NOT:     memref.prefetch
// CHECK:         return
func.func private @few_pixels(%x: tensor<1x14x14x256xf32>, %w: tensor<256x64xf32> {ktn.constant}, %out: tensor<1x14x14x64xf32>) -> tensor<1x14x14x64xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x14x14x64xf32>) -> tensor<1x14x14x64xf32>
  %sum = linalg.generic {indexing_maps = [#pixels, #weights, #sums], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x14x14x256xf32>, tensor<256x64xf32>) outs(%start : tensor<1x14x14x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %product = arith.mulf %a, %b : f32
    %next = arith.addf %c, %product : f32
    linalg.yield %next : f32
  } -> tensor<1x14x14x64xf32>
  return %sum : tensor<1x14x14x64xf32>
}
