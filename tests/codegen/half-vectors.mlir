// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" | FileCheck %s --check-prefixes=CHECK,WHOLE
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 half-units" | FileCheck %s --check-prefixes=CHECK,HALF

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// 24 columns are a vector and a half, or with two elements of the sum each three
// vectors. Packed weights have zeros behind them, so that sums may be whole
// vectors, which half units take twice as long for.
// CHECK-LABEL: func private @vector_and_half(
// WHOLE-SAME:    ktn.packed = {block = 2 : i64, dim = 0 : i64}
// HALF-SAME:     ktn.packed = {block = 32 : i64, dim = 1 : i64}
// WHOLE:         scf.for {{.+}} -> ({{(vector<16xf32>(, )?)+}})
// HALF:          scf.for {{.+}} -> ({{(vector<16xf32>, vector<8xf32>(, )?)+}})
// Rows are read for each of them: an operand of a product is broadcast at no
// cost, a register is not.
// HALF:          llvm.inline_asm "", "=r,0"
func.func private @vector_and_half(%x: tensor<84x64xf32>, %w: tensor<64x24xf32> {ktn.constant}, %out: tensor<84x24xf32>) -> tensor<84x24xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<84x24xf32>) -> tensor<84x24xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<84x64xf32>, tensor<64x24xf32>) outs(%start : tensor<84x24xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<84x24xf32>
  return %sum : tensor<84x24xf32>
}

// Of 27 columns the last 11 need more than half a vector.
// CHECK-LABEL: func private @more_than_half(
// CHECK:         scf.for {{.+}} -> ({{(vector<16xf32>(, )?)+}})
func.func private @more_than_half(%x: tensor<84x64xf32>, %w: tensor<64x27xf32> {ktn.constant}, %out: tensor<84x27xf32>) -> tensor<84x27xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<84x27xf32>) -> tensor<84x27xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<84x64xf32>, tensor<64x27xf32>) outs(%start : tensor<84x27xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<84x27xf32>
  return %sum : tensor<84x27xf32>
}
