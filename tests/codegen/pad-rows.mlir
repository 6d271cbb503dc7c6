// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" | FileCheck %s

// Rows of pixels of three channels are contiguous, in the image and inside of its
// border: 30 floats are a vector of 16 and one of 14, not ten of 3.
// CHECK-LABEL: func.func private @kernel.pad(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<1x8x10x3xf32>, %[[Y:[a-z0-9]+]]: memref<1x10x12x3xf32>)
// CHECK-DAG:     %[[FROM:.+]] = memref.collapse_shape %[[X]] {{\[\[0\], \[1\], \[2, 3\]\]}}
// CHECK-DAG:     %[[TO:.+]] = memref.collapse_shape %[[Y]] {{\[\[0\], \[1\], \[2, 3\]\]}}
// CHECK:         %[[A:.+]] = vector.load %[[FROM]]{{.+}} vector<16xf32>
// CHECK:         vector.store %[[A]], %[[TO]]
// CHECK:         %[[B:.+]] = vector.load %[[FROM]]{{.+}} vector<14xf32>
// CHECK:         vector.store %[[B]], %[[TO]]
func.func private @kernel.pad(%x: tensor<1x8x10x3xf32>, %out: tensor<1x10x12x3xf32>) -> tensor<1x10x12x3xf32> attributes {ktn.kernel = "pad"} {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x10x3xf32> to tensor<1x10x12x3xf32>
  return %0 : tensor<1x10x12x3xf32>
}
