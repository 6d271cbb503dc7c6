// RUN: keratin-opt %s --ktn-form-kernels --canonicalize --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-form-kernels=fuse=false --canonicalize --split-input-file | FileCheck %s --check-prefix=ALONE

#maps = affine_map<(b, q, k) -> (b, q, k)>
#row = affine_map<(b, q, k) -> (b, q)>
#queries = affine_map<(b, q, k, d) -> (b, q, d)>
#keys = affine_map<(b, q, k, d) -> (b, k, d)>
#scores = affine_map<(b, q, k, d) -> (b, q, k)>
#weights = affine_map<(b, q, e, k) -> (b, q, k)>
#values = affine_map<(b, q, e, k) -> (b, k, e)>
#sums = affine_map<(b, q, e, k) -> (b, q, e)>

// The scores of the unmasked keys, what makes weights of them and the sum of values
// are one kernel, and what is written in another order is written so at once.
// CHECK-LABEL: func @masked(
// CHECK:         call @kernel.attention(
// CHECK-NEXT:    return
// CHECK:       func.func private @kernel.attention(
// CHECK-SAME:    ktn.kernel = "attention"
// CHECK-COUNT-8: linalg.generic
// CHECK-NOT:     linalg.generic
// ALONE-LABEL: func @masked(
// ALONE-COUNT-8: call @
func.func @masked(%queries: tensor<?x32x16xf32>, %keys: tensor<?x40x16xf32>, %vectors: tensor<?x40x16xf32>, %mask: tensor<?x40xi1>) -> (tensor<32x?x16xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %b = tensor.dim %queries, %c0 : tensor<?x32x16xf32>
  %empty = tensor.empty(%b) : tensor<?x32x40xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x32x40xf32>) -> tensor<?x32x40xf32>
  %s = linalg.generic {indexing_maps = [#queries, #keys, #scores], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%queries, %keys : tensor<?x32x16xf32>, tensor<?x40x16xf32>) outs(%start : tensor<?x32x40xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %p = arith.mulf %a, %c : f32
    %n = arith.addf %sum, %p : f32
    linalg.yield %n : f32
  } -> tensor<?x32x40xf32>
  %far = arith.constant -1.0e+30 : f32
  %masked = linalg.generic {indexing_maps = [#maps, affine_map<(b, q, k) -> (b, k)>, #maps], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %mask : tensor<?x32x40xf32>, tensor<?x40xi1>) outs(%empty : tensor<?x32x40xf32>) {
  ^bb0(%a: f32, %m: i1, %out: f32):
    %n = arith.select %m, %a, %far : f32
    linalg.yield %n : f32
  } -> tensor<?x32x40xf32>
  %rowEmpty = tensor.empty(%b) : tensor<?x32xf32>
  %rowLeast = linalg.fill ins(%least : f32) outs(%rowEmpty : tensor<?x32xf32>) -> tensor<?x32xf32>
  %most = linalg.generic {indexing_maps = [#maps, #row], iterator_types = ["parallel", "parallel", "reduction"]} ins(%masked : tensor<?x32x40xf32>) outs(%rowLeast : tensor<?x32xf32>) {
  ^bb0(%a: f32, %max: f32):
    %n = arith.maximumf %a, %max : f32
    linalg.yield %n : f32
  } -> tensor<?x32xf32>
  %exp = linalg.generic {indexing_maps = [#maps, #row, #maps], iterator_types = ["parallel", "parallel", "parallel"]} ins(%masked, %most : tensor<?x32x40xf32>, tensor<?x32xf32>) outs(%empty : tensor<?x32x40xf32>) {
  ^bb0(%a: f32, %max: f32, %out: f32):
    %d = arith.subf %a, %max : f32
    %n = math.exp %d : f32
    linalg.yield %n : f32
  } -> tensor<?x32x40xf32>
  %rowZero = linalg.fill ins(%zero : f32) outs(%rowEmpty : tensor<?x32xf32>) -> tensor<?x32xf32>
  %total = linalg.generic {indexing_maps = [#maps, #row], iterator_types = ["parallel", "parallel", "reduction"]} ins(%exp : tensor<?x32x40xf32>) outs(%rowZero : tensor<?x32xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %n = arith.addf %a, %sum : f32
    linalg.yield %n : f32
  } -> tensor<?x32xf32>
  %w = linalg.generic {indexing_maps = [#maps, #row, #maps], iterator_types = ["parallel", "parallel", "parallel"]} ins(%exp, %total : tensor<?x32x40xf32>, tensor<?x32xf32>) outs(%empty : tensor<?x32x40xf32>) {
  ^bb0(%a: f32, %t: f32, %out: f32):
    %n = arith.divf %a, %t : f32
    linalg.yield %n : f32
  } -> tensor<?x32x40xf32>
  %outEmpty = tensor.empty(%b) : tensor<?x32x16xf32>
  %outZero = linalg.fill ins(%zero : f32) outs(%outEmpty : tensor<?x32x16xf32>) -> tensor<?x32x16xf32>
  %o = linalg.generic {indexing_maps = [#weights, #values, #sums], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%w, %vectors : tensor<?x32x40xf32>, tensor<?x40x16xf32>) outs(%outZero : tensor<?x32x16xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %p = arith.mulf %a, %c : f32
    %n = arith.addf %sum, %p : f32
    linalg.yield %n : f32
  } -> tensor<?x32x16xf32>
  %order = tensor.empty(%b) : tensor<32x?x16xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(q, b, e) -> (b, q, e)>, affine_map<(q, b, e) -> (q, b, e)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%o : tensor<?x32x16xf32>) outs(%order : tensor<32x?x16xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<32x?x16xf32>
  return %t : tensor<32x?x16xf32>
}

// -----

#maps = affine_map<(b, q, k) -> (b, q, k)>
#row = affine_map<(b, q, k) -> (b, q)>
#queries = affine_map<(b, q, k, d) -> (b, q, d)>
#keys = affine_map<(b, q, k, d) -> (b, k, d)>
#scores = affine_map<(b, q, k, d) -> (b, q, k)>
#weights = affine_map<(b, q, e, k) -> (b, q, k)>
#values = affine_map<(b, q, e, k) -> (b, k, e)>
#sums = affine_map<(b, q, e, k) -> (b, q, e)>

// Somebody wants the weights as well: they are computed as a whole.
// CHECK-LABEL: func @weights_too(
// CHECK-NOT:     "attention"
func.func @weights_too(%queries: tensor<?x32x16xf32>, %keys: tensor<?x40x16xf32>, %vectors: tensor<?x40x16xf32>) -> (tensor<?x32x16xf32>, tensor<?x32x40xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %b = tensor.dim %queries, %c0 : tensor<?x32x16xf32>
  %empty = tensor.empty(%b) : tensor<?x32x40xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x32x40xf32>) -> tensor<?x32x40xf32>
  %s = linalg.generic {indexing_maps = [#queries, #keys, #scores], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%queries, %keys : tensor<?x32x16xf32>, tensor<?x40x16xf32>) outs(%start : tensor<?x32x40xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %p = arith.mulf %a, %c : f32
    %n = arith.addf %sum, %p : f32
    linalg.yield %n : f32
  } -> tensor<?x32x40xf32>
  %rowEmpty = tensor.empty(%b) : tensor<?x32xf32>
  %rowLeast = linalg.fill ins(%least : f32) outs(%rowEmpty : tensor<?x32xf32>) -> tensor<?x32xf32>
  %most = linalg.generic {indexing_maps = [#maps, #row], iterator_types = ["parallel", "parallel", "reduction"]} ins(%s : tensor<?x32x40xf32>) outs(%rowLeast : tensor<?x32xf32>) {
  ^bb0(%a: f32, %max: f32):
    %n = arith.maximumf %a, %max : f32
    linalg.yield %n : f32
  } -> tensor<?x32xf32>
  %exp = linalg.generic {indexing_maps = [#maps, #row, #maps], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %most : tensor<?x32x40xf32>, tensor<?x32xf32>) outs(%empty : tensor<?x32x40xf32>) {
  ^bb0(%a: f32, %max: f32, %out: f32):
    %d = arith.subf %a, %max : f32
    %n = math.exp %d : f32
    linalg.yield %n : f32
  } -> tensor<?x32x40xf32>
  %rowZero = linalg.fill ins(%zero : f32) outs(%rowEmpty : tensor<?x32xf32>) -> tensor<?x32xf32>
  %total = linalg.generic {indexing_maps = [#maps, #row], iterator_types = ["parallel", "parallel", "reduction"]} ins(%exp : tensor<?x32x40xf32>) outs(%rowZero : tensor<?x32xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %n = arith.addf %a, %sum : f32
    linalg.yield %n : f32
  } -> tensor<?x32xf32>
  %w = linalg.generic {indexing_maps = [#maps, #row, #maps], iterator_types = ["parallel", "parallel", "parallel"]} ins(%exp, %total : tensor<?x32x40xf32>, tensor<?x32xf32>) outs(%empty : tensor<?x32x40xf32>) {
  ^bb0(%a: f32, %t: f32, %out: f32):
    %n = arith.divf %a, %t : f32
    linalg.yield %n : f32
  } -> tensor<?x32x40xf32>
  %outEmpty = tensor.empty(%b) : tensor<?x32x16xf32>
  %outZero = linalg.fill ins(%zero : f32) outs(%outEmpty : tensor<?x32x16xf32>) -> tensor<?x32x16xf32>
  %o = linalg.generic {indexing_maps = [#weights, #values, #sums], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%w, %vectors : tensor<?x32x40xf32>, tensor<?x40x16xf32>) outs(%outZero : tensor<?x32x16xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %p = arith.mulf %a, %c : f32
    %n = arith.addf %sum, %p : f32
    linalg.yield %n : f32
  } -> tensor<?x32x16xf32>
  return %o, %w : tensor<?x32x16xf32>, tensor<?x32x40xf32>
}

// -----

#maps = affine_map<(b, q, k) -> (b, q, k)>
#row = affine_map<(b, q, k) -> (b, q)>
#queries = affine_map<(b, q, k, d) -> (b, q, d)>
#keys = affine_map<(b, q, k, d) -> (b, k, d)>
#scores = affine_map<(b, q, k, d) -> (b, q, k)>
#weights = affine_map<(b, q, e, k) -> (b, q, k)>
#values = affine_map<(b, q, e, k) -> (b, k, e)>
#sums = affine_map<(b, q, e, k) -> (b, q, e)>

// Or the scores.
// CHECK-LABEL: func @scores_too(
// CHECK-NOT:     "attention"
func.func @scores_too(%queries: tensor<?x32x16xf32>, %keys: tensor<?x40x16xf32>, %vectors: tensor<?x40x16xf32>) -> (tensor<?x32x16xf32>, tensor<?x32x40xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %b = tensor.dim %queries, %c0 : tensor<?x32x16xf32>
  %empty = tensor.empty(%b) : tensor<?x32x40xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x32x40xf32>) -> tensor<?x32x40xf32>
  %s = linalg.generic {indexing_maps = [#queries, #keys, #scores], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%queries, %keys : tensor<?x32x16xf32>, tensor<?x40x16xf32>) outs(%start : tensor<?x32x40xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %p = arith.mulf %a, %c : f32
    %n = arith.addf %sum, %p : f32
    linalg.yield %n : f32
  } -> tensor<?x32x40xf32>
  %rowEmpty = tensor.empty(%b) : tensor<?x32xf32>
  %rowLeast = linalg.fill ins(%least : f32) outs(%rowEmpty : tensor<?x32xf32>) -> tensor<?x32xf32>
  %most = linalg.generic {indexing_maps = [#maps, #row], iterator_types = ["parallel", "parallel", "reduction"]} ins(%s : tensor<?x32x40xf32>) outs(%rowLeast : tensor<?x32xf32>) {
  ^bb0(%a: f32, %max: f32):
    %n = arith.maximumf %a, %max : f32
    linalg.yield %n : f32
  } -> tensor<?x32xf32>
  %exp = linalg.generic {indexing_maps = [#maps, #row, #maps], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %most : tensor<?x32x40xf32>, tensor<?x32xf32>) outs(%empty : tensor<?x32x40xf32>) {
  ^bb0(%a: f32, %max: f32, %out: f32):
    %d = arith.subf %a, %max : f32
    %n = math.exp %d : f32
    linalg.yield %n : f32
  } -> tensor<?x32x40xf32>
  %rowZero = linalg.fill ins(%zero : f32) outs(%rowEmpty : tensor<?x32xf32>) -> tensor<?x32xf32>
  %total = linalg.generic {indexing_maps = [#maps, #row], iterator_types = ["parallel", "parallel", "reduction"]} ins(%exp : tensor<?x32x40xf32>) outs(%rowZero : tensor<?x32xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %n = arith.addf %a, %sum : f32
    linalg.yield %n : f32
  } -> tensor<?x32xf32>
  %w = linalg.generic {indexing_maps = [#maps, #row, #maps], iterator_types = ["parallel", "parallel", "parallel"]} ins(%exp, %total : tensor<?x32x40xf32>, tensor<?x32xf32>) outs(%empty : tensor<?x32x40xf32>) {
  ^bb0(%a: f32, %t: f32, %out: f32):
    %n = arith.divf %a, %t : f32
    linalg.yield %n : f32
  } -> tensor<?x32x40xf32>
  %outEmpty = tensor.empty(%b) : tensor<?x32x16xf32>
  %outZero = linalg.fill ins(%zero : f32) outs(%outEmpty : tensor<?x32x16xf32>) -> tensor<?x32x16xf32>
  %o = linalg.generic {indexing_maps = [#weights, #values, #sums], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%w, %vectors : tensor<?x32x40xf32>, tensor<?x40x16xf32>) outs(%outZero : tensor<?x32x16xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %p = arith.mulf %a, %c : f32
    %n = arith.addf %sum, %p : f32
    linalg.yield %n : f32
  } -> tensor<?x32x16xf32>
  return %o, %s : tensor<?x32x16xf32>, tensor<?x32x40xf32>
}

// -----

#maps = affine_map<(b, q, k) -> (b, q, k)>
#row = affine_map<(b, q, k) -> (b, q)>
#queries = affine_map<(b, q, k, d) -> (b, q, d)>
#keys = affine_map<(b, q, k, d) -> (b, k, d)>
#scores = affine_map<(b, q, k, d) -> (b, q, k)>
#weights = affine_map<(b, q, e, k) -> (b, q, k)>
#values = affine_map<(b, q, e, k) -> (b, k, e)>
#sums = affine_map<(b, q, e, k) -> (b, q, e)>

// A few queries have no large matrix.
// CHECK-LABEL: func @few_queries(
// CHECK-NOT:     "attention"
func.func @few_queries(%queries: tensor<?x4x16xf32>, %keys: tensor<?x40x16xf32>, %vectors: tensor<?x40x16xf32>) -> (tensor<?x4x16xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %b = tensor.dim %queries, %c0 : tensor<?x4x16xf32>
  %empty = tensor.empty(%b) : tensor<?x4x40xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x4x40xf32>) -> tensor<?x4x40xf32>
  %s = linalg.generic {indexing_maps = [#queries, #keys, #scores], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%queries, %keys : tensor<?x4x16xf32>, tensor<?x40x16xf32>) outs(%start : tensor<?x4x40xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %p = arith.mulf %a, %c : f32
    %n = arith.addf %sum, %p : f32
    linalg.yield %n : f32
  } -> tensor<?x4x40xf32>
  %rowEmpty = tensor.empty(%b) : tensor<?x4xf32>
  %rowLeast = linalg.fill ins(%least : f32) outs(%rowEmpty : tensor<?x4xf32>) -> tensor<?x4xf32>
  %most = linalg.generic {indexing_maps = [#maps, #row], iterator_types = ["parallel", "parallel", "reduction"]} ins(%s : tensor<?x4x40xf32>) outs(%rowLeast : tensor<?x4xf32>) {
  ^bb0(%a: f32, %max: f32):
    %n = arith.maximumf %a, %max : f32
    linalg.yield %n : f32
  } -> tensor<?x4xf32>
  %exp = linalg.generic {indexing_maps = [#maps, #row, #maps], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %most : tensor<?x4x40xf32>, tensor<?x4xf32>) outs(%empty : tensor<?x4x40xf32>) {
  ^bb0(%a: f32, %max: f32, %out: f32):
    %d = arith.subf %a, %max : f32
    %n = math.exp %d : f32
    linalg.yield %n : f32
  } -> tensor<?x4x40xf32>
  %rowZero = linalg.fill ins(%zero : f32) outs(%rowEmpty : tensor<?x4xf32>) -> tensor<?x4xf32>
  %total = linalg.generic {indexing_maps = [#maps, #row], iterator_types = ["parallel", "parallel", "reduction"]} ins(%exp : tensor<?x4x40xf32>) outs(%rowZero : tensor<?x4xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %n = arith.addf %a, %sum : f32
    linalg.yield %n : f32
  } -> tensor<?x4xf32>
  %w = linalg.generic {indexing_maps = [#maps, #row, #maps], iterator_types = ["parallel", "parallel", "parallel"]} ins(%exp, %total : tensor<?x4x40xf32>, tensor<?x4xf32>) outs(%empty : tensor<?x4x40xf32>) {
  ^bb0(%a: f32, %t: f32, %out: f32):
    %n = arith.divf %a, %t : f32
    linalg.yield %n : f32
  } -> tensor<?x4x40xf32>
  %outEmpty = tensor.empty(%b) : tensor<?x4x16xf32>
  %outZero = linalg.fill ins(%zero : f32) outs(%outEmpty : tensor<?x4x16xf32>) -> tensor<?x4x16xf32>
  %o = linalg.generic {indexing_maps = [#weights, #values, #sums], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%w, %vectors : tensor<?x4x40xf32>, tensor<?x40x16xf32>) outs(%outZero : tensor<?x4x16xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %p = arith.mulf %a, %c : f32
    %n = arith.addf %sum, %p : f32
    linalg.yield %n : f32
  } -> tensor<?x4x16xf32>
  return %o : tensor<?x4x16xf32>
}

// -----

#maps = affine_map<(b, q, k) -> (b, q, k)>
#row = affine_map<(b, q, k) -> (b, q)>
#queries = affine_map<(b, q, k, d) -> (b, q, d)>
#keys = affine_map<(b, q, k, d) -> (b, k, d)>
#scores = affine_map<(b, q, k, d) -> (b, q, k)>
#weights = affine_map<(b, q, e, k) -> (b, q, k)>
#values = affine_map<(b, q, e, k) -> (b, k, e)>
#sums = affine_map<(b, q, e, k) -> (b, q, e)>

// Constant keys are packed ahead of time.
// CHECK-LABEL: func @constant_keys(
// CHECK-NOT:     "attention"
func.func @constant_keys(%queries: tensor<2x32x16xf32>, %keys: tensor<2x40x16xf32>, %vectors: tensor<2x40x16xf32>) -> (tensor<2x32x16xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %b = tensor.dim %queries, %c0 : tensor<2x32x16xf32>
  %known = arith.constant dense_resource<keys> : tensor<2x40x16xf32>
  %empty = tensor.empty() : tensor<2x32x40xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x32x40xf32>) -> tensor<2x32x40xf32>
  %s = linalg.generic {indexing_maps = [#queries, #keys, #scores], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%queries, %known : tensor<2x32x16xf32>, tensor<2x40x16xf32>) outs(%start : tensor<2x32x40xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %p = arith.mulf %a, %c : f32
    %n = arith.addf %sum, %p : f32
    linalg.yield %n : f32
  } -> tensor<2x32x40xf32>
  %rowEmpty = tensor.empty() : tensor<2x32xf32>
  %rowLeast = linalg.fill ins(%least : f32) outs(%rowEmpty : tensor<2x32xf32>) -> tensor<2x32xf32>
  %most = linalg.generic {indexing_maps = [#maps, #row], iterator_types = ["parallel", "parallel", "reduction"]} ins(%s : tensor<2x32x40xf32>) outs(%rowLeast : tensor<2x32xf32>) {
  ^bb0(%a: f32, %max: f32):
    %n = arith.maximumf %a, %max : f32
    linalg.yield %n : f32
  } -> tensor<2x32xf32>
  %exp = linalg.generic {indexing_maps = [#maps, #row, #maps], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %most : tensor<2x32x40xf32>, tensor<2x32xf32>) outs(%empty : tensor<2x32x40xf32>) {
  ^bb0(%a: f32, %max: f32, %out: f32):
    %d = arith.subf %a, %max : f32
    %n = math.exp %d : f32
    linalg.yield %n : f32
  } -> tensor<2x32x40xf32>
  %rowZero = linalg.fill ins(%zero : f32) outs(%rowEmpty : tensor<2x32xf32>) -> tensor<2x32xf32>
  %total = linalg.generic {indexing_maps = [#maps, #row], iterator_types = ["parallel", "parallel", "reduction"]} ins(%exp : tensor<2x32x40xf32>) outs(%rowZero : tensor<2x32xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %n = arith.addf %a, %sum : f32
    linalg.yield %n : f32
  } -> tensor<2x32xf32>
  %w = linalg.generic {indexing_maps = [#maps, #row, #maps], iterator_types = ["parallel", "parallel", "parallel"]} ins(%exp, %total : tensor<2x32x40xf32>, tensor<2x32xf32>) outs(%empty : tensor<2x32x40xf32>) {
  ^bb0(%a: f32, %t: f32, %out: f32):
    %n = arith.divf %a, %t : f32
    linalg.yield %n : f32
  } -> tensor<2x32x40xf32>
  %outEmpty = tensor.empty() : tensor<2x32x16xf32>
  %outZero = linalg.fill ins(%zero : f32) outs(%outEmpty : tensor<2x32x16xf32>) -> tensor<2x32x16xf32>
  %o = linalg.generic {indexing_maps = [#weights, #values, #sums], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%w, %vectors : tensor<2x32x40xf32>, tensor<2x40x16xf32>) outs(%outZero : tensor<2x32x16xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %p = arith.mulf %a, %c : f32
    %n = arith.addf %sum, %p : f32
    linalg.yield %n : f32
  } -> tensor<2x32x16xf32>
  return %o : tensor<2x32x16xf32>
}

// -----

#maps = affine_map<(b, q, k) -> (b, q, k)>
#row = affine_map<(b, q, k) -> (b, q)>
#queries = affine_map<(b, q, k, d) -> (b, q, d)>
#keys = affine_map<(b, q, k, d) -> (b, k, d)>
#scores = affine_map<(b, q, k, d) -> (b, q, k)>
#weights = affine_map<(b, q, e, k) -> (b, q, k)>
#values = affine_map<(b, q, e, k) -> (b, k, e)>
#sums = affine_map<(b, q, e, k) -> (b, q, e)>

// Two layers with a function between are no attention.
// CHECK-LABEL: func @no_rows(
// CHECK-NOT:     "attention"
func.func @no_rows(%queries: tensor<?x32x16xf32>, %keys: tensor<?x40x16xf32>, %vectors: tensor<?x40x16xf32>) -> (tensor<?x32x16xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %b = tensor.dim %queries, %c0 : tensor<?x32x16xf32>
  %empty = tensor.empty(%b) : tensor<?x32x40xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x32x40xf32>) -> tensor<?x32x40xf32>
  %s = linalg.generic {indexing_maps = [#queries, #keys, #scores], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%queries, %keys : tensor<?x32x16xf32>, tensor<?x40x16xf32>) outs(%start : tensor<?x32x40xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %p = arith.mulf %a, %c : f32
    %n = arith.addf %sum, %p : f32
    linalg.yield %n : f32
  } -> tensor<?x32x40xf32>
  %w = linalg.generic {indexing_maps = [#maps, #maps], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : tensor<?x32x40xf32>) outs(%empty : tensor<?x32x40xf32>) {
  ^bb0(%a: f32, %out: f32):
    %n = math.tanh %a : f32
    linalg.yield %n : f32
  } -> tensor<?x32x40xf32>
  %outEmpty = tensor.empty(%b) : tensor<?x32x16xf32>
  %outZero = linalg.fill ins(%zero : f32) outs(%outEmpty : tensor<?x32x16xf32>) -> tensor<?x32x16xf32>
  %o = linalg.generic {indexing_maps = [#weights, #values, #sums], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%w, %vectors : tensor<?x32x40xf32>, tensor<?x40x16xf32>) outs(%outZero : tensor<?x32x16xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %p = arith.mulf %a, %c : f32
    %n = arith.addf %sum, %p : f32
    linalg.yield %n : f32
  } -> tensor<?x32x16xf32>
  return %o : tensor<?x32x16xf32>
}

// -----

#maps = affine_map<(b, q, k) -> (b, q, k)>
#row = affine_map<(b, q, k) -> (b, q)>
#queries = affine_map<(b, q, k, d) -> (b, q, d)>
#keys = affine_map<(b, q, k, d) -> (b, k, d)>
#scores = affine_map<(b, q, k, d) -> (b, q, k)>
#weights = affine_map<(b, q, e, k) -> (b, q, k)>
#values = affine_map<(b, q, e, k) -> (b, k, e)>
#sums = affine_map<(b, q, e, k) -> (b, q, e)>

// Factors of bf16 have products of their own.
// CHECK-LABEL: func @narrow(
// CHECK-NOT:     "attention"
func.func @narrow(%queries: tensor<?x32x16xbf16>, %keys: tensor<?x40x16xbf16>, %vectors: tensor<?x40x16xf32>) -> (tensor<?x32x16xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %b = tensor.dim %queries, %c0 : tensor<?x32x16xbf16>
  %empty = tensor.empty(%b) : tensor<?x32x40xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x32x40xf32>) -> tensor<?x32x40xf32>
  %s = linalg.generic {indexing_maps = [#queries, #keys, #scores], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%queries, %keys : tensor<?x32x16xbf16>, tensor<?x40x16xbf16>) outs(%start : tensor<?x32x40xf32>) {
  ^bb0(%a: bf16, %c: bf16, %sum: f32):
    %wa = arith.extf %a : bf16 to f32
    %wc = arith.extf %c : bf16 to f32
    %p = arith.mulf %wa, %wc : f32
    %n = arith.addf %sum, %p : f32
    linalg.yield %n : f32
  } -> tensor<?x32x40xf32>
  %rowEmpty = tensor.empty(%b) : tensor<?x32xf32>
  %rowLeast = linalg.fill ins(%least : f32) outs(%rowEmpty : tensor<?x32xf32>) -> tensor<?x32xf32>
  %most = linalg.generic {indexing_maps = [#maps, #row], iterator_types = ["parallel", "parallel", "reduction"]} ins(%s : tensor<?x32x40xf32>) outs(%rowLeast : tensor<?x32xf32>) {
  ^bb0(%a: f32, %max: f32):
    %n = arith.maximumf %a, %max : f32
    linalg.yield %n : f32
  } -> tensor<?x32xf32>
  %exp = linalg.generic {indexing_maps = [#maps, #row, #maps], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %most : tensor<?x32x40xf32>, tensor<?x32xf32>) outs(%empty : tensor<?x32x40xf32>) {
  ^bb0(%a: f32, %max: f32, %out: f32):
    %d = arith.subf %a, %max : f32
    %n = math.exp %d : f32
    linalg.yield %n : f32
  } -> tensor<?x32x40xf32>
  %rowZero = linalg.fill ins(%zero : f32) outs(%rowEmpty : tensor<?x32xf32>) -> tensor<?x32xf32>
  %total = linalg.generic {indexing_maps = [#maps, #row], iterator_types = ["parallel", "parallel", "reduction"]} ins(%exp : tensor<?x32x40xf32>) outs(%rowZero : tensor<?x32xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %n = arith.addf %a, %sum : f32
    linalg.yield %n : f32
  } -> tensor<?x32xf32>
  %w = linalg.generic {indexing_maps = [#maps, #row, #maps], iterator_types = ["parallel", "parallel", "parallel"]} ins(%exp, %total : tensor<?x32x40xf32>, tensor<?x32xf32>) outs(%empty : tensor<?x32x40xf32>) {
  ^bb0(%a: f32, %t: f32, %out: f32):
    %n = arith.divf %a, %t : f32
    linalg.yield %n : f32
  } -> tensor<?x32x40xf32>
  %outEmpty = tensor.empty(%b) : tensor<?x32x16xf32>
  %outZero = linalg.fill ins(%zero : f32) outs(%outEmpty : tensor<?x32x16xf32>) -> tensor<?x32x16xf32>
  %o = linalg.generic {indexing_maps = [#weights, #values, #sums], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%w, %vectors : tensor<?x32x40xf32>, tensor<?x40x16xf32>) outs(%outZero : tensor<?x32x16xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %p = arith.mulf %a, %c : f32
    %n = arith.addf %sum, %p : f32
    linalg.yield %n : f32
  } -> tensor<?x32x16xf32>
  return %o : tensor<?x32x16xf32>
}

// -----

#maps = affine_map<(q, k) -> (q, k)>
#row = affine_map<(q, k) -> (q)>
#queries = affine_map<(q, k, d) -> (q, d)>
#keys = affine_map<(q, k, d) -> (k, d)>
#scores = affine_map<(q, k, d) -> (q, k)>
#weights = affine_map<(q, e, k) -> (q, k)>
#values = affine_map<(q, e, k) -> (k, e)>
#sums = affine_map<(q, e, k) -> (q, e)>

// A softmax can be computed in blocks, however long its rows are, and also when
// weights are multiplied by something.
// CHECK-LABEL: func @long_softmax(
// CHECK:         call @kernel.attention(
// CHECK-NEXT:    return
func.func @long_softmax(%queries: tensor<32x16xf32>, %keys: tensor<20000x16xf32>, %vectors: tensor<20000x16xf32>) -> tensor<32x16xf32> {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %empty = tensor.empty() : tensor<32x20000xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x20000xf32>) -> tensor<32x20000xf32>
  %s = linalg.generic {indexing_maps = [#queries, #keys, #scores], iterator_types = ["parallel", "parallel", "reduction"]} ins(%queries, %keys : tensor<32x16xf32>, tensor<20000x16xf32>) outs(%start : tensor<32x20000xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %p = arith.mulf %a, %c : f32
    %n = arith.addf %sum, %p : f32
    linalg.yield %n : f32
  } -> tensor<32x20000xf32>
  %rowEmpty = tensor.empty() : tensor<32xf32>
  %rowLeast = linalg.fill ins(%least : f32) outs(%rowEmpty : tensor<32xf32>) -> tensor<32xf32>
  %most = linalg.generic {indexing_maps = [#maps, #row], iterator_types = ["parallel", "reduction"]} ins(%s : tensor<32x20000xf32>) outs(%rowLeast : tensor<32xf32>) {
  ^bb0(%a: f32, %max: f32):
    %n = arith.maximumf %a, %max : f32
    linalg.yield %n : f32
  } -> tensor<32xf32>
  %exp = linalg.generic {indexing_maps = [#maps, #row, #maps], iterator_types = ["parallel", "parallel"]} ins(%s, %most : tensor<32x20000xf32>, tensor<32xf32>) outs(%empty : tensor<32x20000xf32>) {
  ^bb0(%a: f32, %max: f32, %out: f32):
    %d = arith.subf %a, %max : f32
    %n = math.exp %d : f32
    linalg.yield %n : f32
  } -> tensor<32x20000xf32>
  %rowZero = linalg.fill ins(%zero : f32) outs(%rowEmpty : tensor<32xf32>) -> tensor<32xf32>
  %total = linalg.generic {indexing_maps = [#maps, #row], iterator_types = ["parallel", "reduction"]} ins(%exp : tensor<32x20000xf32>) outs(%rowZero : tensor<32xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %n = arith.addf %a, %sum : f32
    linalg.yield %n : f32
  } -> tensor<32xf32>
  %w = linalg.generic {indexing_maps = [#maps, #row, #maps], iterator_types = ["parallel", "parallel"]} ins(%exp, %total : tensor<32x20000xf32>, tensor<32xf32>) outs(%empty : tensor<32x20000xf32>) {
  ^bb0(%a: f32, %t: f32, %out: f32):
    %n = arith.divf %a, %t : f32
    %m = arith.mulf %n, %least : f32
    linalg.yield %m : f32
  } -> tensor<32x20000xf32>
  %outEmpty = tensor.empty() : tensor<32x16xf32>
  %outZero = linalg.fill ins(%zero : f32) outs(%outEmpty : tensor<32x16xf32>) -> tensor<32x16xf32>
  %o = linalg.generic {indexing_maps = [#weights, #values, #sums], iterator_types = ["parallel", "parallel", "reduction"]} ins(%w, %vectors : tensor<32x20000xf32>, tensor<20000x16xf32>) outs(%outZero : tensor<32x16xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %p = arith.mulf %a, %c : f32
    %n = arith.addf %sum, %p : f32
    linalg.yield %n : f32
  } -> tensor<32x16xf32>
  return %o : tensor<32x16xf32>
}

// -----

#maps = affine_map<(q, k) -> (q, k)>
#row = affine_map<(q, k) -> (q)>
#queries = affine_map<(q, k, d) -> (q, d)>
#keys = affine_map<(q, k, d) -> (k, d)>
#scores = affine_map<(q, k, d) -> (q, k)>
#weights = affine_map<(q, e, k) -> (q, k)>
#values = affine_map<(q, e, k) -> (k, e)>
#sums = affine_map<(q, e, k) -> (q, e)>

// What is not in proportion to the weights cannot.
// CHECK-LABEL: func @long_rows(
// CHECK-NOT:     call @kernel.attention(
// CHECK-COUNT-3: call @kernel.
func.func @long_rows(%queries: tensor<32x16xf32>, %keys: tensor<20000x16xf32>, %vectors: tensor<20000x16xf32>) -> tensor<32x16xf32> {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %empty = tensor.empty() : tensor<32x20000xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x20000xf32>) -> tensor<32x20000xf32>
  %s = linalg.generic {indexing_maps = [#queries, #keys, #scores], iterator_types = ["parallel", "parallel", "reduction"]} ins(%queries, %keys : tensor<32x16xf32>, tensor<20000x16xf32>) outs(%start : tensor<32x20000xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %p = arith.mulf %a, %c : f32
    %n = arith.addf %sum, %p : f32
    linalg.yield %n : f32
  } -> tensor<32x20000xf32>
  %rowEmpty = tensor.empty() : tensor<32xf32>
  %rowLeast = linalg.fill ins(%least : f32) outs(%rowEmpty : tensor<32xf32>) -> tensor<32xf32>
  %most = linalg.generic {indexing_maps = [#maps, #row], iterator_types = ["parallel", "reduction"]} ins(%s : tensor<32x20000xf32>) outs(%rowLeast : tensor<32xf32>) {
  ^bb0(%a: f32, %max: f32):
    %n = arith.maximumf %a, %max : f32
    linalg.yield %n : f32
  } -> tensor<32xf32>
  %exp = linalg.generic {indexing_maps = [#maps, #row, #maps], iterator_types = ["parallel", "parallel"]} ins(%s, %most : tensor<32x20000xf32>, tensor<32xf32>) outs(%empty : tensor<32x20000xf32>) {
  ^bb0(%a: f32, %max: f32, %out: f32):
    %d = arith.subf %a, %max : f32
    %n = math.exp %d : f32
    linalg.yield %n : f32
  } -> tensor<32x20000xf32>
  %rowZero = linalg.fill ins(%zero : f32) outs(%rowEmpty : tensor<32xf32>) -> tensor<32xf32>
  %total = linalg.generic {indexing_maps = [#maps, #row], iterator_types = ["parallel", "reduction"]} ins(%exp : tensor<32x20000xf32>) outs(%rowZero : tensor<32xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %n = arith.addf %a, %sum : f32
    linalg.yield %n : f32
  } -> tensor<32xf32>
  %w = linalg.generic {indexing_maps = [#maps, #row, #maps], iterator_types = ["parallel", "parallel"]} ins(%exp, %total : tensor<32x20000xf32>, tensor<32xf32>) outs(%empty : tensor<32x20000xf32>) {
  ^bb0(%a: f32, %t: f32, %out: f32):
    %n = arith.divf %a, %t : f32
    %m = arith.addf %n, %least : f32
    linalg.yield %m : f32
  } -> tensor<32x20000xf32>
  %outEmpty = tensor.empty() : tensor<32x16xf32>
  %outZero = linalg.fill ins(%zero : f32) outs(%outEmpty : tensor<32x16xf32>) -> tensor<32x16xf32>
  %o = linalg.generic {indexing_maps = [#weights, #values, #sums], iterator_types = ["parallel", "parallel", "reduction"]} ins(%w, %vectors : tensor<32x20000xf32>, tensor<20000x16xf32>) outs(%outZero : tensor<32x16xf32>) {
  ^bb0(%a: f32, %c: f32, %sum: f32):
    %p = arith.mulf %a, %c : f32
    %n = arith.addf %sum, %p : f32
    linalg.yield %n : f32
  } -> tensor<32x16xf32>
  return %o : tensor<32x16xf32>
}
