// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 second-cache-kib=1024" --split-input-file | FileCheck %s --check-prefix=SMALL
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=256 vector-registers=16" --split-input-file | FileCheck %s --check-prefix=AVX2

// What is added to the sums is asked for in front of the product: it may come
// from far. What follows from the gates is computed for four rows as for one,
// for the chains of a function hide each other's latency.
// CHECK-LABEL: func private @step(
// CHECK-SAME:    tensor<32x2x16xf32>}, %[[ADDED:[a-z0-9]+]]: memref<6x2x16xf32>
// CHECK-COUNT-12: memref.prefetch %[[ADDED]][{{.+}}], read, locality<3>, data
// CHECK-NOT:     memref.prefetch %[[ADDED]]
// CHECK:         scf.for {{.+}} -> (vector<16xf32>,
// CHECK:         arith.addf {{.+}} : vector<64xf32>
// CHECK:         math.exp %{{.+}} : vector<64xf32>
// CHECK-COUNT-4: vector.store %{{.+}} : memref<6x16xf32>, vector<16xf32>
// CHECK:         math.exp %{{.+}} : vector<32xf32>
// CHECK-COUNT-2: vector.store %{{.+}} : memref<6x16xf32>, vector<16xf32>
// CHECK-NOT:     vector.store
func.func private @step(%x: tensor<6x32xf32>, %w: tensor<32x2x16xf32> {ktn.constant}, %added: tensor<6x2x16xf32>, %out: tensor<6x16xf32>) -> tensor<6x16xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x2x16xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<6x2x16xf32>) -> tensor<6x2x16xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, g, n, k) -> (m, k)>, affine_map<(m, g, n, k) -> (k, g, n)>, affine_map<(m, g, n, k) -> (m, g, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<6x32xf32>, tensor<32x2x16xf32>) outs(%start : tensor<6x2x16xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<6x2x16xf32>
  %e2 = tensor.empty() : tensor<6x2x16xf32>
  %gates = linalg.generic {indexing_maps = [affine_map<(m, g, n) -> (m, g, n)>, affine_map<(m, g, n) -> (m, g, n)>, affine_map<(m, g, n) -> (m, g, n)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%sum, %added : tensor<6x2x16xf32>, tensor<6x2x16xf32>) outs(%e2 : tensor<6x2x16xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %t = arith.addf %a, %c : f32
    linalg.yield %t : f32
  } -> tensor<6x2x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, 0, n)>, affine_map<(m, n) -> (m, 1, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%gates, %gates : tensor<6x2x16xf32>, tensor<6x2x16xf32>) outs(%out : tensor<6x16xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %g = math.exp %a : f32
    %p = arith.mulf %g, %c : f32
    linalg.yield %p : f32
  } -> tensor<6x16xf32>
  return %y : tensor<6x16xf32>
}

// -----

// Ten rows are six and four, which fill groups of four better than five and
// five. The state is read at the position that is written, so the next one may
// be written over it.
// CHECK-LABEL: func private @heights(
// CHECK-SAME:    %{{[a-z0-9]+}}: memref<10x16xf32> {ktn.in_place}, %{{[a-z0-9]+}}: memref<10x16xf32>)
// CHECK:         math.exp %{{.+}} : vector<64xf32>
// CHECK:         math.exp %{{.+}} : vector<32xf32>
// CHECK:         math.exp %{{.+}} : vector<64xf32>
// CHECK-NOT:     math.exp
func.func private @heights(%x: tensor<10x32xf32>, %w: tensor<32x4x16xf32> {ktn.constant}, %state: tensor<10x16xf32>, %out: tensor<10x16xf32>) -> tensor<10x16xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<10x4x16xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<10x4x16xf32>) -> tensor<10x4x16xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, g, n, k) -> (m, k)>, affine_map<(m, g, n, k) -> (k, g, n)>, affine_map<(m, g, n, k) -> (m, g, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<10x32xf32>, tensor<32x4x16xf32>) outs(%start : tensor<10x4x16xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<10x4x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, 0, n)>, affine_map<(m, n) -> (m, 3, n)>, affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %sum, %state : tensor<10x4x16xf32>, tensor<10x4x16xf32>, tensor<10x16xf32>) outs(%out : tensor<10x16xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32, %o: f32):
    %g = math.exp %a : f32
    %p = arith.mulf %g, %c : f32
    %q = arith.addf %p, %s : f32
    linalg.yield %q : f32
  } -> tensor<10x16xf32>
  return %y : tensor<10x16xf32>
}

// -----

// The sums of many rows go to memory, and one loop computes from them four rows
// at a time, when the next block of weights has been asked for. Tiles need not
// have fours of rows then: 32 rows are two sixes and four fives.
// CHECK-LABEL: func private @together(
// CHECK:         %[[SUMS:.+]] = memref.alloca() {alignment = 64 : i64} : memref<2048xf32>
// CHECK:         scf.for %{{.+}} = %c0 to %c12 step %c6
// CHECK-COUNT-24:  vector.store %{{.+}}, %[[SUMS]][
// CHECK-NOT:       math.exp
// CHECK:         scf.for %{{.+}} = %c12 to %c32 step %c5
// CHECK-COUNT-20:  vector.store %{{.+}}, %[[SUMS]][
// CHECK:         memref.prefetch %{{.+}}, read
// CHECK:         scf.for %{{.+}} = %c0 to %c32 step %c4
// CHECK-COUNT-16:  vector.load %[[SUMS]][
// CHECK:           math.exp %{{.+}} : vector<64xf32>
// CHECK-NOT:     math.exp
func.func private @together(%x: tensor<32x32xf32>, %w: tensor<32x4x16xf32> {ktn.constant}, %state: tensor<32x16xf32>, %out: tensor<32x16xf32>) -> tensor<32x16xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x4x16xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<32x4x16xf32>) -> tensor<32x4x16xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, g, n, k) -> (m, k)>, affine_map<(m, g, n, k) -> (k, g, n)>, affine_map<(m, g, n, k) -> (m, g, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<32x32xf32>, tensor<32x4x16xf32>) outs(%start : tensor<32x4x16xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<32x4x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, 0, n)>, affine_map<(m, n) -> (m, 3, n)>, affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %sum, %state : tensor<32x4x16xf32>, tensor<32x4x16xf32>, tensor<32x16xf32>) outs(%out : tensor<32x16xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32, %o: f32):
    %g = math.exp %a : f32
    %p = arith.mulf %g, %c : f32
    %q = arith.addf %p, %s : f32
    linalg.yield %q : f32
  } -> tensor<32x16xf32>
  return %y : tensor<32x16xf32>
}

// -----

// Weights that are read once by each call, and of which the second cache holds
// a part: calls go back and forth.
// CHECK-LABEL: func private @alternating(
// CHECK-SAME:    %[[KEPT:[a-z0-9]+]]: memref<1xi8> {ktn.kept})
// CHECK:         %[[LAST:.+]] = memref.load %[[KEPT]]
// CHECK:         %[[THIS:.+]] = arith.xori %[[LAST]]
// CHECK:         memref.store %[[THIS]], %[[KEPT]]
// CHECK:         %[[BACK:.+]] = arith.trunci %[[THIS]] : i8 to i1
// CHECK:         scf.for %[[NUMBER:.+]] = %c0 to
// CHECK:           %[[OTHER:.+]] = arith.subi %{{.+}}, %[[NUMBER]]
// CHECK:           arith.select %[[BACK]], %[[OTHER]], %[[NUMBER]] : index
func.func private @alternating(%x: tensor<1x256xf32>, %w: tensor<256x4x256xf32> {ktn.constant}, %out: tensor<1x256xf32>) -> tensor<1x256xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x256xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x256xf32>) -> tensor<1x4x256xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, g, n, k) -> (m, k)>, affine_map<(m, g, n, k) -> (k, g, n)>, affine_map<(m, g, n, k) -> (m, g, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x256xf32>, tensor<256x4x256xf32>) outs(%start : tensor<1x4x256xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x4x256xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, 0, n)>, affine_map<(m, n) -> (m, 3, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %sum : tensor<1x4x256xf32>, tensor<1x4x256xf32>) outs(%out : tensor<1x256xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %p = arith.mulf %a, %c : f32
    linalg.yield %p : f32
  } -> tensor<1x256xf32>
  return %y : tensor<1x256xf32>
}

// -----

// The same of 768 KB, which a second cache of 512 KB does not hold, one of 1 MB
// in part, as pages fall on its sets, and one of 2 MB does. A turn has as many steps as are some 96 operations and divide all of
// them.
// CHECK-LABEL: func private @of_three_gates(
// CHECK-NOT:     ktn.kept
// CHECK:         scf.for {{.+}} = %c0 to %c260 step %c4 iter_args
// SMALL-LABEL: func private @of_three_gates(
// SMALL-SAME:    ktn.kept
// AVX2-LABEL:  func private @of_three_gates(
// AVX2-SAME:     ktn.kept
// AVX2:          scf.for {{.+}} = %c0 to %c260 step %c4 iter_args
func.func private @of_three_gates(%x: tensor<1x260xf32>, %w: tensor<260x3x256xf32> {ktn.constant}, %out: tensor<1x256xf32>) -> tensor<1x256xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x3x256xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<1x3x256xf32>) -> tensor<1x3x256xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, g, n, k) -> (m, k)>, affine_map<(m, g, n, k) -> (k, g, n)>, affine_map<(m, g, n, k) -> (m, g, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x260xf32>, tensor<260x3x256xf32>) outs(%start : tensor<1x3x256xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x3x256xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, 0, n)>, affine_map<(m, n) -> (m, 2, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %sum : tensor<1x3x256xf32>, tensor<1x3x256xf32>) outs(%out : tensor<1x256xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %p = arith.mulf %a, %c : f32
    linalg.yield %p : f32
  } -> tensor<1x256xf32>
  return %y : tensor<1x256xf32>
}

// -----

// A kernel behind this one reads a gate too: sums are stored beside what follows
// from them, after it.
// CHECK-LABEL: func private @sums_too(
// CHECK-SAME:    %[[SUMS:[a-z0-9]+]]: memref<2x2x16xf32>, %[[OUT:[a-z0-9]+]]: memref<2x16xf32>) attributes {ktn.kernel = "matmul"}
// CHECK:         math.exp %{{.+}} : vector<32xf32>
// CHECK-COUNT-2: vector.store %{{.+}}, %[[OUT]]
// CHECK-COUNT-4: vector.store %{{.+}}, %[[SUMS]]
// CHECK-NOT:     vector.store
func.func private @sums_too(%x: tensor<2x32xf32>, %w: tensor<32x2x16xf32> {ktn.constant}, %sums: tensor<2x2x16xf32>, %out: tensor<2x16xf32>) -> (tensor<2x2x16xf32>, tensor<2x16xf32>) attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%sums : tensor<2x2x16xf32>) -> tensor<2x2x16xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, g, n, k) -> (m, k)>, affine_map<(m, g, n, k) -> (k, g, n)>, affine_map<(m, g, n, k) -> (m, g, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<2x32xf32>, tensor<32x2x16xf32>) outs(%start : tensor<2x2x16xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<2x2x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, 1, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<2x2x16xf32>) outs(%out : tensor<2x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %g = math.exp %a : f32
    linalg.yield %g : f32
  } -> tensor<2x16xf32>
  return %sum, %y : tensor<2x2x16xf32>, tensor<2x16xf32>
}

// -----

// One row waits for the ports that widen its weights of bf16: two vectors of a
// gate are one of words, from which a shift and a mask take them. The last block
// has no second one.
// CHECK-LABEL: func private @halves(
// CHECK-SAME:    memref<2x32x2x32xbf16> {ktn.constant, ktn.packed = {block = 32 : i64, dim = 2 : i64, interleaved}
// CHECK:         scf.for {{.+}} -> (vector<16xf32>,
// CHECK:         %[[BOTH:.+]] = vector.load {{.+}} vector<32xbf16>
// CHECK:         vector.bitcast %[[BOTH]] : vector<32xbf16> to vector<16xi32>
// CHECK:         arith.shli
// CHECK:         arith.andi
// CHECK:         scf.for {{.+}} -> (vector<16xf32>,
// CHECK-NOT:     arith.andi
// CHECK-NOT:     arith.extf {{.+}} : vector
// AVX2-LABEL:  func private @halves(
// AVX2-SAME:     memref<3x32x2x16xbf16> {ktn.constant, ktn.packed = {block = 16 : i64, dim = 2 : i64, interleaved}
func.func private @halves(%x: tensor<1x32xbf16>, %w: tensor<32x2x40xbf16> {ktn.constant}, %out: tensor<1x40xf32>) -> tensor<1x40xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x40xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<1x2x40xf32>) -> tensor<1x2x40xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, g, n, k) -> (m, k)>, affine_map<(m, g, n, k) -> (k, g, n)>, affine_map<(m, g, n, k) -> (m, g, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x32xbf16>, tensor<32x2x40xbf16>) outs(%start : tensor<1x2x40xf32>) {
  ^bb0(%a: bf16, %c: bf16, %s: f32):
    %l = arith.extf %a : bf16 to f32
    %r = arith.extf %c : bf16 to f32
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x2x40xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, 0, n)>, affine_map<(m, n) -> (m, 1, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %sum : tensor<1x2x40xf32>, tensor<1x2x40xf32>) outs(%out : tensor<1x40xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %g = math.exp %a : f32
    %p = arith.mulf %g, %c : f32
    linalg.yield %p : f32
  } -> tensor<1x40xf32>
  return %y : tensor<1x40xf32>
}

// -----

// Of nine rows and two gates the weights of both are kept for all rows, each of which has a scalar of its own.
// CHECK-LABEL: func private @by_rows(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<9x32xf32>, %[[W:[a-z0-9]+]]: memref<1x32x2x16xf32>
// CHECK:         scf.for {{.+}} -> (vector<16xf32>,
// CHECK:           memref.load %[[X]]
// CHECK-NOT:       memref.load
// CHECK-COUNT-2:   vector.load %[[W]]
// CHECK-NOT:       vector.load
// CHECK-COUNT-8:   memref.load %[[X]]
func.func private @by_rows(%x: tensor<9x32xf32>, %w: tensor<32x2x16xf32> {ktn.constant}, %out: tensor<9x16xf32>) -> tensor<9x16xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<9x2x16xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<9x2x16xf32>) -> tensor<9x2x16xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, g, n, k) -> (m, k)>, affine_map<(m, g, n, k) -> (k, g, n)>, affine_map<(m, g, n, k) -> (m, g, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<9x32xf32>, tensor<32x2x16xf32>) outs(%start : tensor<9x2x16xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<9x2x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, 0, n)>, affine_map<(m, n) -> (m, 1, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %sum : tensor<9x2x16xf32>, tensor<9x2x16xf32>) outs(%out : tensor<9x16xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %p = arith.mulf %a, %c : f32
    linalg.yield %p : f32
  } -> tensor<9x16xf32>
  return %y : tensor<9x16xf32>
}
