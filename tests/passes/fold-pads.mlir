// RUN: keratin-opt %s --ktn-band-kernels --ktn-fold-pads --canonicalize --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-band-kernels --ktn-fold-pads --ktn-emit-tiles="vector-bits=512 vector-registers=32" --canonicalize --split-input-file | FileCheck %s --check-prefix=LOOPS

#window = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 + d4, d2 + d5, d3)>
#taps = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5, d3)>
#image = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>

// An argument has no room for a border: the window reads around it.
// CHECK-LABEL: func.func @net(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<?x56x56x16xf32>
// CHECK-NOT:     call @kernel.border
// CHECK:         call @kernel.window.padded(%[[X]],
// CHECK-NOT:     func private @kernel.border
// CHECK:       func.func private @kernel.window.padded(%[[A:[a-z0-9]+]]: tensor<?x56x56x16xf32>
// CHECK:         %[[P:.+]] = tensor.pad %[[A]] low[0, 1, 1, 0] high[0, 1, 1, 0]
// CHECK:         linalg.generic {{.+}} ins(%[[P]],

// All reads are of elements that exist, and no tile asks at run time which.
// LOOPS-LABEL: func.func private @kernel.window.padded(
// LOOPS-SAME:    %[[A:[a-z0-9]+]]: memref<?x56x56x16xf32>
// LOOPS-NOT:     memref<?x58x58x16xf32>
// LOOPS-NOT:     arith.select
// LOOPS:         vector.load %[[A]]
// LOOPS-NOT:     arith.select
// LOOPS:         return
func.func @net(%x: tensor<?x56x56x16xf32>, %w: tensor<3x3x16xf32>) -> tensor<?x56x56x16xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x56x56x16xf32>
  %framed = tensor.empty(%n) : tensor<?x58x58x16xf32>
  %p = call @kernel.border(%x, %framed) : (tensor<?x56x56x16xf32>, tensor<?x58x58x16xf32>) -> tensor<?x58x58x16xf32>
  %out = tensor.empty(%n) : tensor<?x56x56x16xf32>
  %y = call @kernel.window(%p, %w, %out) : (tensor<?x58x58x16xf32>, tensor<3x3x16xf32>, tensor<?x56x56x16xf32>) -> tensor<?x56x56x16xf32>
  return %y : tensor<?x56x56x16xf32>
}
func.func private @kernel.border(%x: tensor<?x56x56x16xf32>, %out: tensor<?x58x58x16xf32>) -> tensor<?x58x58x16xf32> attributes {ktn.kernel = "pad"} {
  %zero = arith.constant 0.0 : f32
  %y = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%n: index, %h: index, %w: index, %c: index):
    tensor.yield %zero : f32
  } : tensor<?x56x56x16xf32> to tensor<?x58x58x16xf32>
  return %y : tensor<?x58x58x16xf32>
}
func.func private @kernel.window(%x: tensor<?x58x58x16xf32>, %w: tensor<3x3x16xf32>, %out: tensor<?x56x56x16xf32>) -> tensor<?x56x56x16xf32> attributes {ktn.kernel = "depthwise"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<?x56x56x16xf32>) -> tensor<?x56x56x16xf32>
  %y = linalg.generic {indexing_maps = [#window, #taps, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<?x58x58x16xf32>, tensor<3x3x16xf32>) outs(%start : tensor<?x56x56x16xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %m, %s : f32
    linalg.yield %t : f32
  } -> tensor<?x56x56x16xf32>
  return %y : tensor<?x56x56x16xf32>
}

// -----

#window = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 + d4, d2 + d5, d3)>
#taps = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5, d3)>
#image = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>
#plain = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>

// How many images there are, which what follows the sums asks for, has no
// border.
// CHECK-LABEL: func.func @behind(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<?x56x56x16xf32>
// CHECK-NOT:     call @kernel.border
// CHECK:         call @kernel.window.padded(%[[X]],
// CHECK:       func.func private @kernel.window.padded(%[[A:[a-z0-9]+]]: tensor<?x56x56x16xf32>
// CHECK:         tensor.dim %[[A]],
// LOOPS-LABEL: func.func private @kernel.window.padded(
// LOOPS-SAME:    %[[A:[a-z0-9]+]]: memref<?x56x56x16xf32>
// LOOPS-NOT:     memref<?x58x58x16xf32>
// LOOPS:         arith.maximumf
// LOOPS:         return
func.func @behind(%x: tensor<?x56x56x16xf32>, %w: tensor<3x3x16xf32>) -> tensor<?x56x56x16xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x56x56x16xf32>
  %framed = tensor.empty(%n) : tensor<?x58x58x16xf32>
  %p = call @kernel.border(%x, %framed) : (tensor<?x56x56x16xf32>, tensor<?x58x58x16xf32>) -> tensor<?x58x58x16xf32>
  %out = tensor.empty(%n) : tensor<?x56x56x16xf32>
  %y = call @kernel.window(%p, %w, %out) : (tensor<?x58x58x16xf32>, tensor<3x3x16xf32>, tensor<?x56x56x16xf32>) -> tensor<?x56x56x16xf32>
  return %y : tensor<?x56x56x16xf32>
}
func.func private @kernel.border(%x: tensor<?x56x56x16xf32>, %out: tensor<?x58x58x16xf32>) -> tensor<?x58x58x16xf32> attributes {ktn.kernel = "pad"} {
  %zero = arith.constant 0.0 : f32
  %y = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%n: index, %h: index, %w: index, %c: index):
    tensor.yield %zero : f32
  } : tensor<?x56x56x16xf32> to tensor<?x58x58x16xf32>
  return %y : tensor<?x58x58x16xf32>
}
func.func private @kernel.window(%x: tensor<?x58x58x16xf32>, %w: tensor<3x3x16xf32>, %out: tensor<?x56x56x16xf32>) -> tensor<?x56x56x16xf32> attributes {ktn.kernel = "depthwise"} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x58x58x16xf32>
  %sums = tensor.empty(%n) : tensor<?x56x56x16xf32>
  %start = linalg.fill ins(%zero : f32) outs(%sums : tensor<?x56x56x16xf32>) -> tensor<?x56x56x16xf32>
  %y = linalg.generic {indexing_maps = [#window, #taps, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<?x58x58x16xf32>, tensor<3x3x16xf32>) outs(%start : tensor<?x56x56x16xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %m, %s : f32
    linalg.yield %t : f32
  } -> tensor<?x56x56x16xf32>
  %z = linalg.generic {indexing_maps = [#plain, #plain], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y : tensor<?x56x56x16xf32>) outs(%out : tensor<?x56x56x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.maximumf %a, %zero : f32
    linalg.yield %r : f32
  } -> tensor<?x56x56x16xf32>
  return %z : tensor<?x56x56x16xf32>
}

// -----

#window = affine_map<(n, h, w, c, kh, kw) -> (n, h + kh, w + kw, c)>
#taps = affine_map<(n, h, w, c, kh, kw) -> (kh, kw, c)>
#image = affine_map<(n, h, w, c, kh, kw) -> (n, h, w, c)>

// What a window of many taps reads of a line of channels is copied, with the
// border around it.
// CHECK-LABEL: func.func @wide(
// CHECK-NOT:     call @kernel.border
// CHECK:         call @kernel.window.padded(%{{[a-z0-9]+}},
// LOOPS-LABEL: func.func private @kernel.window.padded(
// LOOPS-SAME:    %[[A:[a-z0-9]+]]: memref<?x28x28x32xf32>
// LOOPS-DAG:     %[[W:.+]] = memref.alloca() {{.+}} : memref<7x7x16xf32>
// LOOPS-DAG:     %[[COPY:.+]] = memref.alloca() {{.+}} : memref<34x34x16xf32>
// LOOPS-NOT:     arith.select
// LOOPS:         vector.store %{{.+}}, %[[COPY]]
// LOOPS:         vector.load %[[A]]
// LOOPS:         vector.store %{{.+}}, %[[W]]
// LOOPS-NOT:     vector.load %[[A]]
// LOOPS:         return
func.func @wide(%x: tensor<?x28x28x32xf32>, %w: tensor<7x7x32xf32>) -> tensor<?x28x28x32xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x28x28x32xf32>
  %framed = tensor.empty(%n) : tensor<?x34x34x32xf32>
  %p = call @kernel.border(%x, %framed) : (tensor<?x28x28x32xf32>, tensor<?x34x34x32xf32>) -> tensor<?x34x34x32xf32>
  %out = tensor.empty(%n) : tensor<?x28x28x32xf32>
  %y = call @kernel.window(%p, %w, %out) : (tensor<?x34x34x32xf32>, tensor<7x7x32xf32>, tensor<?x28x28x32xf32>) -> tensor<?x28x28x32xf32>
  return %y : tensor<?x28x28x32xf32>
}
func.func private @kernel.border(%x: tensor<?x28x28x32xf32>, %out: tensor<?x34x34x32xf32>) -> tensor<?x34x34x32xf32> attributes {ktn.kernel = "pad"} {
  %zero = arith.constant 0.0 : f32
  %y = tensor.pad %x low[0, 3, 3, 0] high[0, 3, 3, 0] {
  ^bb0(%n: index, %h: index, %w: index, %c: index):
    tensor.yield %zero : f32
  } : tensor<?x28x28x32xf32> to tensor<?x34x34x32xf32>
  return %y : tensor<?x34x34x32xf32>
}
func.func private @kernel.window(%x: tensor<?x34x34x32xf32>, %w: tensor<7x7x32xf32>, %out: tensor<?x28x28x32xf32>) -> tensor<?x28x28x32xf32> attributes {ktn.kernel = "depthwise"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<?x28x28x32xf32>) -> tensor<?x28x28x32xf32>
  %y = linalg.generic {indexing_maps = [#window, #taps, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<?x34x34x32xf32>, tensor<7x7x32xf32>) outs(%start : tensor<?x28x28x32xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %m, %s : f32
    linalg.yield %t : f32
  } -> tensor<?x28x28x32xf32>
  return %y : tensor<?x28x28x32xf32>
}

// -----

#window = affine_map<(n, h, w, c, kh, kw) -> (n, h + kh, w + kw, c)>
#taps = affine_map<(n, h, w, c, kh, kw) -> (kh, kw, c)>
#image = affine_map<(n, h, w, c, kh, kw) -> (n, h, w, c)>

// Channels of one line are read as they are, and the border is written for them.
// CHECK-LABEL: func.func @narrow(
// CHECK:         call @kernel.border
// CHECK:         call @kernel.window(
// LOOPS-LABEL: func.func private @kernel.window(
// LOOPS-NOT:     memref.alloca
// LOOPS:         return
func.func @narrow(%x: tensor<1x56x56x16xf32>, %w: tensor<7x7x16xf32>) -> tensor<1x56x56x16xf32> {
  %framed = tensor.empty() : tensor<1x62x62x16xf32>
  %p = call @kernel.border(%x, %framed) : (tensor<1x56x56x16xf32>, tensor<1x62x62x16xf32>) -> tensor<1x62x62x16xf32>
  %out = tensor.empty() : tensor<1x56x56x16xf32>
  %y = call @kernel.window(%p, %w, %out) : (tensor<1x62x62x16xf32>, tensor<7x7x16xf32>, tensor<1x56x56x16xf32>) -> tensor<1x56x56x16xf32>
  return %y : tensor<1x56x56x16xf32>
}
func.func private @kernel.border(%x: tensor<1x56x56x16xf32>, %out: tensor<1x62x62x16xf32>) -> tensor<1x62x62x16xf32> attributes {ktn.kernel = "pad"} {
  %zero = arith.constant 0.0 : f32
  %y = tensor.pad %x low[0, 3, 3, 0] high[0, 3, 3, 0] {
  ^bb0(%n: index, %h: index, %w: index, %c: index):
    tensor.yield %zero : f32
  } : tensor<1x56x56x16xf32> to tensor<1x62x62x16xf32>
  return %y : tensor<1x62x62x16xf32>
}
func.func private @kernel.window(%x: tensor<1x62x62x16xf32>, %w: tensor<7x7x16xf32>, %out: tensor<1x56x56x16xf32>) -> tensor<1x56x56x16xf32> attributes {ktn.kernel = "depthwise"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x56x56x16xf32>) -> tensor<1x56x56x16xf32>
  %y = linalg.generic {indexing_maps = [#window, #taps, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x62x62x16xf32>, tensor<7x7x16xf32>) outs(%start : tensor<1x56x56x16xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %m, %s : f32
    linalg.yield %t : f32
  } -> tensor<1x56x56x16xf32>
  return %y : tensor<1x56x56x16xf32>
}
