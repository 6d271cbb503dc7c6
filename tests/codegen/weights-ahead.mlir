// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 little-code" | FileCheck %s --check-prefix=LITTLE
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=256 vector-registers=16" | FileCheck %s --check-prefix=LITTLE

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// One row meets 2 MB of weights, each of them once: the product in front asks
// for them, in the form in which they are read.
// CHECK-LABEL: func.func @model(
// CHECK:       %[[ROWS:.+]] = arith.constant dense<1.0{{.*}}> : tensor<512x512xf32>
// CHECK:       %[[FAR:.+]] = arith.constant dense<2.0{{.*}}> : tensor<512x1024xf32>
// CHECK:       %[[AHEAD:.+]] = builtin.unrealized_conversion_cast %[[FAR]] : tensor<512x1024xf32> to memref<[[FORM:.+xf32]]>
// CHECK:       call @kernel.many({{.+}}, %[[AHEAD]], %{{.+}})
// CHECK:       %[[READ:.+]] = builtin.unrealized_conversion_cast %[[FAR]] : tensor<512x1024xf32> to memref<[[FORM]]>
// CHECK:       call @kernel.one({{.+}}, %[[READ]],
func.func @model(%x: tensor<64x512xf32>) -> tensor<1x1024xf32> {
  %rows = arith.constant dense<1.0> : tensor<512x512xf32>
  %to = tensor.empty() : tensor<64x512xf32>
  %many = func.call @kernel.many(%x, %rows, %to) {ktn.flops = array<i64: 33554432, 0>, ktn.bytes = array<i64: 1310720, 0>} : (tensor<64x512xf32>, tensor<512x512xf32>, tensor<64x512xf32>) -> tensor<64x512xf32>
  %mean = tensor.empty() : tensor<1x512xf32>
  %row = func.call @kernel.mean(%many, %mean) {ktn.flops = array<i64: 32768, 0>, ktn.bytes = array<i64: 133120, 0>} : (tensor<64x512xf32>, tensor<1x512xf32>) -> tensor<1x512xf32>
  %far = arith.constant dense<2.0> : tensor<512x1024xf32>
  %end = tensor.empty() : tensor<1x1024xf32>
  %one = func.call @kernel.one(%row, %far, %end) {ktn.flops = array<i64: 1048576, 0>, ktn.bytes = array<i64: 2103296, 0>} : (tensor<1x512xf32>, tensor<512x1024xf32>, tensor<1x1024xf32>) -> tensor<1x1024xf32>
  return %one : tensor<1x1024xf32>
}

// CHECK-LABEL: func private @kernel.many(
// CHECK-SAME:    %arg3: memref<[[FORM]]> {ktn.ahead, ktn.packed = {block = [[BLOCK:[0-9]+]] : i64, dim = 1 : i64}, ktn.unpacked_type = tensor<512x1024xf32>}
// CHECK:         memref.extract_aligned_pointer_as_index %arg3
// CHECK:         "llvm.intr.prefetch"(%{{.+}}) <{cache = 1 : i32, hint = 2 : i32, rw = 0 : i32}>
// LITTLE-LABEL: func private @kernel.many(
// LITTLE-NOT:    ktn.ahead
// LITTLE:       func private @kernel.mean(
func.func private @kernel.many(%x: tensor<64x512xf32>, %w: tensor<512x512xf32> {ktn.constant}, %out: tensor<64x512xf32>) -> tensor<64x512xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<64x512xf32>) -> tensor<64x512xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<64x512xf32>, tensor<512x512xf32>) outs(%start : tensor<64x512xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<64x512xf32>
  return %sum : tensor<64x512xf32>
}

func.func private @kernel.mean(%x: tensor<64x512xf32>, %out: tensor<1x512xf32>) -> tensor<1x512xf32> attributes {ktn.kernel = "reduce"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x512xf32>) -> tensor<1x512xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(o, n, m) -> (m, n)>, affine_map<(o, n, m) -> (o, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<64x512xf32>) outs(%start : tensor<1x512xf32>) {
  ^bb0(%a: f32, %s: f32):
    %t = arith.addf %s, %a : f32
    linalg.yield %t : f32
  } -> tensor<1x512xf32>
  return %sum : tensor<1x512xf32>
}

// CHECK-LABEL: func private @kernel.one(
// CHECK-SAME:    %arg1: memref<[[FORM]]> {ktn.constant, ktn.packed = {block = [[BLOCK]] : i64, dim = 1 : i64}
func.func private @kernel.one(%x: tensor<1x512xf32>, %w: tensor<512x1024xf32> {ktn.constant}, %out: tensor<1x1024xf32>) -> tensor<1x1024xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x1024xf32>) -> tensor<1x1024xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x512xf32>, tensor<512x1024xf32>) outs(%start : tensor<1x1024xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x1024xf32>
  return %sum : tensor<1x1024xf32>
}

// Beside a product of 3 * 10^11 FLOPs one of 5 million has time for less than a
// line.
// CHECK-LABEL: func.func @large(
// CHECK-LABEL: func private @kernel.small(
// CHECK-NOT:   intr.prefetch
// CHECK-LABEL: func private @kernel.huge(
// CHECK-SAME:  ktn.ahead
func.func @large(%x: tensor<64x512xf32>) -> tensor<1x1024xf32> {
  %w = arith.constant dense<1.0> : tensor<512x512xf32>
  %to = tensor.empty() : tensor<64x512xf32>
  %a = func.call @kernel.huge(%x, %w, %to) {ktn.flops = array<i64: 300000000000, 0>, ktn.bytes = array<i64: 1310720, 0>} : (tensor<64x512xf32>, tensor<512x512xf32>, tensor<64x512xf32>) -> tensor<64x512xf32>
  %next = tensor.empty() : tensor<64x512xf32>
  %b = func.call @kernel.small(%a, %w, %next) {ktn.flops = array<i64: 5000000, 0>, ktn.bytes = array<i64: 1310720, 0>} : (tensor<64x512xf32>, tensor<512x512xf32>, tensor<64x512xf32>) -> tensor<64x512xf32>
  %row = tensor.extract_slice %b[0, 0] [1, 512] [1, 1] : tensor<64x512xf32> to tensor<1x512xf32>
  %far = arith.constant dense<2.0> : tensor<512x1024xf32>
  %end = tensor.empty() : tensor<1x1024xf32>
  %c = func.call @kernel.last(%row, %far, %end) {ktn.flops = array<i64: 1048576, 0>, ktn.bytes = array<i64: 2103296, 0>} : (tensor<1x512xf32>, tensor<512x1024xf32>, tensor<1x1024xf32>) -> tensor<1x1024xf32>
  return %c : tensor<1x1024xf32>
}

func.func private @kernel.small(%x: tensor<64x512xf32>, %w: tensor<512x512xf32> {ktn.constant}, %out: tensor<64x512xf32>) -> tensor<64x512xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<64x512xf32>) -> tensor<64x512xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<64x512xf32>, tensor<512x512xf32>) outs(%start : tensor<64x512xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<64x512xf32>
  return %sum : tensor<64x512xf32>
}

func.func private @kernel.huge(%x: tensor<64x512xf32>, %w: tensor<512x512xf32> {ktn.constant}, %out: tensor<64x512xf32>) -> tensor<64x512xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<64x512xf32>) -> tensor<64x512xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<64x512xf32>, tensor<512x512xf32>) outs(%start : tensor<64x512xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<64x512xf32>
  return %sum : tensor<64x512xf32>
}

func.func private @kernel.last(%x: tensor<1x512xf32>, %w: tensor<512x1024xf32> {ktn.constant}, %out: tensor<1x1024xf32>) -> tensor<1x1024xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x1024xf32>) -> tensor<1x1024xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x512xf32>, tensor<512x1024xf32>) outs(%start : tensor<1x1024xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x1024xf32>
  return %sum : tensor<1x1024xf32>
}
