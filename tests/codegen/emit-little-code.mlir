// RUN: keratin-opt %s --ktn-emit-tiles="little-code=true vector-bits=512 vector-registers=32 parallel=true winograd=auto" | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 parallel=true winograd=auto" | FileCheck %s --check-prefix=FAST

#x = affine_map<(n, h, w, k, r, s, c) -> (n, h + r, w + s, c)>
#w = affine_map<(n, h, w, k, r, s, c) -> (r, s, c, k)>
#y = affine_map<(n, h, w, k, r, s, c) -> (n, h, w, k)>

// A convolution has one tile, which divides the rows, and neither transforms
// nor parts; what runs fastest has all of that.
// CHECK-LABEL: func private @conv(
// CHECK-NOT:     ktn.parts
// CHECK-SAME:    attributes {ktn.kernel = "conv"}
// CHECK-COUNT-3: scf.for {{.+}} -> ({{((vector<16xf32>(, )?){16})}})
// CHECK-NOT:     scf.for
// CHECK:         return
// FAST-LABEL: func private @conv(
// FAST-SAME:    attributes {ktn.kernel = "winograd4", ktn.parts
func.func private @conv(%x: tensor<2x30x30x64xf32>, %w: tensor<3x3x64x64xf32> {ktn.constant}, %out: tensor<2x28x28x64xf32>) -> tensor<2x28x28x64xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<2x28x28x64xf32>) -> tensor<2x28x28x64xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<2x30x30x64xf32>, tensor<3x3x64x64xf32>) outs(%start : tensor<2x28x28x64xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %product = arith.mulf %a, %c : f32
    %total = arith.addf %product, %s : f32
    linalg.yield %total : f32
  } -> tensor<2x28x28x64xf32>
  return %sum : tensor<2x28x28x64xf32>
}

func.func @caller(%x: tensor<2x30x30x64xf32>) -> tensor<2x28x28x64xf32> {
  %w = arith.constant dense<1.0> : tensor<3x3x64x64xf32>
  %out = tensor.empty() : tensor<2x28x28x64xf32>
  %y = call @conv(%x, %w, %out) {ktn.flops = array<i64: 115605504, 0>, ktn.bytes = array<i64: 1000000, 0>} : (tensor<2x30x30x64xf32>, tensor<3x3x64x64xf32>, tensor<2x28x28x64xf32>) -> tensor<2x28x28x64xf32>
  return %y : tensor<2x28x28x64xf32>
}
