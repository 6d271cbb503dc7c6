// RUN: keratin-opt %s --ktn-fold-pads | FileCheck %s

// A window whose body is elsewhere, and what stands in front of one without
// being a border, are left alone.
func.func private @window(tensor<1x66x66x32xf32>, tensor<1x64x64x32xf32>) -> tensor<1x64x64x32xf32> attributes {ktn.kernel = "depthwise"}
func.func private @source() -> tensor<1x66x66x32xf32>
func.func private @border(%x: tensor<1x64x64x32xf32>, %out: tensor<1x66x66x32xf32>) -> tensor<1x66x66x32xf32> attributes {ktn.kernel = "pad"} {
  %zero = arith.constant 0.0 : f32
  %y = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%n: index, %h: index, %w: index, %c: index):
    tensor.yield %zero : f32
  } : tensor<1x64x64x32xf32> to tensor<1x66x66x32xf32>
  return %y : tensor<1x66x66x32xf32>
}
func.func private @pool(%x: tensor<1x66x66x32xf32>, %out: tensor<1x64x64x32xf32>) -> tensor<1x64x64x32xf32> attributes {ktn.kernel = "pool"} {
  return %out : tensor<1x64x64x32xf32>
}

// CHECK-LABEL: func.func @net(
// CHECK:         %[[P:.+]] = call @border(
// CHECK:         call @window(%[[P]],
// CHECK:         %[[S:.+]] = call @source()
// CHECK:         call @pool(%[[S]],
func.func @net(%x: tensor<1x64x64x32xf32>, %out: tensor<1x64x64x32xf32>) -> (tensor<1x64x64x32xf32>, tensor<1x64x64x32xf32>) {
  %framed = tensor.empty() : tensor<1x66x66x32xf32>
  %p = call @border(%x, %framed) : (tensor<1x64x64x32xf32>, tensor<1x66x66x32xf32>) -> tensor<1x66x66x32xf32>
  %y = call @window(%p, %out) : (tensor<1x66x66x32xf32>, tensor<1x64x64x32xf32>) -> tensor<1x64x64x32xf32>
  %s = call @source() : () -> tensor<1x66x66x32xf32>
  %z = call @pool(%s, %out) : (tensor<1x66x66x32xf32>, tensor<1x64x64x32xf32>) -> tensor<1x64x64x32xf32>
  return %y, %z : tensor<1x64x64x32xf32>, tensor<1x64x64x32xf32>
}
