// RUN: keratin-opt %s --ktn-form-kernels --canonicalize --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-form-kernels=fuse=false --canonicalize --split-input-file | FileCheck %s --check-prefix=ALONE

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
#x = affine_map<(d0, d1, d2) -> (d0, d2)>
#w = affine_map<(d0, d1, d2) -> (d2, d1)>
#y = affine_map<(d0, d1, d2) -> (d0, d1)>

// The bias joins its product, the four steps of the softmax are one kernel of
// rows. Two uses of the product's value do not part it from its bias. The kernel is
// named after its layer, and the weights are marked.
// CHECK-LABEL: func @dense_softmax(
// CHECK:         call @kernel.head_dense(
// CHECK-SAME:      ktn.flops = array<i64: 0, 15690>
// CHECK-NEXT:    call @kernel.rows(
// CHECK-NEXT:    return
// CHECK:       func.func private @kernel.head_dense(
// CHECK-SAME:    %{{.+}}: tensor<?x784xf32>, %{{.+}}: tensor<784x10xf32> {ktn.constant}, %{{.+}}: tensor<10xf32> {ktn.constant}, %[[OUT:.+]]: tensor<?x10xf32>)
// CHECK-SAME:    ktn.kernel = "matmul"
// CHECK:         arith.mulf
// CHECK:         linalg.generic
// CHECK-SAME:      outs(%[[OUT]] :
// CHECK:       func.func private @kernel.rows(
// CHECK-SAME:    ktn.kernel = "rows"
// CHECK-COUNT-4: linalg.generic
// CHECK-NOT:     linalg.generic
// ALONE-LABEL: func @dense_softmax(
// ALONE-COUNT-6: call @
// ALONE-NEXT:    return
func.func @dense_softmax(%image: tensor<?x784xf32>, %w: tensor<784x10xf32>, %bias: tensor<10xf32>) -> tensor<?x10xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %kernel = arith.constant dense<0.5> : tensor<784x10xf32>
  %offset = arith.constant dense<[0.,1.,2.,3.,4.,5.,6.,7.,8.,9.]> : tensor<10xf32>
  %n = tensor.dim %image, %c0 : tensor<?x784xf32>
  %e = tensor.empty(%n) : tensor<?x10xf32>
  %er = tensor.empty(%n) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x10xf32>) -> tensor<?x10xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%image, %kernel : tensor<?x784xf32>, tensor<784x10xf32>) outs(%f : tensor<?x10xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %m, %o : f32
    linalg.yield %s : f32
  } -> tensor<?x10xf32> loc("head/dense")
  %z = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
    ins(%p, %offset : tensor<?x10xf32>, tensor<10xf32>) outs(%e : tensor<?x10xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<?x10xf32>
  %fm = linalg.fill ins(%lowest : f32) outs(%er : tensor<?xf32>) -> tensor<?xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
    ins(%z : tensor<?x10xf32>) outs(%fm : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.maximumf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  %ex = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
    ins(%z, %max : tensor<?x10xf32>, tensor<?xf32>) outs(%e : tensor<?x10xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    %t = math.exp %s : f32
    linalg.yield %t : f32
  } -> tensor<?x10xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%er : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
    ins(%ex : tensor<?x10xf32>) outs(%fs : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
    ins(%ex, %sum : tensor<?x10xf32>, tensor<?xf32>) outs(%e : tensor<?x10xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.divf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<?x10xf32>
  return %y : tensor<?x10xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#x = affine_map<(d0, d1, d2) -> (d0, d2)>
#w = affine_map<(d0, d1, d2) -> (d2, d1)>
#y = affine_map<(d0, d1, d2) -> (d0, d1)>

// A residual: the sum cannot join the first product, which the second one
// needs, but it joins the second. Products of the same structure share a kernel.
// CHECK-LABEL: func @residual(
// CHECK:         %[[A:.+]] = call @[[FIRST:[a-z_.0-9]+]](
// CHECK:         call @[[SECOND:[a-z_.0-9]+]](%[[A]],
// CHECK-NEXT:    return
func.func @residual(%a: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%f : tensor<4x8xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %m, %o : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  %q = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%p, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%f : tensor<4x8xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %m, %o : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%q, %p : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %s = arith.addf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>

// Equal structure is one kernel; what differs in a constant is another.
// CHECK-LABEL: func @twins(
// CHECK:         call @[[K:[a-z_.0-9]+]](
// CHECK:         call @[[K]](
// CHECK:         call @{{[a-z_.0-9]+}}(
// CHECK-COUNT-2: func.func private
// CHECK-NOT:     func.func private
// ALONE-LABEL: func @twins(
func.func @twins(%a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %two = arith.constant 2.0 : f32
  %three = arith.constant 3.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = arith.mulf %i, %two : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%b : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = arith.mulf %i, %two : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %z = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%b : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = arith.mulf %i, %three : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  return %x, %y, %z : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#keep = affine_map<(d0, d1) -> (d0, 0)>

// A mean that keeps its axis of extent 1 is still one value a row: the mean and
// what it is subtracted from are one kernel with one result.
// CHECK-LABEL: func @centre(
// CHECK:         %[[Y:.+]] = call @{{[a-z_.0-9]+}}(
// CHECK-NEXT:    return %[[Y]]
// CHECK:       ktn.kernel = "rows"
// ALONE-LABEL: func @centre(
func.func @centre(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %count = arith.constant 16.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x16xf32>
  %e = tensor.empty(%n) : tensor<?x16xf32>
  %er = tensor.empty(%n) : tensor<?xf32>
  %ek = tensor.empty(%n) : tensor<?x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%er : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<?x16xf32>) outs(%f : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  %mean = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
    ins(%sum : tensor<?xf32>) outs(%ek : tensor<?x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.divf %a, %count : f32
    linalg.yield %s : f32
  } -> tensor<?x1xf32>
  %y = linalg.generic {indexing_maps = [#id, #keep, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x, %mean : tensor<?x16xf32>, tensor<?x1xf32>) outs(%e : tensor<?x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

#pm = affine_map<(m, n, k) -> (m, k)>
#pk = affine_map<(m, n, k) -> (k, n)>
#pn = affine_map<(m, n, k) -> (m, n)>

// A pad that alone reads a product ends the kernel of the product, which then
// writes inside of the border.
// CHECK-LABEL: func @padded(
// CHECK:         call @
// CHECK-NOT:     call @
// CHECK:         return
// CHECK:         attributes {ktn.kernel = "matmul"}
// CHECK:         %[[P:.+]] = tensor.pad
// CHECK:         return %[[P]]
// ALONE-LABEL: func @padded(
// ALONE-COUNT-2: call @
func.func @padded(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> tensor<4x18xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x16xf32>) -> tensor<4x16xf32>
  %y = linalg.generic {indexing_maps = [#pm, #pk, #pn], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%f : tensor<4x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %m, %o : f32
    linalg.yield %s : f32
  } -> tensor<4x16xf32>
  %p = tensor.pad %y low[0, 1] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x16xf32> to tensor<4x18xf32>
  return %p : tensor<4x18xf32>
}

// -----

// An open extent that is known is no matter of the batch, which is not there.
// CHECK-LABEL: func @known_extent(
// CHECK:         tensor.empty
// CHECK:         call @
func.func @known_extent(%x: tensor<4x8xf32>) -> tensor<?x10xf32> {
  %zero = arith.constant 0.0 : f32
  %c4 = arith.constant 4 : index
  %e = tensor.empty(%c4) : tensor<?x8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<4x8xf32>) outs(%e : tensor<?x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<?x8xf32>
  %p = tensor.pad %y low[0, 1] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<?x8xf32> to tensor<?x10xf32>
  return %p : tensor<?x10xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// Of a table, the rows that are picked count: 64 bytes read, 4 of the index, 64 written. A small one is read once at most.
// CHECK-LABEL: func @embed(
// CHECK:         call @{{.+}} {ktn.bytes = array<i64: 0, 132>
// CHECK-LABEL: func @embed_small(
// CHECK:         call @{{.+}} {ktn.bytes = array<i64: 672, 0>
func.func @embed(%i: tensor<?xi32>, %table: tensor<1000x16xf32>) -> tensor<?x16xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %i, %c0 : tensor<?xi32>
  %e = tensor.empty(%n) : tensor<?x16xf32>
  %y = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%i : tensor<?xi32>) outs(%e : tensor<?x16xf32>) {
  ^bb0(%at: i32, %out: f32):
    %row = arith.index_cast %at : i32 to index
    %column = linalg.index 1 : index
    %v = tensor.extract %table[%row, %column] : tensor<1000x16xf32>
    linalg.yield %v : f32
  } -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

func.func @embed_small(%i: tensor<8xi32>, %table: tensor<2x16xf32>) -> tensor<8x16xf32> {
  %e = tensor.empty() : tensor<8x16xf32>
  %y = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%i : tensor<8xi32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%at: i32, %out: f32):
    %row = arith.index_cast %at : i32 to index
    %column = linalg.index 1 : index
    %v = tensor.extract %table[%row, %column] : tensor<2x16xf32>
    linalg.yield %v : f32
  } -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// A scalar that a kernel is given has no bytes.
// CHECK-LABEL: func @scaled(
// CHECK:         call @{{.+}} {ktn.bytes = array<i64: 256, 0>
func.func @scaled(%x: tensor<8x4xf32>, %rate: f32) -> tensor<8x4xf32> {
  %e = tensor.empty() : tensor<8x4xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %m = arith.mulf %a, %rate : f32
    linalg.yield %m : f32
  } -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#x = affine_map<(d0, d1, d2) -> (d2, d0)>
#w = affine_map<(d0, d1, d2) -> (d2, d1)>
#y = affine_map<(d0, d1, d2) -> (d0, d1)>

// A step of an optimizer is one kernel with the gradient that it follows: what
// the new weights need of the gradient comes with them.
// CHECK-LABEL: func @step(
// CHECK:         call @{{.+}} -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
// CHECK-NOT:     call
// CHECK:         return
// CHECK:       func.func private @kernel.matmul(
// CHECK-COUNT-4: linalg.generic
// ALONE-LABEL: func @step(
// ALONE-COUNT-4: call @
// ALONE-NEXT:    return
func.func @step(%x: tensor<16x4xf32>, %dy: tensor<16x8xf32>, %w: tensor<4x8xf32>, %m: tensor<4x8xf32>, %v: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %g = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%x, %dy : tensor<16x4xf32>, tensor<16x8xf32>) outs(%f : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %p, %o : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  %m1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%m, %g : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  %v1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%v, %g : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.mulf %b, %b : f32
    %s = arith.addf %a, %q : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  %w1 = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%w, %m1, %v1 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
    %q = arith.divf %b, %c : f32
    %s = arith.subf %a, %q : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  return %w1, %m1, %v1 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// So is one of a gradient in memory, of which both averages come from one pass.
// CHECK-LABEL: func @step_of_memory(
// CHECK:         call @{{.+}} -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
// CHECK-NOT:     call
// CHECK:         return
// ALONE-LABEL: func @step_of_memory(
// ALONE-COUNT-3: call @
// ALONE-NEXT:    return
func.func @step_of_memory(%g: tensor<4x8xf32>, %w: tensor<4x8xf32>, %m: tensor<4x8xf32>, %v: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %m1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%m, %g : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  %v1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%v, %g : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.mulf %b, %b : f32
    %s = arith.addf %a, %q : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  %w1 = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%w, %m1, %v1 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
    %q = arith.divf %b, %c : f32
    %s = arith.subf %a, %q : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  return %w1, %m1, %v1 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// Not where the new weights also wait for what is made of one average.
// CHECK-LABEL: func @step_of_sums(
// CHECK-COUNT-3: call @
// CHECK-NEXT:    return
func.func @step_of_sums(%g: tensor<4x8xf32>, %w: tensor<4x8xf32>, %m: tensor<4x8xf32>, %v: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %er = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%er : tensor<4xf32>) -> tensor<4xf32>
  %m1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%m, %g : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  %v1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%v, %g : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.mulf %b, %b : f32
    %s = arith.addf %a, %q : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  %r = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
    ins(%v1 : tensor<4x8xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %w1 = linalg.generic {indexing_maps = [#id, #id, #id, #row, #id], iterator_types = ["parallel", "parallel"]}
    ins(%w, %m1, %v1, %r : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32, %o: f32):
    %n = arith.addf %c, %d : f32
    %q = arith.divf %b, %n : f32
    %s = arith.subf %a, %q : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  return %w1, %m1, %v1 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#t = affine_map<(d0, d1) -> (d1, d0)>

// What is read elsewhere is not known yet where the values follow in place.
// CHECK-LABEL: func @crossed(
// CHECK-COUNT-2: call @
// CHECK-NEXT:    return
func.func @crossed(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %e = tensor.empty() : tensor<8x8xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = arith.addf %i, %i : f32
    linalg.yield %s : f32
  } -> tensor<8x8xf32>
  %b = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]}
    ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = arith.mulf %i, %i : f32
    linalg.yield %s : f32
  } -> tensor<8x8xf32>
  %c = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %s = arith.subf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<8x8xf32>
  return %a, %c : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

#gx = affine_map<(m, g, n, k) -> (m, k)>
#gw = affine_map<(m, g, n, k) -> (k, g, n)>
#gy = affine_map<(m, g, n, k) -> (m, g, n)>
#first = affine_map<(d0, d1) -> (d0, 0, d1)>
#second = affine_map<(d0, d1) -> (d0, 1, d1)>
#here = affine_map<(d0, d1) -> (d0, d1)>

// What reads the gates of a product ends its kernel: the border is another one's.
// CHECK-LABEL: func @padded_gates(
// CHECK:         call @kernel.matmul(
// CHECK:         return
// CHECK:       func.func private @kernel.matmul(
// CHECK-SAME:    -> tensor<4x16xf32> attributes {ktn.kernel = "matmul"}
func.func @padded_gates(%x: tensor<4x8xf32>, %w: tensor<8x2x16xf32>) -> tensor<4x18xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x2x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x2x16xf32>) -> tensor<4x2x16xf32>
  %y = linalg.generic {indexing_maps = [#gx, #gw, #gy], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%x, %w : tensor<4x8xf32>, tensor<8x2x16xf32>) outs(%f : tensor<4x2x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %m, %o : f32
    linalg.yield %s : f32
  } -> tensor<4x2x16xf32>
  %e2 = tensor.empty() : tensor<4x16xf32>
  %g = linalg.generic {indexing_maps = [#first, #second, #here], iterator_types = ["parallel", "parallel"]}
    ins(%y, %y : tensor<4x2x16xf32>, tensor<4x2x16xf32>) outs(%e2 : tensor<4x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<4x16xf32>
  %p = tensor.pad %g low[0, 1] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x16xf32> to tensor<4x18xf32>
  return %p : tensor<4x18xf32>
}

// -----

#gx = affine_map<(m, g, n, k) -> (m, k)>
#gw = affine_map<(m, g, n, k) -> (k, g, n)>
#gy = affine_map<(m, g, n, k) -> (m, g, n)>
#all = affine_map<(m, g, n) -> (m, g, n)>
#first = affine_map<(d0, d1) -> (d0, 0, d1)>
#second = affine_map<(d0, d1) -> (d0, 1, d1)>
#here = affine_map<(d0, d1) -> (d0, d1)>

// Halves of activated channels that go different ways are read by other kernels:
// a tile of gates does not write them.
// CHECK-LABEL: func @halves(
// CHECK:         %[[Y:.+]] = call @kernel.matmul(
// CHECK-SAME:      -> tensor<4x2x16xf32>
// CHECK:         call @{{.+}}(%[[Y]]
// CHECK:         call @{{.+}}(%{{.+}}, %{{.+}}, %[[Y]],
func.func @halves(%x: tensor<4x8xf32>, %w: tensor<8x2x16xf32> {ktn.constant}, %v: tensor<16x16xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x2x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x2x16xf32>) -> tensor<4x2x16xf32>
  %y = linalg.generic {indexing_maps = [#gx, #gw, #gy], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%x, %w : tensor<4x8xf32>, tensor<8x2x16xf32>) outs(%f : tensor<4x2x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %m, %o : f32
    linalg.yield %s : f32
  } -> tensor<4x2x16xf32>
  %r = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%y : tensor<4x2x16xf32>) outs(%e : tensor<4x2x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.maximumf %a, %zero : f32
    linalg.yield %m : f32
  } -> tensor<4x2x16xf32>
  %e2 = tensor.empty() : tensor<4x16xf32>
  %g = linalg.generic {indexing_maps = [#first, #here], iterator_types = ["parallel", "parallel"]}
    ins(%r : tensor<4x2x16xf32>) outs(%e2 : tensor<4x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<4x16xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<4x16xf32>) -> tensor<4x16xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%g, %v : tensor<4x16xf32>, tensor<16x16xf32>) outs(%f2 : tensor<4x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %m, %o : f32
    linalg.yield %s : f32
  } -> tensor<4x16xf32>
  %h = linalg.generic {indexing_maps = [#second, #here, #here], iterator_types = ["parallel", "parallel"]}
    ins(%r, %p : tensor<4x2x16xf32>, tensor<4x16xf32>) outs(%e2 : tensor<4x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.addf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<4x16xf32>
  return %p, %h : tensor<4x16xf32>, tensor<4x16xf32>
}

// -----

#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#window = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 + d4, d2 + d5, d3)>
#taps = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5, d3)>
#image = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>

// The border of a small image is not written: a depthwise convolution reads
// around it. A large one has it from the kernel that makes the image, which
// may go by bands.
// CHECK-LABEL: func @windows(
// CHECK-COUNT-4: call @
// CHECK-NOT:     call @
// CHECK:       func.func private @{{.+}}(%[[X:.+]]: tensor<?x14x14x192xf32>, {{.+}}) -> tensor<?x14x14x192xf32> attributes {ktn.kernel = "depthwise"}
// CHECK:         %[[P:.+]] = tensor.pad %[[X]] low[0, 1, 1, 0] high[0, 1, 1, 0]
// CHECK:         linalg.generic {{.+}} ins(%[[P]],
// CHECK:       func.func private @{{.+}}: tensor<?x66x66x96xf32>, {{.+}}) -> tensor<?x64x64x96xf32> attributes {ktn.kernel = "depthwise"}
// CHECK-NOT:     tensor.pad
// CHECK:       func.func private @{{.+}}) -> tensor<?x66x66x96xf32> attributes {ktn.kernel = "pad"}
// CHECK:         arith.mulf
// CHECK:         tensor.pad
// CHECK:       func.func private @{{.+}}) -> tensor<?x14x14x192xf32> attributes {ktn.kernel = "elementwise"}
// CHECK-NOT:     tensor.pad
// CHECK:         return
func.func @windows(%x: tensor<?x14x14x192xf32>, %w: tensor<3x3x192xf32>, %large: tensor<?x64x64x96xf32>, %v: tensor<3x3x96xf32>) -> (tensor<?x14x14x192xf32>, tensor<?x64x64x96xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x14x14x192xf32>
  %e = tensor.empty(%n) : tensor<?x14x14x192xf32>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%x : tensor<?x14x14x192xf32>) outs(%e : tensor<?x14x14x192xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.mulf %a, %a : f32
    linalg.yield %m : f32
  } -> tensor<?x14x14x192xf32>
  %p = tensor.pad %s low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %h: index, %j: index, %c: index):
    tensor.yield %zero : f32
  } : tensor<?x14x14x192xf32> to tensor<?x16x16x192xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x14x14x192xf32>) -> tensor<?x14x14x192xf32>
  %y = linalg.generic {indexing_maps = [#window, #taps, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
    ins(%p, %w : tensor<?x16x16x192xf32>, tensor<3x3x192xf32>) outs(%f : tensor<?x14x14x192xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %m, %o : f32
    linalg.yield %t : f32
  } -> tensor<?x14x14x192xf32>
  %n2 = tensor.dim %large, %c0 : tensor<?x64x64x96xf32>
  %e2 = tensor.empty(%n2) : tensor<?x64x64x96xf32>
  %s2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%large : tensor<?x64x64x96xf32>) outs(%e2 : tensor<?x64x64x96xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.mulf %a, %a : f32
    linalg.yield %m : f32
  } -> tensor<?x64x64x96xf32>
  %p2 = tensor.pad %s2 low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %h: index, %j: index, %c: index):
    tensor.yield %zero : f32
  } : tensor<?x64x64x96xf32> to tensor<?x66x66x96xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<?x64x64x96xf32>) -> tensor<?x64x64x96xf32>
  %y2 = linalg.generic {indexing_maps = [#window, #taps, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
    ins(%p2, %v : tensor<?x66x66x96xf32>, tensor<3x3x96xf32>) outs(%f2 : tensor<?x64x64x96xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %m, %o : f32
    linalg.yield %t : f32
  } -> tensor<?x64x64x96xf32>
  return %y, %y2 : tensor<?x14x14x192xf32>, tensor<?x64x64x96xf32>
}

// -----

// In a step of a loop, where nothing is made in its place in a whole, what only
// is joined is computed by the kernel that joins it: rows of a table, too.
// CHECK-LABEL: func @step(
// CHECK:         scf.for
// CHECK:           func.call @kernel{{[.a-z0-9_]*}}(%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}) {{.*}}-> tensor<4x5xf32>
// CHECK-NOT:       call
// CHECK:           scf.yield
// CHECK:         func private @kernel{{.+}} attributes {ktn.kernel = "concat"}
// CHECK:           linalg.generic
// CHECK:             tensor.extract
// CHECK:           tensor.concat
// ALONE-LABEL: func @step(
// ALONE-COUNT-2:   func.call
func.func @step(%h: tensor<4x5xf32>, %ids: tensor<9x4xi32>, %table: tensor<7x2xf32>) -> tensor<4x5xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%s = %h) -> (tensor<4x5xf32>) {
    %row = tensor.extract_slice %ids[%i, 0] [1, 4] [1, 1] : tensor<9x4xi32> to tensor<4xi32>
    %rest = tensor.extract_slice %h[0, 0] [4, 3] [1, 1] : tensor<4x5xf32> to tensor<4x3xf32>
    %e = tensor.empty() : tensor<4x2xf32>
    %x = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
        ins(%row : tensor<4xi32>) outs(%e : tensor<4x2xf32>) {
    ^bb0(%a: i32, %o: f32):
      %n = arith.index_cast %a : i32 to index
      %m = linalg.index 1 : index
      %v = tensor.extract %table[%n, %m] : tensor<7x2xf32>
      linalg.yield %v : f32
    } -> tensor<4x2xf32>
    %all = tensor.concat dim(1) %x, %rest : (tensor<4x2xf32>, tensor<4x3xf32>) -> tensor<4x5xf32>
    scf.yield %all : tensor<4x5xf32>
  }
  return %r : tensor<4x5xf32>
}

// -----

#window = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 + d4, d2 + d5, d3)>
#taps = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5, 0, d3)>
#image = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>

// Weights with one position on an axis are no less work.
// CHECK-LABEL: func @unit_axis(
// CHECK:         call @{{.+}}ktn.flops = array<i64: 0, 18432>
func.func @unit_axis(%x: tensor<?x18x18x4xf32>, %w: tensor<3x3x1x4xf32>) -> tensor<?x16x16x4xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x18x18x4xf32>
  %e = tensor.empty(%n) : tensor<?x16x16x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x16x16x4xf32>) -> tensor<?x16x16x4xf32>
  %y = linalg.generic {indexing_maps = [#window, #taps, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
    ins(%x, %w : tensor<?x18x18x4xf32>, tensor<3x3x1x4xf32>) outs(%f : tensor<?x16x16x4xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.addf %1, %s : f32
    linalg.yield %2 : f32
  } -> tensor<?x16x16x4xf32>
  return %y : tensor<?x16x16x4xf32>
}

// -----

#left = affine_map<(m, n, k) -> (k, m)>
#right = affine_map<(m, n, k) -> (k, n)>
#gram = affine_map<(m, n, k) -> (m, n)>

// A product of a tensor with itself has two factors, of which one can be packed.
// CHECK-LABEL: func @gram(
// CHECK-SAME:    %[[X:.+]]: tensor<3136x256xf32>
// CHECK:         call @kernel.matmul(%[[X]], %[[X]], %
// CHECK:       func.func private @kernel.matmul(
// CHECK-SAME:    %[[LEFT:.+]]: tensor<3136x256xf32>, %[[RIGHT:.+]]: tensor<3136x256xf32>, %{{.+}}: tensor<256x256xf32>)
// CHECK:         linalg.generic
// CHECK-SAME:      ins(%[[LEFT]], %[[RIGHT]] :
func.func @gram(%x: tensor<3136x256xf32>) -> tensor<256x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %g = linalg.generic {indexing_maps = [#left, #right, #gram], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %x : tensor<3136x256xf32>, tensor<3136x256xf32>) outs(%f : tensor<256x256xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %m, %s : f32
    linalg.yield %t : f32
  } -> tensor<256x256xf32>
  return %g : tensor<256x256xf32>
}
