// RUN: keratin-opt %s --ktn-canonicalize | FileCheck %s
// RUN: keratin-opt %s --pass-pipeline="builtin.module(ktn-canonicalize,func.func(ktn-decompose),ktn-canonicalize)" | FileCheck %s

// Patterns of several dialects, with regions and what is not read.
// CHECK-LABEL: func @sum(
// CHECK-SAME:    %[[X:.+]]: index, %[[T:.+]]: tensor<4xf32>)
// CHECK-NEXT:    return %[[X]], %[[T]]
func.func @sum(%x: index, %t: tensor<4xf32>) -> (index, tensor<4xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %sum = arith.addi %x, %zero : index
  %unread = arith.addi %x, %one : index
  %y = scf.for %i = %zero to %one step %one iter_args(%s = %sum) -> (index) {
    scf.yield %s : index
  }
  %c = tensor.cast %t : tensor<4xf32> to tensor<?xf32>
  %d = tensor.cast %c : tensor<?xf32> to tensor<4xf32>
  return %y, %d : index, tensor<4xf32>
}
