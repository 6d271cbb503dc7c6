// RUN: keratin-opt %s | keratin-opt | FileCheck %s
// RUN: keratin-opt %s --emit-bytecode | keratin-opt | FileCheck %s

// CHECK-LABEL: func @shape(
// CHECK-SAME:    %[[X:.+]]: tensor<?x6xf32>)
func.func @shape(%x: tensor<?x6xf32>) {
  // CHECK: %[[S:.+]] = ktn.shape %[[X]] : tensor<?x6xf32> -> tensor<2xi64>
  %s = ktn.shape %x : tensor<?x6xf32> -> tensor<2xi64>
  // CHECK: ktn.reshape %[[X]] to [?, 2, 3] : tensor<?x6xf32> -> tensor<?x2x3xf32>
  %0 = ktn.reshape %x to [?, 2, 3] : tensor<?x6xf32> -> tensor<?x2x3xf32>
  // CHECK: ktn.reshape %[[X]] shape %[[S]] : tensor<2xi64> to [?, ?] : tensor<?x6xf32> -> tensor<?x?xf32>
  %1 = ktn.reshape %x shape %s : tensor<2xi64> to [?, ?] : tensor<?x6xf32> -> tensor<?x?xf32>
  // CHECK: ktn.broadcast_to %[[X]] to [4, ?, 6] : tensor<?x6xf32> -> tensor<4x?x6xf32>
  %2 = ktn.broadcast_to %x to [4, ?, 6] : tensor<?x6xf32> -> tensor<4x?x6xf32>
  // CHECK: ktn.broadcast_to %[[X]] shape %[[S]] : tensor<2xi64> to [?, 6] : tensor<?x6xf32> -> tensor<?x6xf32>
  %3 = ktn.broadcast_to %x shape %s : tensor<2xi64> to [?, 6] : tensor<?x6xf32> -> tensor<?x6xf32>
  return
}

// The one unknown extent follows when all of x is known.
// CHECK-LABEL: func @reshape_static(
func.func @reshape_static(%x: tensor<4x6xf32>) {
  // CHECK: ktn.reshape %{{.+}} to [?, 8] : tensor<4x6xf32> -> tensor<3x8xf32>
  %0 = ktn.reshape %x to [?, 8] : tensor<4x6xf32> -> tensor<3x8xf32>
  return
}

// CHECK-LABEL: func @axes(
// CHECK-SAME:    %[[X:.+]]: tensor<?x1x6xi1>)
func.func @axes(%x: tensor<?x1x6xi1>) {
  // CHECK: ktn.transpose %[[X]], [2, 0, 1] : tensor<?x1x6xi1> -> tensor<6x?x1xi1>
  %0 = ktn.transpose %x, [2, 0, 1] : tensor<?x1x6xi1> -> tensor<6x?x1xi1>
  // CHECK: ktn.expand_dims %[[X]], [0, 4] : tensor<?x1x6xi1> -> tensor<1x?x1x6x1xi1>
  %1 = ktn.expand_dims %x, [0, 4] : tensor<?x1x6xi1> -> tensor<1x?x1x6x1xi1>
  // CHECK: ktn.squeeze %[[X]], [0, 1] : tensor<?x1x6xi1> -> tensor<6xi1>
  %2 = ktn.squeeze %x, [0, 1] : tensor<?x1x6xi1> -> tensor<6xi1>
  // CHECK: ktn.reverse %[[X]], [0, 2] : tensor<?x1x6xi1>
  %3 = ktn.reverse %x, [0, 2] : tensor<?x1x6xi1>
  return
}

// CHECK-LABEL: func @parts(
// CHECK-SAME:    %[[X:.+]]: tensor<?x6xui8>)
func.func @parts(%x: tensor<?x6xui8>) {
  // CHECK: ktn.concat %[[X]], %[[X]] {axis = 1 : i64} : tensor<?x6xui8>, tensor<?x6xui8> -> tensor<?x12xui8>
  %0 = ktn.concat %x, %x {axis = 1} : tensor<?x6xui8>, tensor<?x6xui8> -> tensor<?x12xui8>
  // CHECK: ktn.slice %[[X]][1:?:2, 0:5:2] : tensor<?x6xui8> -> tensor<?x3xui8>
  %1 = ktn.slice %x[1:?:2, 0:5:2] : tensor<?x6xui8> -> tensor<?x3xui8>
  // CHECK: ktn.slice %[[X]][0:2:1, 6:?:1] : tensor<?x6xui8> -> tensor<2x0xui8>
  %2 = ktn.slice %x[0:2:1, 6:?:1] : tensor<?x6xui8> -> tensor<2x0xui8>
  // CHECK: ktn.pad %[[X]] low [1, 0] high [0, 2] value 7 : ui8 : tensor<?x6xui8> -> tensor<?x8xui8>
  %3 = ktn.pad %x low [1, 0] high [0, 2] value 7 : ui8 : tensor<?x6xui8> -> tensor<?x8xui8>
  return
}
