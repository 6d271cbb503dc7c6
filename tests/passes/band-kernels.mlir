// RUN: keratin-opt %s --ktn-band-kernels=parallel=false --canonicalize --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-band-kernels="parallel=false band-kib=2048" --canonicalize --split-input-file | FileCheck %s --check-prefix=LARGE
// RUN: keratin-opt %s --ktn-band-kernels --ktn-emit-tiles="vector-bits=512 vector-registers=32 parallel" --ktn-plan-memory --canonicalize --cse --split-input-file | FileCheck %s --check-prefix=LOOPS

#sum = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>
#weights = affine_map<(d0, d1, d2, d3, d4) -> (d4, d3)>
#out = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
#window = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 * 2 + d4, d2 * 2 + d5, d3)>
#taps = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5, d3)>
#image = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>

// The image between the kernels has 4.9 MB. A band of 7 rows needs 15, which
// with a row of zeros in front of them and one behind are the 17 of a buffer;
// only in the first band the row of zeros is read. One of the 15 is kept from
// the band before; it is computed, and the zeros are written, where an image or
// the part of a thread begins.
// CHECK-LABEL: func.func @net(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<?x112x112x16xf32>
// CHECK-DAG:     %[[BANDS:.+]] = arith.constant 8 : index
// CHECK-DAG:     %[[ROWS:.+]] = arith.constant 7 : index
// CHECK-DAG:     %[[N:.+]] = tensor.dim %[[X]]
// CHECK-DAG:     %[[TOTAL:.+]] = arith.muli %[[N]], %[[BANDS]]
// CHECK:         scf.for %[[I:[a-z0-9]+]] = %{{.+}} to %[[TOTAL]] step %{{.+}} iter_args(%[[Y:[a-z0-9]+]] = %{{.+}}) -> (tensor<?x56x56x96xf32>)
// CHECK-DAG:       %[[IMAGE:.+]] = arith.divui %[[I]], %[[BANDS]]
// CHECK-DAG:       %[[BAND:.+]] = arith.remui %[[I]], %[[BANDS]]
// CHECK-DAG:       %[[FIRST:.+]] = arith.muli %[[BAND]], %[[ROWS]]
// CHECK:           %[[BUFFER:.+]] = tensor.empty() {ktn.buffer = {{.+}}} : tensor<1x17x114x96xf32>
// CHECK:           %[[PART:.+]] = tensor.extract_slice %[[X]][%[[IMAGE]], %[[FROM:.+]], 0, 0] [1, 1, 112, 16]
// CHECK:           %[[KEPT:.+]] = {{.*}}call @kernel.expand.rows1(%[[PART]], {{.+}}ktn.start = {apart = 1 : i64, bands = 8 : i64, moved = 1 : i64, steps = array<i64: 7, 0, 49, 2, 1, 97>}
// CHECK:           %[[WITH:.+]] = tensor.insert_slice %[[KEPT]] into %[[BUFFER]][0, 1, 0, 0] [1, 1, 114, 96]
// CHECK:           %[[ABOVE:.+]] = {{.*}}call @kernel.expand.fill({{.+}}ktn.start = {apart = 0 : i64, bands = 8 : i64, moved = 0 : i64,
// CHECK:           tensor.insert_slice %[[ABOVE]] into %[[WITH]][0, 0, 0, 0] [1, 1, 114, 96]
// CHECK:           %[[BELOW:.+]] = {{.*}}call @kernel.expand.fill({{.+}}ktn.start = {apart = 0 : i64, bands = 8 : i64, moved = 0 : i64,
// CHECK:           %[[ALL:.+]] = tensor.insert_slice %[[BELOW]] into %{{.+}}[0, 16, 0, 0] [1, 1, 114, 96]
// CHECK:           %[[T:.+]] = scf.for %[[ROW:[a-z0-9]+]] = %c1 to %c15 step %c1 iter_args(%[[OTHERS:[a-z0-9]+]] = %[[ALL]])
// CHECK-DAG:         %[[TO:.+]] = arith.addi %[[ROW]], %c1
// CHECK-DAG:         %[[AT:.+]] = arith.addi %[[FROM]], %[[ROW]]
// CHECK:             tensor.extract_slice %[[X]][%[[IMAGE]], %[[AT]], 0, 0] [1, 1, 112, 16]
// CHECK:             %[[NEW:.+]] = {{.*}}call @kernel.expand.rows1(
// CHECK-NOT:         ktn.start
// CHECK:             tensor.insert_slice %[[NEW]] into %[[OTHERS]][0, %[[TO]], 0, 0] [1, 1, 114, 96]
// CHECK:           %[[READ:.+]] = tensor.extract_slice %[[T]][0, %{{.+}}, 0, 0] [1, 15, 114, 96]
// CHECK:           %[[MADE:.+]] = {{.*}}call @kernel.window.rows7(%[[READ]], {{.+}} -> tensor<1x7x56x96xf32>
// CHECK:           tensor.insert_slice %[[MADE]] into %[[Y]][%[[IMAGE]], %{{.+}}, 0, 0] [1, 7, 56, 96]
// CHECK:         ktn.bands = {{.*}}name = "expand+window", pieces = 1
// A larger cache has larger bands, of which fewer rows are moved.
// LARGE-LABEL: func.func @net(
// LARGE:           tensor<1x31x114x96xf32>
// LARGE:           call @kernel.window.rows14(

// The loop is a function that threads share, each with a buffer of its own, and
// the kernels in it are whole.
// LOOPS-LABEL: func.func @net(
// LOOPS-SAME:    ktn.kernels = [{{.+}}op = "bands", shapes = "?x112x112x16xf32 16x96xf32 3x3x96xf32 ?x56x56x96xf32"}]
// LOOPS:         %[[COUNT:.+]] = arith.maxui
// LOOPS:         call @bands.{{.+}}, %[[COUNT]], %[[COUNT]])
// LOOPS-LABEL: func.func private @bands.
// LOOPS-SAME:    %[[ARENA:[a-z0-9]+]]: memref<?xi8> {ktn.bases}, %{{[a-z0-9]+}}: index,
// LOOPS-SAME:    %[[PIECE:[a-z0-9]+]]: index, %[[BEGIN:[a-z0-9]+]]: index, %{{.+}}: index, %[[OF:.+]]: index)
// LOOPS-SAME:    ktn.parts = 16
// LOOPS-SAME:    passthrough = ["ktn-parts", "ktn-piece"]
// LOOPS:         scf.for
// LOOPS:           scf.if
// LOOPS:             %[[APART:.+]] = arith.muli %[[PIECE]],
// LOOPS:             %[[KEPT:.+]] = arith.addi %[[APART]], %c43776
// LOOPS:             memref.view %[[ARENA]][%[[KEPT]]][] : memref<?xi8> to memref<1x1x114x96xf32>
// LOOPS:             call @kernel.expand.rows1(
// LOOPS:           } else {
// LOOPS:             memref.copy
// LOOPS:           scf.if
// LOOPS:             %[[FIRST:.+]] = arith.muli %[[PIECE]],
// LOOPS:             memref.view %[[ARENA]][%[[FIRST]]][] : memref<?xi8> to memref<1x1x114x96xf32>
// LOOPS:             call @kernel.expand.fill(
// LOOPS:           scf.for
// LOOPS:             call @kernel.expand.rows1(
// LOOPS:           call @kernel.window
func.func @net(%x: tensor<?x112x112x16xf32> {ktn.name = "x"}) -> (tensor<?x56x56x96xf32> {ktn.name = "y"}) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x112x112x16xf32>
  %w = arith.constant dense<0.5> : tensor<16x96xf32>
  %k = arith.constant dense<0.25> : tensor<3x3x96xf32>
  %e = tensor.empty(%n) : tensor<?x114x114x96xf32>
  %t = call @kernel.expand(%x, %w, %e) {ktn.flops = array<i64: 0, 38535168>, ktn.bytes = array<i64: 6144, 5793408>} : (tensor<?x112x112x16xf32>, tensor<16x96xf32>, tensor<?x114x114x96xf32>) -> tensor<?x114x114x96xf32> loc("expand")
  %o = tensor.empty(%n) : tensor<?x56x56x96xf32>
  %y = call @kernel.window(%t, %k, %o) {ktn.flops = array<i64: 0, 5419008>, ktn.bytes = array<i64: 3456, 6194688>} : (tensor<?x114x114x96xf32>, tensor<3x3x96xf32>, tensor<?x56x56x96xf32>) -> tensor<?x56x56x96xf32> loc("window")
  return %y : tensor<?x56x56x96xf32>
}
func.func private @kernel.expand(%x: tensor<?x112x112x16xf32>, %w: tensor<16x96xf32> {ktn.constant}, %out: tensor<?x114x114x96xf32>) -> tensor<?x114x114x96xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x112x112x16xf32>
  %e = tensor.empty(%n) : tensor<?x112x112x96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x112x112x96xf32>) -> tensor<?x112x112x96xf32>
  %0 = linalg.generic {indexing_maps = [#sum, #weights, #out], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
    ins(%x, %w : tensor<?x112x112x16xf32>, tensor<16x96xf32>) outs(%f : tensor<?x112x112x96xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.addf %1, %s : f32
    linalg.yield %2 : f32
  } -> tensor<?x112x112x96xf32>
  %p = tensor.pad %0 low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %h: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<?x112x112x96xf32> to tensor<?x114x114x96xf32>
  return %p : tensor<?x114x114x96xf32>
}
func.func private @kernel.window(%x: tensor<?x114x114x96xf32>, %w: tensor<3x3x96xf32> {ktn.constant}, %out: tensor<?x56x56x96xf32>) -> tensor<?x56x56x96xf32> attributes {ktn.kernel = "depthwise"} {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%out : tensor<?x56x56x96xf32>) -> tensor<?x56x56x96xf32>
  %0 = linalg.generic {indexing_maps = [#window, #taps, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
    ins(%x, %w : tensor<?x114x114x96xf32>, tensor<3x3x96xf32>) outs(%f : tensor<?x56x56x96xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.addf %1, %s : f32
    linalg.yield %2 : f32
  } -> tensor<?x56x56x96xf32>
  return %0 : tensor<?x56x56x96xf32>
}

// -----

#window = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 + d4, d2 + d5, d3)>
#taps = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5, d3)>
#image = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>
#all = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>

// What is between the kernels is needed outside as well: it is computed whole.
// CHECK-LABEL: func.func @twice(
// CHECK-NOT:     scf.for
// CHECK:         call @kernel.square(
// CHECK:         call @kernel.over(
func.func @twice(%x: tensor<1x112x112x64xf32>) -> (tensor<1x112x112x64xf32>, tensor<1x110x110x64xf32>) {
  %k = arith.constant dense<0.25> : tensor<3x3x64xf32>
  %e = tensor.empty() : tensor<1x112x112x64xf32>
  %t = call @kernel.square(%x, %e) {ktn.flops = array<i64: 802816, 0>, ktn.bytes = array<i64: 6422528, 0>} : (tensor<1x112x112x64xf32>, tensor<1x112x112x64xf32>) -> tensor<1x112x112x64xf32>
  %o = tensor.empty() : tensor<1x110x110x64xf32>
  %y = call @kernel.over(%t, %k, %o) {ktn.flops = array<i64: 13939200, 0>, ktn.bytes = array<i64: 6310912, 0>} : (tensor<1x112x112x64xf32>, tensor<3x3x64xf32>, tensor<1x110x110x64xf32>) -> tensor<1x110x110x64xf32>
  return %t, %y : tensor<1x112x112x64xf32>, tensor<1x110x110x64xf32>
}

// No border: the window goes along with the band.
// CHECK-LABEL: func.func @once(
// CHECK:         scf.for
// CHECK:           %[[T:.+]] = func.call @kernel.square.rows30(
// CHECK-NOT:       extract_slice
// CHECK:           func.call @kernel.over.rows28(%[[T]],
func.func @once(%x: tensor<1x112x112x64xf32>) -> tensor<1x110x110x64xf32> {
  %k = arith.constant dense<0.25> : tensor<3x3x64xf32>
  %e = tensor.empty() : tensor<1x112x112x64xf32>
  %t = call @kernel.square(%x, %e) {ktn.flops = array<i64: 802816, 0>, ktn.bytes = array<i64: 6422528, 0>} : (tensor<1x112x112x64xf32>, tensor<1x112x112x64xf32>) -> tensor<1x112x112x64xf32>
  %o = tensor.empty() : tensor<1x110x110x64xf32>
  %y = call @kernel.over(%t, %k, %o) {ktn.flops = array<i64: 13939200, 0>, ktn.bytes = array<i64: 6310912, 0>} : (tensor<1x112x112x64xf32>, tensor<3x3x64xf32>, tensor<1x110x110x64xf32>) -> tensor<1x110x110x64xf32>
  return %y : tensor<1x110x110x64xf32>
}
func.func private @kernel.square(%x: tensor<1x112x112x64xf32>, %out: tensor<1x112x112x64xf32>) -> tensor<1x112x112x64xf32> attributes {ktn.kernel = "elementwise"} {
  %0 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%x : tensor<1x112x112x64xf32>) outs(%out : tensor<1x112x112x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = arith.mulf %a, %a : f32
    linalg.yield %1 : f32
  } -> tensor<1x112x112x64xf32>
  return %0 : tensor<1x112x112x64xf32>
}
func.func private @kernel.over(%x: tensor<1x112x112x64xf32>, %w: tensor<3x3x64xf32> {ktn.constant}, %out: tensor<1x110x110x64xf32>) -> tensor<1x110x110x64xf32> attributes {ktn.kernel = "depthwise"} {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%out : tensor<1x110x110x64xf32>) -> tensor<1x110x110x64xf32>
  %0 = linalg.generic {indexing_maps = [#window, #taps, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
    ins(%x, %w : tensor<1x112x112x64xf32>, tensor<3x3x64xf32>) outs(%f : tensor<1x110x110x64xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.addf %1, %s : f32
    linalg.yield %2 : f32
  } -> tensor<1x110x110x64xf32>
  return %0 : tensor<1x110x110x64xf32>
}

// -----

#taken = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 * 2 + d4, d2 * 2 + d5, d6)>
#filters = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d4, d5, d6, d3)>
#made = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>
#window = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 + d4, d2 + d5, d3)>
#taps = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5, d3)>
#image = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>

// So is a copy of the image with a border, which only the first kernel reads.
// CHECK-LABEL: func.func @stem(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<1x224x224x3xf32>
// CHECK-NOT:     call
// CHECK:         scf.for
// CHECK:           %[[PART:.+]] = tensor.extract_slice %[[X]][0, %{{.+}}, 0, 0] [1, 61, 224, 3]
// CHECK:           %[[ROWS:.+]] = {{.*}}call @kernel.pad.rows61(%[[PART]], {{.+}} -> tensor<1x62x225x3xf32>
// CHECK:           %[[READ:.+]] = tensor.extract_slice %[[ROWS]][0, %{{.+}}, 0, 0] [1, 3, 225, 3]
// CHECK:           {{.*}}call @kernel.first.rows1(%[[READ]], {{.+}}ktn.start
// CHECK:           scf.for
// CHECK:             {{.*}}call @kernel.first.rows1(
// CHECK:           {{.*}}call @kernel.second.rows28(
func.func @stem(%x: tensor<1x224x224x3xf32>) -> tensor<1x112x112x32xf32> {
  %w = arith.constant dense<0.5> : tensor<3x3x3x32xf32>
  %k = arith.constant dense<0.25> : tensor<3x3x32xf32>
  %p = tensor.empty() : tensor<1x225x225x3xf32>
  %b = call @kernel.pad(%x, %p) {ktn.flops = array<i64: 0, 0>, ktn.bytes = array<i64: 1209612, 0>} : (tensor<1x224x224x3xf32>, tensor<1x225x225x3xf32>) -> tensor<1x225x225x3xf32> loc("pad")
  %e = tensor.empty() : tensor<1x114x114x32xf32>
  %t = call @kernel.first(%b, %w, %e) {ktn.flops = array<i64: 21676032, 0>, ktn.bytes = array<i64: 2274444, 0>} : (tensor<1x225x225x3xf32>, tensor<3x3x3x32xf32>, tensor<1x114x114x32xf32>) -> tensor<1x114x114x32xf32> loc("first")
  %o = tensor.empty() : tensor<1x112x112x32xf32>
  %y = call @kernel.second(%t, %k, %o) {ktn.flops = array<i64: 7225344, 0>, ktn.bytes = array<i64: 3270272, 0>} : (tensor<1x114x114x32xf32>, tensor<3x3x32xf32>, tensor<1x112x112x32xf32>) -> tensor<1x112x112x32xf32> loc("second")
  return %y : tensor<1x112x112x32xf32>
}
func.func private @kernel.pad(%x: tensor<1x224x224x3xf32>, %out: tensor<1x225x225x3xf32>) -> tensor<1x225x225x3xf32> attributes {ktn.kernel = "pad"} {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, 0, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %h: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x224x224x3xf32> to tensor<1x225x225x3xf32>
  return %p : tensor<1x225x225x3xf32>
}
func.func private @kernel.first(%x: tensor<1x225x225x3xf32>, %w: tensor<3x3x3x32xf32> {ktn.constant}, %out: tensor<1x114x114x32xf32>) -> tensor<1x114x114x32xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x112x112x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x112x112x32xf32>) -> tensor<1x112x112x32xf32>
  %0 = linalg.generic {indexing_maps = [#taken, #filters, #made], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
    ins(%x, %w : tensor<1x225x225x3xf32>, tensor<3x3x3x32xf32>) outs(%f : tensor<1x112x112x32xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.addf %1, %s : f32
    linalg.yield %2 : f32
  } -> tensor<1x112x112x32xf32>
  %p = tensor.pad %0 low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %h: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x112x112x32xf32> to tensor<1x114x114x32xf32>
  return %p : tensor<1x114x114x32xf32>
}
func.func private @kernel.second(%x: tensor<1x114x114x32xf32>, %w: tensor<3x3x32xf32> {ktn.constant}, %out: tensor<1x112x112x32xf32>) -> tensor<1x112x112x32xf32> attributes {ktn.kernel = "depthwise"} {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%out : tensor<1x112x112x32xf32>) -> tensor<1x112x112x32xf32>
  %0 = linalg.generic {indexing_maps = [#window, #taps, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
    ins(%x, %w : tensor<1x114x114x32xf32>, tensor<3x3x32xf32>) outs(%f : tensor<1x112x112x32xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.addf %1, %s : f32
    linalg.yield %2 : f32
  } -> tensor<1x112x112x32xf32>
  return %0 : tensor<1x112x112x32xf32>
}

// -----

#over = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 + d4, d2 + d5, d6)>
#filters = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d4, d5, d6, d3)>
#made = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>
#pooled = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 * 2 + d4, d2 * 2 + d5, d3)>
#two = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5)>
#image = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>

// Windows that overlap may be computed by tiles, so bands of them have whole
// tiles of rows. The last kernel of a chain writes the rows of its band with
// what is beside them; the rows of the border are written behind the loop.
// CHECK-LABEL: func.func @pooled(
// CHECK:         %[[ALL:.+]] = scf.for %{{.+}} = %{{.+}} to %{{.+}} step %{{.+}} iter_args(%[[Y:[a-z0-9]+]] = %{{.+}}) -> (tensor<1x58x58x64xf32>)
// CHECK:           %[[T:.+]] = {{.*}}call @kernel.conv.rows28(%{{.+}} -> tensor<1x28x112x64xf32>
// CHECK:           %[[P:.+]] = {{.*}}call @kernel.pool.rows14(%[[T]], %{{.+}} -> tensor<1x14x58x64xf32>
// CHECK:           tensor.insert_slice %[[P]] into %[[Y]][0, %{{.+}}, 0, 0] [1, 14, 58, 64]
// CHECK:         %[[TOP:.+]] = tensor.empty() : tensor<1x1x58x64xf32>
// CHECK:         %[[ZEROS:.+]] = call @[[FILL:.+]](%[[TOP]])
// CHECK:         %[[WITH:.+]] = tensor.insert_slice %[[ZEROS]] into %[[ALL]][0, 0, 0, 0]
// CHECK:         %[[BOTTOM:.+]] = call @[[FILL]](
// CHECK:         tensor.insert_slice %[[BOTTOM]] into %[[WITH]][0, 57, 0, 0] [1, 1, 58, 64]
func.func @pooled(%x: tensor<1x114x114x32xf32>) -> tensor<1x58x58x64xf32> {
  %w = arith.constant dense<0.5> : tensor<3x3x32x64xf32>
  %e = tensor.empty() : tensor<1x112x112x64xf32>
  %t = call @kernel.conv(%x, %w, %e) {ktn.flops = array<i64: 462422016, 0>, ktn.bytes = array<i64: 4948992, 0>} : (tensor<1x114x114x32xf32>, tensor<3x3x32x64xf32>, tensor<1x112x112x64xf32>) -> tensor<1x112x112x64xf32> loc("conv")
  %s = tensor.empty() : tensor<2x2xf32>
  %o = tensor.empty() : tensor<1x58x58x64xf32>
  %y = call @kernel.pool(%t, %s, %o) {ktn.flops = array<i64: 802816, 0>, ktn.bytes = array<i64: 4072448, 0>} : (tensor<1x112x112x64xf32>, tensor<2x2xf32>, tensor<1x58x58x64xf32>) -> tensor<1x58x58x64xf32> loc("pool")
  return %y : tensor<1x58x58x64xf32>
}

// Of many weights each band would read all again.
// CHECK-LABEL: func.func @heavy(
// CHECK-NOT:     scf.for
// CHECK:         call @kernel.deep(
// CHECK:         call @kernel.pool_deep(
func.func @heavy(%x: tensor<1x58x58x256xf32>) -> tensor<1x28x28x256xf32> {
  %w = arith.constant dense<0.5> : tensor<3x3x256x256xf32>
  %e = tensor.empty() : tensor<1x56x56x256xf32>
  %t = call @kernel.deep(%x, %w, %e) {ktn.flops = array<i64: 3699376128, 0>, ktn.bytes = array<i64: 9015296, 0>} : (tensor<1x58x58x256xf32>, tensor<3x3x256x256xf32>, tensor<1x56x56x256xf32>) -> tensor<1x56x56x256xf32>
  %s = tensor.empty() : tensor<2x2xf32>
  %o = tensor.empty() : tensor<1x28x28x256xf32>
  %y = call @kernel.pool_deep(%t, %s, %o) {ktn.flops = array<i64: 802816, 0>, ktn.bytes = array<i64: 4014080, 0>} : (tensor<1x56x56x256xf32>, tensor<2x2xf32>, tensor<1x28x28x256xf32>) -> tensor<1x28x28x256xf32>
  return %y : tensor<1x28x28x256xf32>
}

// Of little images a band is one of them.
// CHECK-LABEL: func.func @images(
// CHECK-DAG:     %[[IMAGES:.+]] = arith.constant 32 : index
// CHECK:         scf.for %{{.+}} = %{{.+}} to %[[IMAGES]] step
// CHECK:           call @kernel.little.rows28(%{{.+}} -> tensor<1x28x28x32xf32>
// CHECK:           call @kernel.pool_little.rows14(%{{.+}} -> tensor<1x14x14x32xf32>
func.func @images(%x: tensor<32x30x30x16xf32>) -> tensor<32x14x14x32xf32> {
  %w = arith.constant dense<0.5> : tensor<3x3x16x32xf32>
  %e = tensor.empty() : tensor<32x28x28x32xf32>
  %t = call @kernel.little(%x, %w, %e) {ktn.flops = array<i64: 231211008, 0>, ktn.bytes = array<i64: 5072896, 0>} : (tensor<32x30x30x16xf32>, tensor<3x3x16x32xf32>, tensor<32x28x28x32xf32>) -> tensor<32x28x28x32xf32>
  %s = tensor.empty() : tensor<2x2xf32>
  %o = tensor.empty() : tensor<32x14x14x32xf32>
  %y = call @kernel.pool_little(%t, %s, %o) {ktn.flops = array<i64: 802816, 0>, ktn.bytes = array<i64: 4014080, 0>} : (tensor<32x28x28x32xf32>, tensor<2x2xf32>, tensor<32x14x14x32xf32>) -> tensor<32x14x14x32xf32>
  return %y : tensor<32x14x14x32xf32>
}
func.func private @kernel.conv(%x: tensor<1x114x114x32xf32>, %w: tensor<3x3x32x64xf32> {ktn.constant}, %out: tensor<1x112x112x64xf32>) -> tensor<1x112x112x64xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%out : tensor<1x112x112x64xf32>) -> tensor<1x112x112x64xf32>
  %0 = linalg.generic {indexing_maps = [#over, #filters, #made], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
    ins(%x, %w : tensor<1x114x114x32xf32>, tensor<3x3x32x64xf32>) outs(%f : tensor<1x112x112x64xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.addf %1, %s : f32
    linalg.yield %2 : f32
  } -> tensor<1x112x112x64xf32>
  return %0 : tensor<1x112x112x64xf32>
}
func.func private @kernel.pool(%x: tensor<1x112x112x64xf32>, %w: tensor<2x2xf32>, %out: tensor<1x58x58x64xf32>) -> tensor<1x58x58x64xf32> attributes {ktn.kernel = "pool"} {
  %least = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x56x56x64xf32>
  %f = linalg.fill ins(%least : f32) outs(%e : tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32>
  %0 = linalg.generic {indexing_maps = [#pooled, #two, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
    ins(%x, %w : tensor<1x112x112x64xf32>, tensor<2x2xf32>) outs(%f : tensor<1x56x56x64xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %1 = arith.maximumf %a, %s : f32
    linalg.yield %1 : f32
  } -> tensor<1x56x56x64xf32>
  %p = tensor.pad %0 low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %h: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x56x56x64xf32> to tensor<1x58x58x64xf32>
  return %p : tensor<1x58x58x64xf32>
}
func.func private @kernel.deep(%x: tensor<1x58x58x256xf32>, %w: tensor<3x3x256x256xf32> {ktn.constant}, %out: tensor<1x56x56x256xf32>) -> tensor<1x56x56x256xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%out : tensor<1x56x56x256xf32>) -> tensor<1x56x56x256xf32>
  %0 = linalg.generic {indexing_maps = [#over, #filters, #made], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
    ins(%x, %w : tensor<1x58x58x256xf32>, tensor<3x3x256x256xf32>) outs(%f : tensor<1x56x56x256xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.addf %1, %s : f32
    linalg.yield %2 : f32
  } -> tensor<1x56x56x256xf32>
  return %0 : tensor<1x56x56x256xf32>
}
func.func private @kernel.pool_deep(%x: tensor<1x56x56x256xf32>, %w: tensor<2x2xf32>, %out: tensor<1x28x28x256xf32>) -> tensor<1x28x28x256xf32> attributes {ktn.kernel = "pool"} {
  %least = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%least : f32) outs(%out : tensor<1x28x28x256xf32>) -> tensor<1x28x28x256xf32>
  %0 = linalg.generic {indexing_maps = [#pooled, #two, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
    ins(%x, %w : tensor<1x56x56x256xf32>, tensor<2x2xf32>) outs(%f : tensor<1x28x28x256xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %1 = arith.maximumf %a, %s : f32
    linalg.yield %1 : f32
  } -> tensor<1x28x28x256xf32>
  return %0 : tensor<1x28x28x256xf32>
}
func.func private @kernel.little(%x: tensor<32x30x30x16xf32>, %w: tensor<3x3x16x32xf32> {ktn.constant}, %out: tensor<32x28x28x32xf32>) -> tensor<32x28x28x32xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%out : tensor<32x28x28x32xf32>) -> tensor<32x28x28x32xf32>
  %0 = linalg.generic {indexing_maps = [#over, #filters, #made], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
    ins(%x, %w : tensor<32x30x30x16xf32>, tensor<3x3x16x32xf32>) outs(%f : tensor<32x28x28x32xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.addf %1, %s : f32
    linalg.yield %2 : f32
  } -> tensor<32x28x28x32xf32>
  return %0 : tensor<32x28x28x32xf32>
}
func.func private @kernel.pool_little(%x: tensor<32x28x28x32xf32>, %w: tensor<2x2xf32>, %out: tensor<32x14x14x32xf32>) -> tensor<32x14x14x32xf32> attributes {ktn.kernel = "pool"} {
  %least = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%least : f32) outs(%out : tensor<32x14x14x32xf32>) -> tensor<32x14x14x32xf32>
  %0 = linalg.generic {indexing_maps = [#pooled, #two, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
    ins(%x, %w : tensor<32x28x28x32xf32>, tensor<2x2xf32>) outs(%f : tensor<32x14x14x32xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %1 = arith.maximumf %a, %s : f32
    linalg.yield %1 : f32
  } -> tensor<32x14x14x32xf32>
  return %0 : tensor<32x14x14x32xf32>
}

// Only beside the rows of the band.
// CHECK:       func.func private @kernel.pool.rows14(
// CHECK:         tensor.pad %{{.+}} low[0, 0, 1, 0] high[0, 0, 1, 0]

// -----

#all = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#window = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 + d4, d2 + d5, d3)>
#taps = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5, d3)>
#image = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>

// The last band begins where it ends with the rows, in front of their border:
// with the 80th of 107. Each is made in its place.
// CHECK-LABEL: func.func @bordered(
// CHECK:         scf.for
// CHECK:           %[[FIRST:.+]] = arith.minsi %{{.+}}, %c80
// CHECK:           %[[PLACE:.+]] = arith.addi %[[FIRST]], %c1
// CHECK:           tensor.extract_slice %{{.+}}[0, %[[FIRST]], 0, 0] [1, 29, 112, 64]
// CHECK:           func.call @kernel.over.rows27(
// CHECK:           %[[MADE:[a-z0-9]+]] = func.call @kernel.square.rows27(
// CHECK:           tensor.insert_slice %[[MADE]] into %{{.+}}[0, %[[PLACE]], 0, 0] [1, 27, 112, 64]
// LOOPS-LABEL: func.func private @bands.kernel.over.rows27(
// LOOPS:         call @kernel.square.rows27(
// LOOPS-NOT:     memref.copy
// LOOPS:         return
func.func @bordered(%x: tensor<1x109x112x64xf32>) -> tensor<1x109x112x64xf32> {
  %k = arith.constant dense<0.25> : tensor<3x3x64xf32>
  %o = tensor.empty() : tensor<1x107x110x64xf32>
  %y = call @kernel.over(%x, %k, %o) {ktn.flops = array<i64: 13939200, 0>, ktn.bytes = array<i64: 6310912, 0>} : (tensor<1x109x112x64xf32>, tensor<3x3x64xf32>, tensor<1x107x110x64xf32>) -> tensor<1x107x110x64xf32>
  %e = tensor.empty() : tensor<1x109x112x64xf32>
  %t = call @kernel.square(%y, %e) {ktn.flops = array<i64: 802816, 0>, ktn.bytes = array<i64: 6422528, 0>} : (tensor<1x107x110x64xf32>, tensor<1x109x112x64xf32>) -> tensor<1x109x112x64xf32>
  return %t : tensor<1x109x112x64xf32>
}
func.func private @kernel.square(%x: tensor<1x107x110x64xf32>, %out: tensor<1x109x112x64xf32>) -> tensor<1x109x112x64xf32> attributes {ktn.kernel = "elementwise"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x107x110x64xf32>
  %0 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%x : tensor<1x107x110x64xf32>) outs(%e : tensor<1x107x110x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = arith.mulf %a, %a : f32
    linalg.yield %1 : f32
  } -> tensor<1x107x110x64xf32>
  %p = tensor.pad %0 low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x107x110x64xf32> to tensor<1x109x112x64xf32>
  return %p : tensor<1x109x112x64xf32>
}
func.func private @kernel.over(%x: tensor<1x109x112x64xf32>, %w: tensor<3x3x64xf32> {ktn.constant}, %out: tensor<1x107x110x64xf32>) -> tensor<1x107x110x64xf32> attributes {ktn.kernel = "depthwise"} {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%out : tensor<1x107x110x64xf32>) -> tensor<1x107x110x64xf32>
  %0 = linalg.generic {indexing_maps = [#window, #taps, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
    ins(%x, %w : tensor<1x109x112x64xf32>, tensor<3x3x64xf32>) outs(%f : tensor<1x107x110x64xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.addf %1, %s : f32
    linalg.yield %2 : f32
  } -> tensor<1x107x110x64xf32>
  return %0 : tensor<1x107x110x64xf32>
}
