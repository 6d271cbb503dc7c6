// RUN: keratin-opt %s --ktn-lower-to-linalg | FileCheck %s

// CHECK-DAG: #[[CONV_X:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 * 2 + d4, d2 * 2 + d5 * 3, d6)>
// CHECK-DAG: #[[CONV_K:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d4, d5, d6, d3)>
// CHECK-DAG: #[[CONV_Y:.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>
// CHECK-DAG: #[[DEPTH_X:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1 + d3, d2)>
// CHECK-DAG: #[[DEPTH_Y:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-DAG: #[[GROUP_X:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 + d4, d2, d5)>
// CHECK-DAG: #[[GROUP_K:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5, d2, d3)>
// CHECK-DAG: #[[GROUP_Y:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>
// CHECK-DAG: #[[LANES_X:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 + d3, (d2 floordiv 4) * 2 + d4)>
// CHECK-DAG: #[[LANES_K:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d3, d4, d2)>
// CHECK-DAG: #[[POOL_X:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1 * 2 + d3, d2)>
// CHECK-DAG: #[[POOL_K:.+]] = affine_map<(d0, d1, d2, d3) -> (d3)>
// CHECK-DAG: #[[POSITION:.+]] = affine_map<(d0, d1, d2) -> (d1)>

// Loops are batch, positions, output channel, window, input channel. Zeros
// around x are a pad.
// CHECK-LABEL: func @conv(
// CHECK-SAME:    %[[X:.+]]: tensor<?x9x9x3xf32>, %[[K:.+]]: tensor<3x2x3x16xf32>)
// CHECK:         %[[PADDED:.+]] = tensor.pad %[[X]] low[0, 1, 0, 0] high[0, 1, 0, 0]
// CHECK:         linalg.generic
// CHECK-SAME:      indexing_maps = [#[[CONV_X]], #[[CONV_K]], #[[CONV_Y]]]
// CHECK-SAME:      ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]
// CHECK-SAME:      ins(%[[PADDED]], %[[K]] :
func.func @conv(%x: tensor<?x9x9x3xf32>, %k: tensor<3x2x3x16xf32>) -> tensor<?x5x3x16xf32> {
  %y = ktn.conv %x, %k strides [2, 2] padding [1, 1, 0, 0] dilation [1, 3] channels_last
      : tensor<?x9x9x3xf32>, tensor<3x2x3x16xf32> -> tensor<?x5x3x16xf32>
  return %y : tensor<?x5x3x16xf32>
}

// A group for each channel: no loop over input channels, the kernel without its
// axis of extent 1.
// CHECK-LABEL: func @depthwise(
// CHECK:         linalg.generic
// CHECK-SAME:      indexing_maps = [#[[DEPTH_X]], #{{.+}}, #[[DEPTH_Y]]]
// CHECK-SAME:      ["parallel", "parallel", "parallel", "reduction"]
func.func @depthwise(%x: tensor<?x9x8xf32>, %k: tensor<3x1x8xf32>) -> tensor<?x7x8xf32> {
  %y = ktn.conv %x, %k strides [1] padding [0, 0] dilation [1] channels_last {groups = 8}
      : tensor<?x9x8xf32>, tensor<3x1x8xf32> -> tensor<?x7x8xf32>
  return %y : tensor<?x7x8xf32>
}

// The channels of x, kernel and result are views split into groups.
// CHECK-LABEL: func @grouped(
// CHECK-DAG:     %[[X:.+]] = tensor.expand_shape %{{.+}} {{\[\[}}0], [1], [2, 3]] {{.+}} into tensor<?x9x4x2xf32>
// CHECK-DAG:     %[[K:.+]] = tensor.expand_shape %{{.+}} {{\[\[}}0], [1], [2, 3]] {{.+}} into tensor<3x2x4x3xf32>
// CHECK:         linalg.generic
// CHECK-SAME:      indexing_maps = [#[[GROUP_X]], #[[GROUP_K]], #[[GROUP_Y]]]
// CHECK-SAME:      ins(%[[X]], %[[K]] :
// CHECK:         tensor.collapse_shape {{.+}} into tensor<?x7x12xf32>
func.func @grouped(%x: tensor<?x9x8xf32>, %k: tensor<3x2x12xf32>) -> tensor<?x7x12xf32> {
  %y = ktn.conv %x, %k strides [1] padding [0, 0] dilation [1] channels_last {groups = 4}
      : tensor<?x9x8xf32>, tensor<3x2x12xf32> -> tensor<?x7x12xf32>
  return %y : tensor<?x7x12xf32>
}

// Few channels of a group: vectors go over several of them.
// CHECK-LABEL: func @small_groups(
// CHECK-NOT:     expand_shape
// CHECK:         linalg.generic
// CHECK-SAME:      indexing_maps = [#[[LANES_X]], #[[LANES_K]], #{{[a-z0-9]+}}]
// CHECK-SAME:      ["parallel", "parallel", "parallel", "reduction", "reduction"]
func.func @small_groups(%x: tensor<?x9x8xf32>, %k: tensor<3x2x16xf32>) -> tensor<?x7x16xf32> {
  %y = ktn.conv %x, %k strides [1] padding [0, 0] dilation [1] channels_last {groups = 4}
      : tensor<?x9x8xf32>, tensor<3x2x16xf32> -> tensor<?x7x16xf32>
  return %y : tensor<?x7x16xf32>
}

// What is outside never is the maximum. The window's extents are those of an
// unset input.
// CHECK-LABEL: func @max_pool(
// CHECK-DAG:     %[[LOWEST:.+]] = arith.constant 0xFF800000 : f32
// CHECK-DAG:     tensor.pad
// CHECK-DAG:     tensor.yield %[[LOWEST]] : f32
// CHECK-DAG:     linalg.fill ins(%[[LOWEST]]
// CHECK-DAG:     %[[WINDOW:.+]] = tensor.empty() : tensor<3xf32>
// CHECK:         linalg.generic
// CHECK-SAME:      indexing_maps = [#[[POOL_X]], #[[POOL_K]], #[[DEPTH_Y]]]
// CHECK-SAME:      ins(%{{.+}}, %[[WINDOW]] :
// CHECK:         arith.maximumf
func.func @max_pool(%x: tensor<?x8x4xf32>) -> tensor<?x4x4xf32> {
  %y = ktn.max_pool %x size [3] strides [2] padding [0, 1] channels_last
      : tensor<?x8x4xf32> -> tensor<?x4x4xf32>
  return %y : tensor<?x4x4xf32>
}

// The mean is over what is inside: two elements at the end, three elsewhere.
// CHECK-LABEL: func @avg_pool(
// CHECK:         %[[SHARES:.+]] = arith.constant dense<[0.333333343, 0.333333343, 0.333333343, 5.000000e-01]> : tensor<4xf32>
// CHECK:         %[[SUM:.+]] = linalg.generic
// CHECK:         arith.addf
// CHECK:         linalg.generic
// CHECK-SAME:      indexing_maps = [#{{.+}}, #[[POSITION]], #{{.+}}]
// CHECK-SAME:      ins(%[[SUM]], %[[SHARES]] :
// CHECK:         arith.mulf
func.func @avg_pool(%x: tensor<?x8x4xf32>) -> tensor<?x4x4xf32> {
  %y = ktn.avg_pool %x size [3] strides [2] padding [0, 1] channels_last
      : tensor<?x8x4xf32> -> tensor<?x4x4xf32>
  return %y : tensor<?x4x4xf32>
}

// The image slides along the window and is summed over batch and positions; no
// operand is transposed.
// CHECK-LABEL: func @conv_kernel_grad(
// CHECK-SAME:    %[[X:.+]]: tensor<?x9x4xf32>, %[[Z:.+]]: tensor<?x4x6xf32>)
// CHECK:         linalg.generic
// CHECK-SAME:      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]
// CHECK-SAME:      ins(%[[X]], %[[Z]] :
func.func @conv_kernel_grad(%x: tensor<?x9x4xf32>, %z: tensor<?x4x6xf32>) -> tensor<3x4x6xf32> {
  %y = ktn.conv_kernel_grad %x, %z window [3] strides [2] padding [0, 0] dilation [1]
      : tensor<?x9x4xf32>, tensor<?x4x6xf32> -> tensor<3x4x6xf32>
  return %y : tensor<3x4x6xf32>
}

// The least number among those at which x is the maximum.
// CHECK-LABEL: func @max_pool_index(
// CHECK-DAG:     %[[ORDER:.+]] = arith.constant dense<[0, 1, 2]> : tensor<3xi32>
// CHECK-DAG:     %[[NONE:.+]] = arith.constant 3 : i32
// CHECK-DAG:     linalg.fill ins(%[[NONE]]
// CHECK:         arith.cmpf oeq
// CHECK:         arith.minsi
func.func @max_pool_index(%x: tensor<?x8x4xf32>, %max: tensor<?x4x4xf32>) -> tensor<?x4x4xi32> {
  %y = ktn.max_pool_index %x, %max size [3] strides [2] padding [0, 1]
      : tensor<?x8x4xf32>, tensor<?x4x4xf32> -> tensor<?x4x4xi32>
  return %y : tensor<?x4x4xi32>
}
