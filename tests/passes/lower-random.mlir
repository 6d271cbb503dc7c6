// RUN: keratin-opt %s --ktn-lower-to-linalg --split-input-file | FileCheck %s

// A block of Philox gives four elements, each into a quarter of the result;
// whole blocks are the result as they are.
// CHECK-LABEL: func @whole_blocks(
// CHECK:         %[[PARTS:.+]]:4 = linalg.generic
// CHECK-COUNT-20:  arith.muli
// CHECK:         %[[ONE:.+]] = tensor.insert_slice %[[PARTS]]#0 into %{{.+}}[0] [32] [1] : tensor<32xf32> into tensor<128xf32>
// CHECK:         %[[TWO:.+]] = tensor.insert_slice %[[PARTS]]#1 into %[[ONE]][32]
// CHECK:         %[[THREE:.+]] = tensor.insert_slice %[[PARTS]]#2 into %[[TWO]][64]
// CHECK:         %[[ALL:.+]] = tensor.insert_slice %[[PARTS]]#3 into %[[THREE]][96]
// CHECK-NEXT:    tensor.expand_shape %[[ALL]]
func.func @whole_blocks(%s: tensor<2xi64>) -> tensor<8x16xf32> {
  %0 = ktn.random %s : tensor<2xi64> to [8, 16], f32 : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// -----

// The last block of five elements is not needed whole.
// CHECK-LABEL: func @part_of_a_block(
// CHECK:         %[[WORDS:.+]] = tensor.insert_slice %{{.+}}#3 into {{.+}} into tensor<8xi32>
// CHECK-NEXT:    tensor.extract_slice %[[WORDS]][0] [5] [1]
func.func @part_of_a_block(%s: tensor<2xi64>) -> tensor<5xi32> {
  %0 = ktn.random %s : tensor<2xi64> to [5], i32 : tensor<5xi32>
  return %0 : tensor<5xi32>
}

// -----

// The number of blocks is no multiple of an extent that is not known, so each
// element computes its own.
// CHECK-LABEL: func @unknown_extent(
// CHECK-NOT:     tensor.insert_slice
// CHECK:         linalg.generic
// CHECK:           arith.select
// CHECK-NOT:     linalg.generic
func.func @unknown_extent(%s: tensor<2xi64>, %x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %n = ktn.shape %x : tensor<?x16xf32> -> tensor<2xi64>
  %0 = ktn.random %s : tensor<2xi64> shape %n : tensor<2xi64> to [?, 16], f32 : tensor<?x16xf32>
  return %0 : tensor<?x16xf32>
}

// -----

// A double takes two words of a block, so there are two a block.
// CHECK-LABEL: func @doubles(
// CHECK:         %[[PARTS:.+]]:2 = linalg.generic
// CHECK:         %[[ONE:.+]] = tensor.insert_slice %[[PARTS]]#0 into %{{.+}}[0] [3] [1]
// CHECK:         tensor.insert_slice %[[PARTS]]#1 into %[[ONE]][3] [3] [1]
func.func @doubles(%s: tensor<2xi64>) -> tensor<6xf64> {
  %0 = ktn.random %s : tensor<2xi64> to [6], f64 : tensor<6xf64>
  return %0 : tensor<6xf64>
}
