// RUN: keratin-opt %s --ktn-fold-pads --split-input-file | FileCheck %s

#window = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 + d4, d2 + d5, d3)>
#taps = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5, d3)>
#image = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>

// 41 KB with its border: to copy them would take as long as the window.
// CHECK-LABEL: func.func @small(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<1x7x7x128xf32>
// CHECK-NOT:     call @kernel.border
// CHECK:         call @kernel.window.padded(%[[X]],
func.func @small(%x: tensor<1x7x7x128xf32>, %w: tensor<3x3x128xf32>) -> tensor<1x7x7x128xf32> {
  %framed = tensor.empty() : tensor<1x9x9x128xf32>
  %p = call @kernel.border(%x, %framed) : (tensor<1x7x7x128xf32>, tensor<1x9x9x128xf32>) -> tensor<1x9x9x128xf32>
  %out = tensor.empty() : tensor<1x7x7x128xf32>
  %y = call @kernel.window(%p, %w, %out) : (tensor<1x9x9x128xf32>, tensor<3x3x128xf32>, tensor<1x7x7x128xf32>) -> tensor<1x7x7x128xf32>
  return %y : tensor<1x7x7x128xf32>
}
func.func private @kernel.border(%x: tensor<1x7x7x128xf32>, %out: tensor<1x9x9x128xf32>) -> tensor<1x9x9x128xf32> attributes {ktn.kernel = "pad"} {
  %zero = arith.constant 0.0 : f32
  %y = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%n: index, %h: index, %v: index, %c: index):
    tensor.yield %zero : f32
  } : tensor<1x7x7x128xf32> to tensor<1x9x9x128xf32>
  return %y : tensor<1x9x9x128xf32>
}
func.func private @kernel.window(%x: tensor<1x9x9x128xf32>, %w: tensor<3x3x128xf32>, %out: tensor<1x7x7x128xf32>) -> tensor<1x7x7x128xf32> attributes {ktn.kernel = "depthwise"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x7x7x128xf32>) -> tensor<1x7x7x128xf32>
  %y = linalg.generic {indexing_maps = [#window, #taps, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x9x9x128xf32>, tensor<3x3x128xf32>) outs(%start : tensor<1x7x7x128xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %m, %s : f32
    linalg.yield %t : f32
  } -> tensor<1x7x7x128xf32>
  return %y : tensor<1x7x7x128xf32>
}

// -----

#window = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 + d4, d2 + d5, d3)>
#taps = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5, d3)>
#image = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>

// 20 KB: not worth code for each border.
// CHECK-LABEL: func.func @tiny(
// CHECK:         %[[P:.+]] = call @kernel.border(
// CHECK:         call @kernel.window(%[[P]],
func.func @tiny(%x: tensor<1x7x7x64xf32>, %w: tensor<3x3x64xf32>) -> tensor<1x7x7x64xf32> {
  %framed = tensor.empty() : tensor<1x9x9x64xf32>
  %p = call @kernel.border(%x, %framed) : (tensor<1x7x7x64xf32>, tensor<1x9x9x64xf32>) -> tensor<1x9x9x64xf32>
  %out = tensor.empty() : tensor<1x7x7x64xf32>
  %y = call @kernel.window(%p, %w, %out) : (tensor<1x9x9x64xf32>, tensor<3x3x64xf32>, tensor<1x7x7x64xf32>) -> tensor<1x7x7x64xf32>
  return %y : tensor<1x7x7x64xf32>
}
func.func private @kernel.border(%x: tensor<1x7x7x64xf32>, %out: tensor<1x9x9x64xf32>) -> tensor<1x9x9x64xf32> attributes {ktn.kernel = "pad"} {
  %zero = arith.constant 0.0 : f32
  %y = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%n: index, %h: index, %v: index, %c: index):
    tensor.yield %zero : f32
  } : tensor<1x7x7x64xf32> to tensor<1x9x9x64xf32>
  return %y : tensor<1x9x9x64xf32>
}
func.func private @kernel.window(%x: tensor<1x9x9x64xf32>, %w: tensor<3x3x64xf32>, %out: tensor<1x7x7x64xf32>) -> tensor<1x7x7x64xf32> attributes {ktn.kernel = "depthwise"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x7x7x64xf32>) -> tensor<1x7x7x64xf32>
  %y = linalg.generic {indexing_maps = [#window, #taps, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x9x9x64xf32>, tensor<3x3x64xf32>) outs(%start : tensor<1x7x7x64xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %m, %s : f32
    linalg.yield %t : f32
  } -> tensor<1x7x7x64xf32>
  return %y : tensor<1x7x7x64xf32>
}
