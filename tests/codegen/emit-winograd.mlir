// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 winograd=4" --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 winograd=2" --split-input-file | FileCheck %s --check-prefix=TWO
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 winograd=off" --split-input-file | FileCheck %s --check-prefix=OFF
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 winograd=4 parallel" --split-input-file | FileCheck %s --check-prefix=PARTS

#x = affine_map<(n, h, w, k, i, j, c) -> (n, h + i, w + j, c)>
#g = affine_map<(n, h, w, k, i, j, c) -> (i, j, c, k)>
#y = affine_map<(n, h, w, k, i, j, c) -> (n, h, w, k)>
#all = affine_map<(n, h, w, k) -> (n, h, w, k)>
#bias = affine_map<(n, h, w, k) -> (k)>

// 3 x 3 tiles of 6 x 6 inputs: their 36 positions are products with weights
// that are wanted transformed. The bias meets the 4 x 4 outputs, of which the
// last column of tiles has two.
// CHECK-LABEL: func private @conv(
// CHECK-SAME:    %[[X:[^:]+]]: memref<1x14x12x16xf32>,
// CHECK-SAME:    %[[G:[^:]+]]: memref<36x1x16x32xf32> {ktn.constant, ktn.packed = {axes = array<i64: 0, 1>, block = 32 : i64, strides = array<i64: 1, 1>, taps = 3 : i64, winograd = 4 : i64}, ktn.unpacked_type = tensor<3x3x16x32xf32>}
// CHECK-SAME:    %[[Y:[^:]+]]: memref<1x12x10x32xf32>
// CHECK-SAME:    %{{[^:]+}}: memref<{{[0-9]+}}xf32> {ktn.scratch}
// CHECK-SAME:    ktn.kernel = "winograd4"
// CHECK:         scf.for
// CHECK-COUNT-36:  vector.load %[[X]]
// CHECK-NOT:       vector.load %[[X]]
// CHECK:           scf.for %{{.+}} = %{{.+}} to %{{.+}} step
// CHECK:             scf.for {{.+}} iter_args
// CHECK:               memref.prefetch %[[G]]
// CHECK:               vector.load %[[G]]
// CHECK:           scf.if
// CHECK:             arith.addf
// CHECK:             vector.store {{.+}}, %[[Y]]
// TWO-LABEL: func private @conv(
// TWO-SAME:    memref<16x1x16x32xf32> {ktn.constant, ktn.packed = {axes = array<i64: 0, 1>, block = 32 : i64, strides = array<i64: 1, 1>, taps = 3 : i64, winograd = 2 : i64}
// TWO-SAME:    ktn.kernel = "winograd2"
// TWO-COUNT-16: vector.load %{{.+}} : memref<1x14x12x16xf32>
// TWO-NOT:      scf.if
// OFF-LABEL: func private @conv(
// OFF-SAME:    memref<1x3x3x16x32xf32> {ktn.constant, ktn.packed = {block = 32 : i64, dim = 3 : i64}
// OFF-SAME:    ktn.kernel = "conv"
func.func private @conv(%x: tensor<1x14x12x16xf32>, %g: tensor<3x3x16x32xf32> {ktn.constant}, %b: tensor<32xf32>, %out: tensor<1x12x10x32xf32>) -> tensor<1x12x10x32xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x12x10x32xf32>) -> tensor<1x12x10x32xf32>
  %sum = linalg.generic {indexing_maps = [#x, #g, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %g : tensor<1x14x12x16xf32>, tensor<3x3x16x32xf32>) outs(%start : tensor<1x12x10x32xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x12x10x32xf32>
  %y = linalg.generic {indexing_maps = [#all, #bias, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%sum, %b : tensor<1x12x10x32xf32>, tensor<32xf32>) outs(%out : tensor<1x12x10x32xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %t = arith.addf %a, %c : f32
    linalg.yield %t : f32
  } -> tensor<1x12x10x32xf32>
  return %y : tensor<1x12x10x32xf32>
}

// -----

#x = affine_map<(n, h, w, k, i, j, c) -> (n, h + i, w + j, c)>
#g = affine_map<(n, h, w, k, i, j, c) -> (i, j, c, k)>
#y = affine_map<(n, h, w, k, i, j, c) -> (n, h, w, k)>

// Each part of a kernel has memory of its own: the arena holds that of all.
// PARTS-LABEL: func @images(
// PARTS:         %[[EMPTY:.+]] = tensor.empty() : tensor<[[ALL:[0-9]+]]xf32>
// PARTS:         %[[SCRATCH:.+]] = builtin.unrealized_conversion_cast %[[EMPTY]]
// PARTS:         call @conv({{.+}}, %[[SCRATCH]], %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}})
// PARTS-LABEL: func private @conv(
// PARTS-SAME:    memref<[[ALL]]xf32> {ktn.scratch}, %[[PIECE:[^:]+]]: index, %{{.+}}: index, %{{.+}}: index, %{{.+}}: index)
// PARTS-SAME:    ktn.parts = {{[0-9]+}} : i64, passthrough = ["ktn-parts", "ktn-piece"]
// PARTS:         arith.muli %[[PIECE]],
func.func @images(%x: tensor<?x58x58x64xf32>) -> tensor<?x56x56x64xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x58x58x64xf32>
  %g = arith.constant dense<1.0> : tensor<3x3x64x64xf32>
  %out = tensor.empty(%n) : tensor<?x56x56x64xf32>
  %y = call @conv(%x, %g, %out) {ktn.flops = array<i64: 0, 231211008>, ktn.bytes = array<i64: 0, 1664000>} : (tensor<?x58x58x64xf32>, tensor<3x3x64x64xf32>, tensor<?x56x56x64xf32>) -> tensor<?x56x56x64xf32>
  return %y : tensor<?x56x56x64xf32>
}
func.func private @conv(%x: tensor<?x58x58x64xf32>, %g: tensor<3x3x64x64xf32> {ktn.constant}, %out: tensor<?x56x56x64xf32>) -> tensor<?x56x56x64xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<?x56x56x64xf32>) -> tensor<?x56x56x64xf32>
  %sum = linalg.generic {indexing_maps = [#x, #g, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %g : tensor<?x58x58x64xf32>, tensor<3x3x64x64xf32>) outs(%start : tensor<?x56x56x64xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x56x56x64xf32>
  return %sum : tensor<?x56x56x64xf32>
}

// -----

#x = affine_map<(n, h, w, k, i, j, c) -> (n, h * 2 + i, w * 2 + j, c)>
#g = affine_map<(n, h, w, k, i, j, c) -> (i, j, c, k)>
#y = affine_map<(n, h, w, k, i, j, c) -> (n, h, w, k)>

// A window that moves by two is none of these.
// CHECK-LABEL: func private @strided(
// CHECK-SAME:    ktn.kernel = "conv"
func.func private @strided(%x: tensor<1x17x17x16xf32>, %g: tensor<3x3x16x32xf32> {ktn.constant}, %out: tensor<1x8x8x32xf32>) -> tensor<1x8x8x32xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x8x8x32xf32>) -> tensor<1x8x8x32xf32>
  %sum = linalg.generic {indexing_maps = [#x, #g, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %g : tensor<1x17x17x16xf32>, tensor<3x3x16x32xf32>) outs(%start : tensor<1x8x8x32xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x8x8x32xf32>
  return %sum : tensor<1x8x8x32xf32>
}

#x1 = affine_map<(n, h, w, k, i, j, c) -> (n, h + i, w + j, c)>

// Weights that are only known when the code runs, as in training: the kernel
// transforms them, into memory for all of its calls.
// CHECK-LABEL: func private @trained(
// CHECK-SAME:    %[[X:[^:]+]]: memref<1x10x10x16xf32>,
// CHECK-SAME:    %[[G:[^:]+]]: memref<3x3x16x32xf32>,
// CHECK-SAME:    %[[MEMORY:[^:]+]]: memref<19008xf32> {ktn.shared_scratch}
// CHECK-SAME:    ktn.kernel = "winograd4"
// CHECK:         %[[OWN:.+]] = memref.reinterpret_cast %[[MEMORY]] to offset: [%c0{{[_0-9]*}}], sizes: [36, 1, 16, 32], strides: [528, 512, 32, 1]
// CHECK:         scf.for
// CHECK-COUNT-9:   vector.load %[[G]]
// CHECK-NOT:       vector.load
// CHECK-COUNT-36:  vector.store %{{.+}}, %[[OWN]]
// CHECK:         vector.load %[[X]]
// CHECK:         vector.load %[[OWN]]
func.func private @trained(%x: tensor<1x10x10x16xf32>, %g: tensor<3x3x16x32xf32>, %out: tensor<1x8x8x32xf32>) -> tensor<1x8x8x32xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x8x8x32xf32>) -> tensor<1x8x8x32xf32>
  %sum = linalg.generic {indexing_maps = [#x1, #g, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %g : tensor<1x10x10x16xf32>, tensor<3x3x16x32xf32>) outs(%start : tensor<1x8x8x32xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x8x8x32xf32>
  return %sum : tensor<1x8x8x32xf32>
}

// -----

#x = affine_map<(n, h, w, k, i, j, c) -> (n, h + i, w + j, c)>
#g = affine_map<(n, h, w, k, i, j, c) -> (i, j, c, k)>
#y = affine_map<(n, h, w, k, i, j, c) -> (n, h, w, k)>

// Few tiles: all parts of a turn are done before the next one begins. Shared
// are the tiles of the inputs, the positions, and the tiles of the outputs.
// Products are behind the ring, unless a call does all turns.
// PARTS-LABEL: func.func @calls_turns(
// PARTS:         call @turns(%{{[^,]+}}, %{{[^,]+}}, %{{[^,]+}}, %{{[^,]+}}, %c0{{[_0-9]*}}, %c0{{[_0-9]*}}, %[[COUNT:[^,]+]], %[[COUNT]])
// PARTS-LABEL: func.func private @turns(
// PARTS-SAME:    %[[X:[^:]+]]: memref<1x10x10x256xf32>
// PARTS-SAME:    %[[MEMORY:[a-z0-9]+]]: memref<155344xf32> {ktn.shared_scratch}, %[[TURN:[a-z0-9]+]]: index {ktn.turn}, %{{[a-z0-9]+}}: index,
// PARTS-SAME:    ktn.parts = 12 : i64, passthrough = ["ktn-parts", ["ktn-turns", "3"]]
// PARTS:         %[[ALL:.+]] = arith.cmpi eq, %[[TURN]], %c0
// PARTS:         %[[PLACE:.+]] = arith.select %[[ALL]], %c0, %c78736
// PARTS:         %[[PRODUCTS:.+]] = memref.reinterpret_cast %[[MEMORY]] to offset: [%[[PLACE]]]
// PARTS:         %[[INPUTS:.+]] = memref.reinterpret_cast %[[MEMORY]] to offset: [%c2128]
// PARTS:         arith.cmpi eq, %[[TURN]], %c1
// PARTS:         scf.if
// PARTS:           vector.load %[[X]]
// PARTS:           vector.store {{.+}}, %[[INPUTS]]
// PARTS:         arith.cmpi eq, %[[TURN]], %c2
// PARTS:         scf.if
// PARTS:           memref.load %[[INPUTS]]
// PARTS:           vector.store {{.+}}, %[[PRODUCTS]]
// PARTS:         arith.cmpi eq, %[[TURN]], %c3
// PARTS:         scf.if
// PARTS:           vector.load %[[PRODUCTS]]
func.func @calls_turns(%x: tensor<1x10x10x256xf32>) -> tensor<1x8x8x512xf32> {
  %g = arith.constant dense<1.0> : tensor<3x3x256x512xf32>
  %out = tensor.empty() : tensor<1x8x8x512xf32>
  %y = call @turns(%x, %g, %out) {ktn.flops = array<i64: 150994944, 0>, ktn.bytes = array<i64: 4952064, 0>} : (tensor<1x10x10x256xf32>, tensor<3x3x256x512xf32>, tensor<1x8x8x512xf32>) -> tensor<1x8x8x512xf32>
  return %y : tensor<1x8x8x512xf32>
}
func.func private @turns(%x: tensor<1x10x10x256xf32>, %g: tensor<3x3x256x512xf32> {ktn.constant}, %out: tensor<1x8x8x512xf32>) -> tensor<1x8x8x512xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x8x8x512xf32>) -> tensor<1x8x8x512xf32>
  %sum = linalg.generic {indexing_maps = [#x, #g, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %g : tensor<1x10x10x256xf32>, tensor<3x3x256x512xf32>) outs(%start : tensor<1x8x8x512xf32>) {
  ^bb0(%in: f32, %w: f32, %s: f32):
    %p = arith.mulf %in, %w : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x8x8x512xf32>
  return %sum : tensor<1x8x8x512xf32>
}

// -----

#x = affine_map<(n, h, w, k, i, j, c) -> (n, h + i, w + j, c)>
#g = affine_map<(n, h, w, k, i, j, c) -> (i, j, c, k)>
#y = affine_map<(n, h, w, k, i, j, c) -> (n, h, w, k)>

// The same of a batch that may have one image: four tiles at most are its only
// block, of which the calls of each turn do a step, unless one call does all.
// Several blocks are the work of the second turn, by the same loops.
// PARTS-LABEL: func.func private @open_turns(
// PARTS-SAME:    {ktn.scratch}, %{{[a-z0-9]+}}: index, %[[TURN:[a-z0-9]+]]: index {ktn.turn}, %{{[a-z0-9]+}}: index,
// PARTS-SAME:    ["ktn-turns", "3"]
// PARTS:         %[[IS_ONE:.+]] = arith.cmpi ule, %{{.+}}, %c4
// PARTS:         %[[ALL:.+]] = arith.cmpi eq, %[[TURN]], %c0
// PARTS:         %[[STEPS:.+]] = arith.select %[[ALL]], %{{.+}}, %[[IS_ONE]] : i1
// PARTS:         arith.select %[[STEPS]], %c0
// PARTS:         arith.cmpi eq, %[[TURN]], %c2
// PARTS:         scf.for
// PARTS:           arith.cmpi eq, %[[TURN]], %c1
// PARTS:           arith.cmpi eq, %[[TURN]], %c3
// PARTS-NOT:       scf.if
// PARTS:           vector.load %arg0
func.func @calls_open(%x: tensor<?x10x10x256xf32>) -> tensor<?x8x8x512xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x10x10x256xf32>
  %g = arith.constant dense<1.0> : tensor<3x3x256x512xf32>
  %out = tensor.empty(%n) : tensor<?x8x8x512xf32>
  %y = call @open_turns(%x, %g, %out) {ktn.flops = array<i64: 0, 150994944>, ktn.bytes = array<i64: 0, 4952064>} : (tensor<?x10x10x256xf32>, tensor<3x3x256x512xf32>, tensor<?x8x8x512xf32>) -> tensor<?x8x8x512xf32>
  return %y : tensor<?x8x8x512xf32>
}
func.func private @open_turns(%x: tensor<?x10x10x256xf32>, %g: tensor<3x3x256x512xf32> {ktn.constant}, %out: tensor<?x8x8x512xf32>) -> tensor<?x8x8x512xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<?x8x8x512xf32>) -> tensor<?x8x8x512xf32>
  %sum = linalg.generic {indexing_maps = [#x, #g, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %g : tensor<?x10x10x256xf32>, tensor<3x3x256x512xf32>) outs(%start : tensor<?x8x8x512xf32>) {
  ^bb0(%in: f32, %w: f32, %s: f32):
    %p = arith.mulf %in, %w : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x8x8x512xf32>
  return %sum : tensor<?x8x8x512xf32>
}

// -----

#x = affine_map<(n, h, w, k, i, j, c) -> (n, h + i, w + j, c)>
#g = affine_map<(n, h, w, k, i, j, c) -> (i, j, c, k)>
#y = affine_map<(n, h, w, k, i, j, c) -> (n, h, w, k)>

// Such weights are done in a turn of their own, in front of blocks of tiles.
// PARTS-LABEL: func private @trained_blocks(
// PARTS-SAME:    %[[G:[a-z0-9]+]]: memref<3x3x128x32xf32>,
// PARTS-SAME:    %[[OWN:[a-z0-9]+]]: memref<148032xf32> {ktn.shared_scratch}, %{{[a-z0-9]+}}: memref<{{[0-9]+}}xf32> {ktn.scratch}, %{{[a-z0-9]+}}: index, %[[TURN:[a-z0-9]+]]: index {ktn.turn}
// PARTS-SAME:    ktn.parts = 4 : i64, passthrough = ["ktn-parts", "ktn-piece", ["ktn-turns", "2"]]
// PARTS:         arith.cmpi eq, %[[TURN]], %c1
// PARTS:         scf.if
// PARTS:           vector.load %[[G]]
// PARTS:         arith.cmpi eq, %[[TURN]], %c2
// PARTS:         scf.if
// PARTS:           scf.for %{{.+}} = %{{.+}} to %{{.+}} step %c13
func.func @calls_trained_blocks(%x: tensor<1x30x30x128xf32>, %g: tensor<3x3x128x32xf32>) -> tensor<1x28x28x32xf32> {
  %out = tensor.empty() : tensor<1x28x28x32xf32>
  %y = call @trained_blocks(%x, %g, %out) {ktn.flops = array<i64: 57802752, 0>, ktn.bytes = array<i64: 709000, 0>} : (tensor<1x30x30x128xf32>, tensor<3x3x128x32xf32>, tensor<1x28x28x32xf32>) -> tensor<1x28x28x32xf32>
  return %y : tensor<1x28x28x32xf32>
}
func.func private @trained_blocks(%x: tensor<1x30x30x128xf32>, %g: tensor<3x3x128x32xf32>, %out: tensor<1x28x28x32xf32>) -> tensor<1x28x28x32xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x28x28x32xf32>) -> tensor<1x28x28x32xf32>
  %sum = linalg.generic {indexing_maps = [#x, #g, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %g : tensor<1x30x30x128xf32>, tensor<3x3x128x32xf32>) outs(%start : tensor<1x28x28x32xf32>) {
  ^bb0(%in: f32, %w: f32, %s: f32):
    %p = arith.mulf %in, %w : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x28x28x32xf32>
  return %sum : tensor<1x28x28x32xf32>
}

// -----

#x = affine_map<(n, h, w, k, i, j, c) -> (n, h + i, w + j, c)>
#g = affine_map<(n, h, w, k, i, j, c) -> (i, j, c, k)>
#y = affine_map<(n, h, w, k, i, j, c) -> (n, h, w, k)>

// 49 tiles are 13, 13, 13 and 10, so that two threads have about as many, and
// four. One thread has 20, 20 and 9.
// CHECK-LABEL: func private @blocks(
// CHECK:         scf.for %{{.+}} = %c0 to %c49 step %c20
// PARTS-LABEL: func private @blocks(
// PARTS-SAME:    ktn.parts = 4 : i64, passthrough = ["ktn-parts", "ktn-piece"]
// PARTS:         scf.for %{{.+}} = %{{.+}} to %{{.+}} step %c13
func.func @calls_blocks(%x: tensor<1x30x30x128xf32>) -> tensor<1x28x28x32xf32> {
  %g = arith.constant dense<1.0> : tensor<3x3x128x32xf32>
  %out = tensor.empty() : tensor<1x28x28x32xf32>
  %y = call @blocks(%x, %g, %out) {ktn.flops = array<i64: 57802752, 0>, ktn.bytes = array<i64: 709000, 0>} : (tensor<1x30x30x128xf32>, tensor<3x3x128x32xf32>, tensor<1x28x28x32xf32>) -> tensor<1x28x28x32xf32>
  return %y : tensor<1x28x28x32xf32>
}
func.func private @blocks(%x: tensor<1x30x30x128xf32>, %g: tensor<3x3x128x32xf32> {ktn.constant}, %out: tensor<1x28x28x32xf32>) -> tensor<1x28x28x32xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x28x28x32xf32>) -> tensor<1x28x28x32xf32>
  %sum = linalg.generic {indexing_maps = [#x, #g, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %g : tensor<1x30x30x128xf32>, tensor<3x3x128x32xf32>) outs(%start : tensor<1x28x28x32xf32>) {
  ^bb0(%in: f32, %w: f32, %s: f32):
    %p = arith.mulf %in, %w : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x28x28x32xf32>
  return %sum : tensor<1x28x28x32xf32>
}
