// RUN: keratin-opt %s --ktn-expand-gradients --canonicalize --cse | FileCheck %s

// A repeated operand sums over its copies, and has its own type again even
// where only the other one knows an extent.
// CHECK-LABEL: func @broadcast(
// CHECK-SAME:    %[[X:.+]]: tensor<?x1xf32>, %[[Y:.+]]: tensor<4x3xf32>)
// CHECK:         %[[DX:.+]] = ktn.sum %{{.+}}, [1] {keepdims = true} : tensor<4x3xf32> -> tensor<4x1xf32>
// CHECK:         %[[S:.+]] = ktn.shape %[[X]]
// CHECK:         ktn.reshape %[[DX]] shape %[[S]] : tensor<2xi64> to [?, 1] : tensor<4x1xf32> -> tensor<?x1xf32>
func.func @broadcast(%x: tensor<?x1xf32>, %y: tensor<4x3xf32>) -> tensor<?x1xf32> {
  %0 = ktn.mul %x, %y : tensor<?x1xf32>, tensor<4x3xf32> -> tensor<4x3xf32>
  %1 = ktn.gradients %0 wrt %x : tensor<4x3xf32> wrt tensor<?x1xf32>
  return %1 : tensor<?x1xf32>
}

// Both gradients of a product are products, without a transpose of an operand
// or of the product.
// CHECK-LABEL: func @dot(
// CHECK-SAME:    %[[A:.+]]: tensor<?x3xf32>, %[[B:.+]]: tensor<3x5xf32>, %[[DY:.+]]: tensor<?x5xf32>)
// CHECK-DAG:     %[[DA:.+]] = ktn.dot_general %{{.+}}, %[[B]] contract [1] x [1] : tensor<?x5xf32>, tensor<3x5xf32> -> tensor<?x3xf32>
// CHECK-DAG:     %[[DB:.+]] = ktn.dot_general %[[A]], %{{.+}} contract [0] x [0] : tensor<?x3xf32>, tensor<?x5xf32> -> tensor<3x5xf32>
// CHECK:         return %[[DA]], %[[DB]]
func.func @dot(%a: tensor<?x3xf32>, %b: tensor<3x5xf32>, %dy: tensor<?x5xf32>) -> (tensor<?x3xf32>, tensor<3x5xf32>) {
  %0 = ktn.dot_general %a, %b contract [1] x [0] : tensor<?x3xf32>, tensor<3x5xf32> -> tensor<?x5xf32>
  %1 = ktn.mul %0, %dy : tensor<?x5xf32>
  %2:2 = ktn.gradients %1 wrt %a, %b : tensor<?x5xf32> wrt tensor<?x3xf32>, tensor<3x5xf32>
  return %2#0, %2#1 : tensor<?x3xf32>, tensor<3x5xf32>
}

// A strided slice puts zeros between and behind.
// CHECK-LABEL: func @strided_slice(
// CHECK:         ktn.expand_dims %{{.+}}, [1] : tensor<3xf32> -> tensor<3x1xf32>
// CHECK:         ktn.pad %{{.+}} low [0, 0] high [0, 2]
// CHECK:         ktn.reshape %{{.+}} to [9]
// CHECK:         %[[D:.+]] = ktn.slice %{{.+}}[0:8:1]
// CHECK:         ktn.pad %[[D]] low [1] high [1] {{.+}} -> tensor<10xf32>
func.func @strided_slice(%x: tensor<10xf32>) -> tensor<10xf32> {
  %0 = ktn.slice %x[1:9:3] : tensor<10xf32> -> tensor<3xf32>
  %1 = ktn.gradients %0 wrt %x : tensor<3xf32> wrt tensor<10xf32>
  return %1 : tensor<10xf32>
}

// The part behind an operand of unknown extent is found from the back.
// CHECK-LABEL: func @concat_unknown(
// CHECK-SAME:    %[[X:.+]]: tensor<?xf32>, %[[Y:.+]]: tensor<3xf32>, %[[DZ:.+]]: tensor<?xf32>)
// CHECK:         %[[R:.+]] = ktn.reverse %{{.+}}, [0]
// CHECK:         %[[P:.+]] = ktn.slice %[[R]][0:3:1] : tensor<?xf32> -> tensor<3xf32>
// CHECK:         ktn.reverse %[[P]], [0]
func.func @concat_unknown(%x: tensor<?xf32>, %y: tensor<3xf32>, %dz: tensor<?xf32>) -> tensor<3xf32> {
  %0 = ktn.concat %x, %y {axis = 0} : tensor<?xf32>, tensor<3xf32> -> tensor<?xf32>
  %1 = ktn.mul %0, %dz : tensor<?xf32>
  %2 = ktn.gradients %1 wrt %y : tensor<?xf32> wrt tensor<3xf32>
  return %2 : tensor<3xf32>
}

// The gathered axis goes to the front for the sum, and back.
// CHECK-LABEL: func @gather(
// CHECK-SAME:    %[[X:.+]]: tensor<4x9xf32>, %[[I:.+]]: tensor<?xi32>)
// CHECK:         %[[Z:.+]] = ktn.constant dense<0.000000e+00> : tensor<9x4xf32>
// CHECK:         %[[S:.+]] = ktn.scatter_add %[[Z]], %[[I]], %{{.+}} : tensor<9x4xf32>, tensor<?xi32>, tensor<?x4xf32>
// CHECK:         ktn.transpose %[[S]], [1, 0]
func.func @gather(%x: tensor<4x9xf32>, %i: tensor<?xi32>) -> tensor<4x9xf32> {
  %0 = ktn.gather %x, %i {axis = 1} : tensor<4x9xf32>, tensor<?xi32> -> tensor<4x?xf32>
  %1 = ktn.gradients %0 wrt %x : tensor<4x?xf32> wrt tensor<4x9xf32>
  return %1 : tensor<4x9xf32>
}

// Batches are a part of the axis that is scattered into: element i of batch b is
// element b * 9 + i of all.
// CHECK-LABEL: func @gather_batches(
// CHECK-SAME:    %[[X:.+]]: tensor<?x9x2xf32>, %[[I:.+]]: tensor<?x5xi32>)
// CHECK:         %[[B:.+]] = ktn.iota shape %{{.+}} : tensor<2xi64> to [?, 5], i64 {axis = 0 : i64}
// CHECK:         %[[BEGIN:.+]] = ktn.mul %[[B]], %{{.+}} : tensor<?x5xi64>
// CHECK:         %[[AT:.+]] = ktn.add %{{.+}}, %[[BEGIN]]
// CHECK:         %[[S:.+]] = ktn.scatter_add %{{.+}}, %[[AT]], %{{.+}} : tensor<?x2xf32>, tensor<?x5xi64>, tensor<?x5x2xf32>
// CHECK:         ktn.reshape %[[S]] to [?, 9, 2]
func.func @gather_batches(%x: tensor<?x9x2xf32>, %i: tensor<?x5xi32>) -> tensor<?x9x2xf32> {
  %0 = ktn.gather %x, %i {axis = 1, batch_dims = 1} : tensor<?x9x2xf32>, tensor<?x5xi32> -> tensor<?x5x2xf32>
  %1 = ktn.gradients %0 wrt %x : tensor<?x5x2xf32> wrt tensor<?x9x2xf32>
  return %1 : tensor<?x9x2xf32>
}

// No gradient flows through steps and conditions: the result is zero.
// CHECK-LABEL: func @steps(
// CHECK:         %[[Z:.+]] = ktn.constant dense<0.000000e+00> : tensor<4xf32>
// CHECK:         return %[[Z]]
func.func @steps(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = ktn.floor %x : tensor<4xf32>
  %1 = ktn.sign %0 : tensor<4xf32>
  %2 = ktn.stop_gradient %x : tensor<4xf32>
  %3 = ktn.add %1, %2 : tensor<4xf32>
  %4 = ktn.gradients %3 wrt %x : tensor<4xf32> wrt tensor<4xf32>
  return %4 : tensor<4xf32>
}

// By the image a convolution is transposed, by the kernel it is the third form.
// CHECK-LABEL: func @conv(
// CHECK-SAME:    %[[X:.+]]: tensor<?x9x4xf32>, %[[W:.+]]: tensor<3x2x6xf32>, %[[DY:.+]]: tensor<?x5x6xf32>)
// CHECK:         ktn.broadcast_to
// CHECK:         %[[DY1:.+]] = ktn.mul {{.*}}%[[DY]]
// CHECK-DAG:     ktn.conv_transpose %[[DY1]], %[[W]] strides [2] padding [1, 1] dilation [1] to [9] channels_last {groups = 2 : i64}
// CHECK-DAG:     ktn.conv_kernel_grad %[[X]], %[[DY1]] window [3] strides [2] padding [1, 1] dilation [1] {groups = 2 : i64}
func.func @conv(%x: tensor<?x9x4xf32>, %w: tensor<3x2x6xf32>, %dy: tensor<?x5x6xf32>) -> (tensor<?x9x4xf32>, tensor<3x2x6xf32>) {
  %0 = ktn.conv %x, %w strides [2] padding [1, 1] dilation [1] channels_last {groups = 2} : tensor<?x9x4xf32>, tensor<3x2x6xf32> -> tensor<?x5x6xf32>
  %1 = ktn.mul %0, %dy : tensor<?x5x6xf32>
  %2:2 = ktn.gradients %1 wrt %x, %w : tensor<?x5x6xf32> wrt tensor<?x9x4xf32>, tensor<3x2x6xf32>
  return %2#0, %2#1 : tensor<?x9x4xf32>, tensor<3x2x6xf32>
}

// The gradients of the third form are the other two.
// CHECK-LABEL: func @conv_kernel_grad(
// CHECK-SAME:    %[[X:.+]]: tensor<?x9x4xf32>, %[[Z:.+]]: tensor<?x5x6xf32>, %[[W:.+]]: tensor<3x4x6xf32>)
// CHECK:         %[[W1:.+]] = ktn.mul {{.*}}%[[W]]
// CHECK-DAG:     ktn.conv_transpose %[[Z]], %[[W1]] strides [2] padding [1, 1] dilation [1] to [9]
// CHECK-DAG:     ktn.conv %[[X]], %[[W1]] strides [2] padding [1, 1] dilation [1]
func.func @conv_kernel_grad(%x: tensor<?x9x4xf32>, %z: tensor<?x5x6xf32>, %w: tensor<3x4x6xf32>) -> (tensor<?x9x4xf32>, tensor<?x5x6xf32>) {
  %0 = ktn.conv_kernel_grad %x, %z window [3] strides [2] padding [1, 1] dilation [1] : tensor<?x9x4xf32>, tensor<?x5x6xf32> -> tensor<3x4x6xf32>
  %1 = ktn.mul %0, %w : tensor<3x4x6xf32>
  %2:2 = ktn.gradients %1 wrt %x, %z : tensor<3x4x6xf32> wrt tensor<?x9x4xf32>, tensor<?x5x6xf32>
  return %2#0, %2#1 : tensor<?x9x4xf32>, tensor<?x5x6xf32>
}

// Windows that do not overlap have one tap. Those side by side are looked at for
// each of their elements: no index is kept, and y is not read.
// CHECK-LABEL: func @max_pool(
// CHECK-SAME:    %[[X:.+]]: tensor<?x8x4xf32>
// CHECK-DAG:     %[[NUMBERS:.+]] = ktn.constant {{.+}} : tensor<1x1x2x1xi32>
// CHECK-DAG:     %[[SPLIT:.+]] = ktn.reshape %[[X]] {{.*}} -> tensor<?x4x2x4xf32>
// CHECK-DAG:     %[[LARGEST:.+]] = ktn.maximum {{.+}} : tensor<?x4x2x4xf32>
// CHECK:         ktn.equal {{.+}}, %[[LARGEST]]
// CHECK:         %[[SECOND:.+]] = ktn.select {{.+}} -> tensor<?x4x2x4xi32>
// CHECK:         %[[INDEX:.+]] = ktn.select {{.+}}, {{.+}}, %[[SECOND]]
// CHECK:         ktn.equal %[[INDEX]], %[[NUMBERS]]
// CHECK:         ktn.select
// CHECK-NOT:     ktn.max_pool_index
// CHECK:         ktn.reshape
func.func @max_pool(%x: tensor<?x8x4xf32>) -> tensor<?x8x4xf32> {
  %0 = ktn.max_pool %x size [2] strides [2] padding [0, 0] channels_last : tensor<?x8x4xf32> -> tensor<?x4x4xf32>
  %1 = ktn.gradients %0 wrt %x : tensor<?x4x4xf32> wrt tensor<?x8x4xf32>
  return %1 : tensor<?x8x4xf32>
}

// Where windows do not meet all elements the number of the largest one is kept.
// CHECK-LABEL: func @max_pool_with_rest(
// CHECK-SAME:    %[[X:.+]]: tensor<?x9x4xf32>
// CHECK-DAG:     %[[NUMBERS:.+]] = ktn.constant {{.+}} : tensor<1x1x2x1xi32>
// CHECK-DAG:     %[[Y:.+]] = ktn.max_pool %[[X]]
// CHECK:         %[[INDEX:.+]] = ktn.max_pool_index %[[X]], %[[Y]]
// CHECK:         ktn.equal {{.+}}, %[[NUMBERS]]
// CHECK:         ktn.select
// CHECK:         ktn.reshape
func.func @max_pool_with_rest(%x: tensor<?x9x4xf32>) -> tensor<?x9x4xf32> {
  %0 = ktn.max_pool %x size [2] strides [2] padding [0, 0] channels_last : tensor<?x9x4xf32> -> tensor<?x4x4xf32>
  %1 = ktn.gradients %0 wrt %x : tensor<?x4x4xf32> wrt tensor<?x9x4xf32>
  return %1 : tensor<?x9x4xf32>
}

// The windows of a mean that see an element are a window as well.
// CHECK-LABEL: func @avg_pool_by_one(
// CHECK:         %[[DY:.+]] = ktn.pad {{.+}} low [0, 2, 0] high [0, 2, 0]
// CHECK:         ktn.avg_pool %[[DY]] size [3] strides [1] padding [0, 0]
func.func @avg_pool_by_one(%x: tensor<?x9x4xf32>) -> tensor<?x9x4xf32> {
  %0 = ktn.avg_pool %x size [3] strides [1] padding [0, 0] channels_last : tensor<?x9x4xf32> -> tensor<?x7x4xf32>
  %1 = ktn.gradients %0 wrt %x : tensor<?x7x4xf32> wrt tensor<?x9x4xf32>
  return %1 : tensor<?x9x4xf32>
}
