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

// What is computed of each element alone has joined axes as well.
// CHECK-LABEL: func.func private @kernel.scaled(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<1x8x10x3xf32>, %[[Y:[a-z0-9]+]]: memref<1x10x12x3xf32>)
// CHECK-DAG:     %[[FROM:.+]] = memref.collapse_shape %[[X]] {{\[\[0\], \[1\], \[2, 3\]\]}}
// CHECK-DAG:     %[[TO:.+]] = memref.collapse_shape %[[Y]] {{\[\[0\], \[1\], \[2, 3\]\]}}
// CHECK:         %[[A:.+]] = vector.load %[[FROM]]{{.+}} vector<16xf32>
// CHECK:         %[[B:.+]] = arith.mulf %[[A]]
// CHECK:         vector.store %[[B]], %[[TO]]
func.func private @kernel.scaled(%x: tensor<1x8x10x3xf32>, %out: tensor<1x10x12x3xf32>) -> tensor<1x10x12x3xf32> attributes {ktn.kernel = "pad"} {
  %zero = arith.constant 0.0 : f32
  %part = arith.constant 0.25 : f32
  %e = tensor.empty() : tensor<1x8x10x3xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(n, h, w, c) -> (n, h, w, c)>, affine_map<(n, h, w, c) -> (n, h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : tensor<1x8x10x3xf32>) outs(%e : tensor<1x8x10x3xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.mulf %a, %part : f32
    linalg.yield %t : f32
  } -> tensor<1x8x10x3xf32>
  %0 = tensor.pad %s low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x10x3xf32> to tensor<1x10x12x3xf32>
  return %0 : tensor<1x10x12x3xf32>
}

// A number for each channel is not the same along the joined axes.
// CHECK-LABEL: func.func private @kernel.by_channel(
// CHECK-NOT:     memref.collapse_shape
// CHECK:         return
func.func private @kernel.by_channel(%x: tensor<1x8x10x3xf32>, %f: tensor<3xf32>, %out: tensor<1x10x12x3xf32>) -> tensor<1x10x12x3xf32> attributes {ktn.kernel = "pad"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x8x10x3xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(n, h, w, c) -> (n, h, w, c)>, affine_map<(n, h, w, c) -> (c)>, affine_map<(n, h, w, c) -> (n, h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %f : tensor<1x8x10x3xf32>, tensor<3xf32>) outs(%e : tensor<1x8x10x3xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<1x8x10x3xf32>
  %0 = tensor.pad %s low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x10x3xf32> to tensor<1x10x12x3xf32>
  return %0 : tensor<1x10x12x3xf32>
}
