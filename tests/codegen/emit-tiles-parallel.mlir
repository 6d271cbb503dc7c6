// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=256 vector-registers=16 parallel" | FileCheck %s

// A call with work for several threads asks for all of as many parts as its work
// is worth, and the kernel does those between its last arguments: shares of the
// outermost loop with turns for many threads, whose tiles stay what they are.
// CHECK-LABEL: func.func @large(
// CHECK-DAG:     %[[NONE:.+]] = arith.constant 0 : index
// CHECK-DAG:     %[[COUNT:.+]] = arith.constant 12 : index
// CHECK:         call @kernel.large(%{{.+}}, %{{.+}}, %[[NONE]], %[[COUNT]], %[[COUNT]])
func.func @large(%x: tensor<1000x1000xf32>) -> tensor<1000x1000xf32> {
  %out = tensor.empty() : tensor<1000x1000xf32>
  %0 = call @kernel.large(%x, %out) {ktn.flops = array<i64: 2000000, 0>, ktn.bytes = array<i64: 2000000, 0>} : (tensor<1000x1000xf32>, tensor<1000x1000xf32>) -> tensor<1000x1000xf32>
  return %0 : tensor<1000x1000xf32>
}
// CHECK-LABEL: func.func private @kernel.large(
// CHECK-SAME:    %[[BEGIN:[a-z0-9]+]]: index, %[[END:[a-z0-9]+]]: index, %[[COUNT:[a-z0-9]+]]: index)
// CHECK-SAME:    ktn.parts = 256
// CHECK-DAG:     %[[ROWS:.+]] = arith.constant 1000 : index
// CHECK:         %[[FIRST:.+]] = arith.muli %[[ROWS]], %[[BEGIN]]
// CHECK:         %[[START:.+]] = arith.divui %[[FIRST]], %[[COUNT]]
// CHECK:         %[[FROM:.+]] = arith.muli %[[START]],
// CHECK:         %[[LAST:.+]] = arith.muli %[[ROWS]], %[[END]]
// CHECK:         %[[STOP:.+]] = arith.divui %[[LAST]], %[[COUNT]]
// CHECK:         %[[BOUND:.+]] = arith.muli %[[STOP]],
// CHECK:         %[[TO:.+]] = arith.minui %[[BOUND]], %[[ROWS]]
// CHECK:         scf.for %{{.+}} = %[[FROM]] to %[[TO]]
func.func private @kernel.large(%x: tensor<1000x1000xf32>, %out: tensor<1000x1000xf32>) -> tensor<1000x1000xf32> attributes {ktn.kernel = "elementwise"} {
  %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<1000x1000xf32>) outs(%out : tensor<1000x1000xf32>) {
  ^bb0(%in: f32, %init: f32):
    %1 = arith.addf %in, %in : f32
    linalg.yield %1 : f32
  } -> tensor<1000x1000xf32>
  return %0 : tensor<1000x1000xf32>
}

// Where there is much work around it, threads are awake, and less is worth
// handing out; so it is in a step of a loop.
// CHECK-LABEL: func.func @awake(
// CHECK-DAG:     %[[FOUR:.+]] = arith.constant 4 : index
// CHECK:         call @kernel.awake({{.+}}, %[[FOUR]], %[[FOUR]])
// CHECK:         scf.for
// CHECK:           %[[PARTS:.+]] = arith.constant 4 : index
// CHECK:           func.call @kernel.awake({{.+}}, %[[PARTS]], %[[PARTS]])
func.func @awake(%x: tensor<1000x1000xf32>) -> tensor<1000x1000xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %out = tensor.empty() : tensor<1000x1000xf32>
  %0 = call @kernel.large(%x, %out) {ktn.flops = array<i64: 200000000, 0>, ktn.bytes = array<i64: 2000000, 0>} : (tensor<1000x1000xf32>, tensor<1000x1000xf32>) -> tensor<1000x1000xf32>
  %1 = call @kernel.awake(%0, %out) {ktn.flops = array<i64: 400000, 0>, ktn.bytes = array<i64: 100000, 0>} : (tensor<1000x1000xf32>, tensor<1000x1000xf32>) -> tensor<1000x1000xf32>
  %2 = scf.for %i = %c0 to %c9 step %c1 iter_args(%state = %1) -> tensor<1000x1000xf32> {
    %3 = func.call @kernel.awake(%state, %out) {ktn.flops = array<i64: 3600000, 0>, ktn.bytes = array<i64: 900000, 0>} : (tensor<1000x1000xf32>, tensor<1000x1000xf32>) -> tensor<1000x1000xf32>
    %4 = func.call @kernel.turned(%3, %out) {ktn.flops = array<i64: 9, 0>, ktn.bytes = array<i64: 9, 0>} : (tensor<1000x1000xf32>, tensor<1000x1000xf32>) -> tensor<1000x1000xf32>
    scf.yield %4 : tensor<1000x1000xf32>
  }
  return %2 : tensor<1000x1000xf32>
}
// What one thread does alone would read little work of others from their caches.
// CHECK-LABEL: func.func @between(
// CHECK:         %[[ONE:.+]] = arith.constant 1 : index
// CHECK:         call @kernel.between({{.+}}, %[[ONE]], %[[ONE]])
func.func @between(%x: tensor<1000x1000xf32>) -> (tensor<1000x1000xf32>, tensor<f32>) {
  %out = tensor.empty() : tensor<1000x1000xf32>
  %sum = tensor.empty() : tensor<f32>
  %0 = call @kernel.between(%x, %out) {ktn.flops = array<i64: 400000, 0>, ktn.bytes = array<i64: 100000, 0>} : (tensor<1000x1000xf32>, tensor<1000x1000xf32>) -> tensor<1000x1000xf32>
  %1 = call @kernel.alone(%0, %sum) {ktn.flops = array<i64: 200000000, 0>, ktn.bytes = array<i64: 2000000, 0>} : (tensor<1000x1000xf32>, tensor<f32>) -> tensor<f32>
  return %0, %1 : tensor<1000x1000xf32>, tensor<f32>
}
func.func private @kernel.between(%x: tensor<1000x1000xf32>, %out: tensor<1000x1000xf32>) -> tensor<1000x1000xf32> attributes {ktn.kernel = "elementwise"} {
  %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<1000x1000xf32>) outs(%out : tensor<1000x1000xf32>) {
  ^bb0(%in: f32, %init: f32):
    %1 = arith.mulf %in, %in : f32
    linalg.yield %1 : f32
  } -> tensor<1000x1000xf32>
  return %0 : tensor<1000x1000xf32>
}
func.func private @kernel.alone(%x: tensor<1000x1000xf32>, %out: tensor<f32>) -> tensor<f32> attributes {ktn.kernel = "reduce"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<f32>) -> tensor<f32>
  %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> ()>], iterator_types = ["reduction", "reduction"]} ins(%x : tensor<1000x1000xf32>) outs(%start : tensor<f32>) {
  ^bb0(%in: f32, %init: f32):
    %1 = arith.addf %in, %init : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}

// Rows that become columns are rows of other threads: each kernel is shared.
func.func private @kernel.turned(%x: tensor<1000x1000xf32>, %out: tensor<1000x1000xf32>) -> tensor<1000x1000xf32> attributes {ktn.kernel = "elementwise"} {
  %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<1000x1000xf32>) outs(%out : tensor<1000x1000xf32>) {
  ^bb0(%in: f32, %init: f32):
    linalg.yield %in : f32
  } -> tensor<1000x1000xf32>
  return %0 : tensor<1000x1000xf32>
}
func.func private @kernel.awake(%x: tensor<1000x1000xf32>, %out: tensor<1000x1000xf32>) -> tensor<1000x1000xf32> attributes {ktn.kernel = "elementwise"} {
  %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<1000x1000xf32>) outs(%out : tensor<1000x1000xf32>) {
  ^bb0(%in: f32, %init: f32):
    %1 = arith.mulf %in, %in : f32
    linalg.yield %1 : f32
  } -> tensor<1000x1000xf32>
  return %0 : tensor<1000x1000xf32>
}

// A small one stays as it is.
// CHECK-LABEL: func.func @small(
// CHECK:         call @kernel.small(%{{[^,]+}}, %{{[^,]+}}) {
// CHECK-LABEL: func.func private @kernel.small(
// CHECK-NOT:     ktn.parts
// CHECK:         return
func.func @small(%x: tensor<1000x1000xf32>) -> tensor<1000x1000xf32> {
  %out = tensor.empty() : tensor<1000x1000xf32>
  %0 = call @kernel.small(%x, %out) {ktn.flops = array<i64: 200000, 0>, ktn.bytes = array<i64: 200000, 0>} : (tensor<1000x1000xf32>, tensor<1000x1000xf32>) -> tensor<1000x1000xf32>
  return %0 : tensor<1000x1000xf32>
}
func.func private @kernel.small(%x: tensor<1000x1000xf32>, %out: tensor<1000x1000xf32>) -> tensor<1000x1000xf32> attributes {ktn.kernel = "elementwise"} {
  %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<1000x1000xf32>) outs(%out : tensor<1000x1000xf32>) {
  ^bb0(%in: f32, %init: f32):
    %1 = arith.subf %in, %in : f32
    linalg.yield %1 : f32
  } -> tensor<1000x1000xf32>
  return %0 : tensor<1000x1000xf32>
}

// Of a batch that is known when the code runs, so is the number of parts.
// CHECK-LABEL: func.func @batches(
// CHECK-SAME:    %[[X:.+]]: tensor<?x8xf32>
// CHECK:         tensor.empty
// CHECK:         %[[BATCH:.+]] = tensor.dim %[[X]]
// CHECK:         %[[WORK:.+]] = arith.muli %[[BATCH]],
// CHECK:         arith.divui
// CHECK:         arith.minui
// CHECK:         %[[PARTS:.+]] = arith.maxui
// CHECK:         call @kernel.batches({{.+}}, %[[PARTS]], %[[PARTS]])
func.func @batches(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %out = tensor.empty(%n) : tensor<?x8xf32>
  %0 = call @kernel.batches(%x, %out) {ktn.flops = array<i64: 0, 8>, ktn.bytes = array<i64: 0, 64>} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
func.func private @kernel.batches(%x: tensor<?x8xf32>, %out: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {ktn.kernel = "elementwise"} {
  %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x8xf32>) outs(%out : tensor<?x8xf32>) {
  ^bb0(%in: f32, %init: f32):
    %1 = arith.addf %in, %in : f32
    linalg.yield %1 : f32
  } -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// Where the rows are more than the weights threads share the rows, and all of
// them go through all blocks of weights. Blocks of rows are as many for each of
// two and four threads: eight, of 252.
// CHECK-LABEL: func.func private @kernel.many_rows(
// CHECK-SAME:    memref<2000x128xf32>, %{{[^:]+}}: memref<[[BLOCKS:[0-9]+]]x128x{{[0-9]+}}xf32>
// CHECK:         scf.for %[[FIRST:.+]] = %{{[0-9]+}} to %{{[0-9]+}} step %c252 {
// CHECK:           scf.for %{{.+}} = %c0 to %c[[BLOCKS]] step %c1 {
// CHECK:             scf.for %{{.+}} = %[[FIRST]] to
func.func @many_rows(%x: tensor<2000x128xf32>) -> tensor<2000x512xf32> {
  %w = arith.constant dense<1.0> : tensor<128x512xf32>
  %out = tensor.empty() : tensor<2000x512xf32>
  %0 = call @kernel.many_rows(%x, %w, %out) {ktn.flops = array<i64: 262144000, 0>, ktn.bytes = array<i64: 5382144, 0>} : (tensor<2000x128xf32>, tensor<128x512xf32>, tensor<2000x512xf32>) -> tensor<2000x512xf32>
  return %0 : tensor<2000x512xf32>
}
func.func private @kernel.many_rows(%x: tensor<2000x128xf32>, %w: tensor<128x512xf32> {ktn.constant}, %out: tensor<2000x512xf32>) -> tensor<2000x512xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<2000x512xf32>) -> tensor<2000x512xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<2000x128xf32>, tensor<128x512xf32>) outs(%start : tensor<2000x512xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<2000x512xf32>
  return %sum : tensor<2000x512xf32>
}

// Rows of which two threads have a part each in the cache are in no blocks.
// CHECK-LABEL: func.func private @kernel.some_rows(
// CHECK-SAME:    memref<512x128xf32>, %{{[^:]+}}: memref<[[BLOCKS:[0-9]+]]x128x{{[0-9]+}}xf32>
// CHECK:         scf.for %{{.+}} = %c0 to %c[[BLOCKS]] step %c1 {
// CHECK:           scf.for %{{.+}} = %{{[0-9]+}} to %{{[0-9]+}} step %c6 {
func.func @some_rows(%x: tensor<512x128xf32>) -> tensor<512x512xf32> {
  %w = arith.constant dense<1.0> : tensor<128x512xf32>
  %out = tensor.empty() : tensor<512x512xf32>
  %0 = call @kernel.some_rows(%x, %w, %out) {ktn.flops = array<i64: 67108864, 0>, ktn.bytes = array<i64: 1572864, 0>} : (tensor<512x128xf32>, tensor<128x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  return %0 : tensor<512x512xf32>
}
func.func private @kernel.some_rows(%x: tensor<512x128xf32>, %w: tensor<128x512xf32> {ktn.constant}, %out: tensor<512x512xf32>) -> tensor<512x512xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<512x512xf32>) -> tensor<512x512xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<512x128xf32>, tensor<128x512xf32>) outs(%start : tensor<512x512xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<512x512xf32>
  return %sum : tensor<512x512xf32>
}

// Where the weights are more each thread has some of their blocks. It asks for
// none that another will read, but for its own first one of the next rows of
// the weights.
// CHECK-LABEL: func.func private @kernel.many_weights(
// CHECK-SAME:    memref<24x8192xf32>
// CHECK:         scf.for %[[K:.+]] = %c0 to %c8192 step
// CHECK:           %[[END:.+]] = arith.minui
// CHECK:           scf.for %[[BLOCK:.+]] = %[[FROM:[0-9]+]] to %{{[0-9]+}} step %c1 {
// CHECK:             %[[NEXT:.+]] = arith.addi %[[BLOCK]], %c1
// CHECK:             %[[LAST:.+]] = arith.cmpi uge, %[[NEXT]], %{{.+}}
// CHECK:             arith.select %[[LAST]], %[[FROM]], %[[NEXT]]
// CHECK:             %[[WRAP:.+]] = arith.cmpi uge, %[[END]], %c8192
// CHECK:             %[[START:.+]] = arith.select %[[WRAP]], %c0, %[[END]]
// CHECK:             %[[THERE:.+]] = arith.select %[[LAST]], %[[START]], %[[K]]
// CHECK:                 arith.subi %[[THERE]], %[[K]]
// CHECK:                 memref.prefetch
func.func @many_weights(%x: tensor<24x8192xf32>) -> tensor<24x512xf32> {
  %w = arith.constant dense<1.0> : tensor<8192x512xf32>
  %out = tensor.empty() : tensor<24x512xf32>
  %0 = call @kernel.many_weights(%x, %w, %out) {ktn.flops = array<i64: 201326592, 0>, ktn.bytes = array<i64: 4849664, 0>} : (tensor<24x8192xf32>, tensor<8192x512xf32>, tensor<24x512xf32>) -> tensor<24x512xf32>
  return %0 : tensor<24x512xf32>
}
func.func private @kernel.many_weights(%x: tensor<24x8192xf32>, %w: tensor<8192x512xf32> {ktn.constant}, %out: tensor<24x512xf32>) -> tensor<24x512xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<24x512xf32>) -> tensor<24x512xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<24x8192xf32>, tensor<8192x512xf32>) outs(%start : tensor<24x512xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<24x512xf32>
  return %sum : tensor<24x512xf32>
}

// Nine tiles of rows are no equal shares of two: parts are of the pairs of one of
// them and one of three blocks of columns, so they end in the middle of a tile's
// columns. Columns stay the outer loop, and each has as many tiles as are here.
// CHECK-LABEL: func.func private @kernel.few_of_both(
// CHECK-SAME:    memref<49x1024xf32>
// CHECK-SAME:    %[[BEGIN:[a-z0-9]+]]: index, %[[END:[a-z0-9]+]]: index, %[[COUNT:[a-z0-9]+]]: index)
// CHECK:         arith.muli %c27{{(_[0-9]+)?}}, %[[BEGIN]]
// CHECK:         scf.for %[[COLUMN:.+]] = %c0{{(_[0-9]+)?}} to %c3
// CHECK:           %[[LATER:.+]] = arith.subi %c2{{(_[0-9]+)?}}, %
// CHECK:           %[[FIRST:.+]] = arith.addi %{{[0-9]+}}, %[[LATER]]
// CHECK:           %[[TILE:.+]] = arith.divui %[[FIRST]], %c3
// CHECK:           %[[LAST:.+]] = arith.addi %{{[0-9]+}}, %[[LATER]]
// CHECK:           arith.divui %[[LAST]], %c3
// CHECK:           %[[PLACE:.+]] = arith.muli %[[TILE]], %c6
// CHECK:           %[[ROW:.+]] = arith.minui %[[PLACE]], %c49
// CHECK:           scf.for %{{.+}} = %[[ROW]] to
func.func @few_of_both(%x: tensor<49x1024xf32>) -> tensor<49x48xf32> {
  %w = arith.constant dense<1.0> : tensor<1024x48xf32>
  %out = tensor.empty() : tensor<49x48xf32>
  %0 = call @kernel.few_of_both(%x, %w, %out) {ktn.flops = array<i64: 67108864, 0>, ktn.bytes = array<i64: 1572864, 0>} : (tensor<49x1024xf32>, tensor<1024x48xf32>, tensor<49x48xf32>) -> tensor<49x48xf32>
  return %0 : tensor<49x48xf32>
}
func.func private @kernel.few_of_both(%x: tensor<49x1024xf32>, %w: tensor<1024x48xf32> {ktn.constant}, %out: tensor<49x48xf32>) -> tensor<49x48xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<49x48xf32>) -> tensor<49x48xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<49x1024xf32>, tensor<1024x48xf32>) outs(%start : tensor<49x48xf32>) {
  ^bb0(%l: f32, %r: f32, %s: f32):
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<49x48xf32>
  return %sum : tensor<49x48xf32>
}

// Threads share the rows of the images that a window goes over, as those who
// wrote them do. Three tiles of four rows and one of two are no equal shares for
// many, so parts are of the pairs of one of them and one of 24 vectors of
// channels.
// CHECK-LABEL: func.func private @kernel.window_of_rows(
// CHECK-SAME:    %[[BEGIN:[a-z0-9]+]]: index, %[[END:[a-z0-9]+]]: index, %[[COUNT:[a-z0-9]+]]: index)
// CHECK:         arith.muli %c96{{(_[0-9]+)?}}, %[[BEGIN]]
// CHECK:         %[[TILE:.+]] = arith.divui %{{.+}}, %c24{{(_[0-9]+)?}}
// CHECK:         %[[LAST:.+]] = arith.divui %{{.+}}, %c24{{(_[0-9]+)?}}
// CHECK:         %[[PLACE:.+]] = arith.muli %[[TILE]], %c4
// CHECK:         %[[ROW:.+]] = arith.minui %[[PLACE]], %c14
// CHECK:         arith.muli %[[LAST]], %c4
// CHECK:         %[[FROM:.+]] = arith.maxui %[[ROW]], %c12
// CHECK:         scf.for %{{.+}} = %[[FROM]] to %{{.+}} step %c2
// CHECK:           scf.for %{{.+}} = %c0{{(_[0-9]+)?}} to %c14{{(_[0-9]+)?}} step %c2
func.func @window_of_rows(%x: tensor<16x16x192xf32>, %w: tensor<3x3x192xf32>) -> tensor<14x14x192xf32> {
  %out = tensor.empty() : tensor<14x14x192xf32>
  %0 = call @kernel.window_of_rows(%x, %w, %out) {ktn.flops = array<i64: 67108864, 0>, ktn.bytes = array<i64: 1572864, 0>} : (tensor<16x16x192xf32>, tensor<3x3x192xf32>, tensor<14x14x192xf32>) -> tensor<14x14x192xf32>
  return %0 : tensor<14x14x192xf32>
}
func.func private @kernel.window_of_rows(%x: tensor<16x16x192xf32>, %w: tensor<3x3x192xf32>, %out: tensor<14x14x192xf32>) -> tensor<14x14x192xf32> attributes {ktn.kernel = "depthwise"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<14x14x192xf32>) -> tensor<14x14x192xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(h, w, c, kh, kw) -> (h + kh, w + kw, c)>, affine_map<(h, w, c, kh, kw) -> (kh, kw, c)>, affine_map<(h, w, c, kh, kw) -> (h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<16x16x192xf32>, tensor<3x3x192xf32>) outs(%start : tensor<14x14x192xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<14x14x192xf32>
  return %sum : tensor<14x14x192xf32>
}

// Where the kernel that wrote the image has more weights than rows, threads have
// shared its columns, and share those of the window.
// CHECK-LABEL: func.func private @kernel.many_columns(
// CHECK-SAME:    ktn.shares_columns
// CHECK-LABEL: func.func private @kernel.window_of_columns(
// CHECK-SAME:    %[[BEGIN:[a-z0-9]+]]: index, %[[END:[a-z0-9]+]]: index, %[[COUNT:[a-z0-9]+]]: index)
// CHECK-SAME:    ktn.shares_columns
// CHECK:         %[[FIRST:.+]] = arith.muli %c8{{(_[0-9]+)?}}, %[[BEGIN]]
// CHECK:         %[[BLOCK:.+]] = arith.divui %[[FIRST]], %[[COUNT]]
// CHECK:         %[[FROM:.+]] = arith.muli %[[BLOCK]], %c144
// CHECK:         scf.for %{{.+}} = %[[FROM]] to %{{.+}} step %c144
func.func @window_of_columns(%x: tensor<9x9x512xf32>, %v: tensor<3x3x1152xf32>) -> tensor<7x7x1152xf32> {
  %w = arith.constant dense<1.0> : tensor<512x1152xf32>
  %wide = tensor.empty() : tensor<9x9x1152xf32>
  %out = tensor.empty() : tensor<7x7x1152xf32>
  %0 = call @kernel.many_columns(%x, %w, %wide) {ktn.flops = array<i64: 67108864, 0>, ktn.bytes = array<i64: 1572864, 0>} : (tensor<9x9x512xf32>, tensor<512x1152xf32>, tensor<9x9x1152xf32>) -> tensor<9x9x1152xf32>
  %1 = call @kernel.window_of_columns(%0, %v, %out) {ktn.flops = array<i64: 67108864, 0>, ktn.bytes = array<i64: 1572864, 0>} : (tensor<9x9x1152xf32>, tensor<3x3x1152xf32>, tensor<7x7x1152xf32>) -> tensor<7x7x1152xf32>
  return %1 : tensor<7x7x1152xf32>
}
func.func private @kernel.many_columns(%x: tensor<9x9x512xf32>, %w: tensor<512x1152xf32> {ktn.constant}, %out: tensor<9x9x1152xf32>) -> tensor<9x9x1152xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<9x9x1152xf32>) -> tensor<9x9x1152xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(h, w, c, k) -> (h, w, k)>, affine_map<(h, w, c, k) -> (k, c)>, affine_map<(h, w, c, k) -> (h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<9x9x512xf32>, tensor<512x1152xf32>) outs(%start : tensor<9x9x1152xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<9x9x1152xf32>
  return %sum : tensor<9x9x1152xf32>
}
func.func private @kernel.window_of_columns(%x: tensor<9x9x1152xf32>, %w: tensor<3x3x1152xf32>, %out: tensor<7x7x1152xf32>) -> tensor<7x7x1152xf32> attributes {ktn.kernel = "depthwise"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<7x7x1152xf32>) -> tensor<7x7x1152xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(h, w, c, kh, kw) -> (h + kh, w + kw, c)>, affine_map<(h, w, c, kh, kw) -> (kh, kw, c)>, affine_map<(h, w, c, kh, kw) -> (h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<9x9x1152xf32>, tensor<3x3x1152xf32>) outs(%start : tensor<7x7x1152xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<7x7x1152xf32>
  return %sum : tensor<7x7x1152xf32>
}
