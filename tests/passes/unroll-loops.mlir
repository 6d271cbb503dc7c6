// RUN: keratin-opt %s --ktn-unroll-loops=unroll-factor=4 | FileCheck %s --check-prefix=FOUR
// RUN: keratin-opt %s --ktn-unroll-loops | FileCheck %s --check-prefix=CHOICE
// RUN: keratin-opt %s --ktn-unroll-loops=unroll-factor=1 | FileCheck %s --check-prefix=ONE

// Ten steps are two times four, and the two that are left follow in a loop. They are few enough to be
// unrolled whole when the factor is to be chosen.
// FOUR-LABEL:     func @ten(
// FOUR:             scf.for
// FOUR-COUNT-4:       linalg.exp
// FOUR:               scf.yield
// FOUR:             scf.for %{{.+}} = %c8{{.*}} to %c10
// FOUR-COUNT-1:       linalg.exp
// FOUR:             return
// CHOICE-LABEL:   func @ten(
// CHOICE-NOT:       scf.for
// CHOICE-COUNT-10:  linalg.exp
// CHOICE:           return
// ONE-LABEL:      func @ten(
// ONE:              scf.for
// ONE-COUNT-1:        linalg.exp
// ONE:                scf.yield
func.func @ten(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 10 : index
  %e = tensor.empty() : tensor<8xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> (tensor<8xf32>) {
    %y = linalg.exp ins(%s : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %y : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// Many steps stay a loop when the factor is to be chosen.
// FOUR-LABEL:     func @thousand(
// FOUR:             scf.for
// FOUR-COUNT-4:       linalg.exp
// FOUR:               scf.yield
// CHOICE-LABEL:   func @thousand(
// CHOICE:           scf.for
// CHOICE-COUNT-1:     linalg.exp
// CHOICE:             scf.yield
func.func @thousand(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 1000 : index
  %e = tensor.empty() : tensor<8xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> (tensor<8xf32>) {
    %y = linalg.exp ins(%s : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %y : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// What is not known before cannot be unrolled.
// FOUR-LABEL:     func @any(
// FOUR:             scf.for
// FOUR-COUNT-1:       linalg.exp
// FOUR:               scf.yield
func.func @any(%x: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<8xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> (tensor<8xf32>) {
    %y = linalg.exp ins(%s : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %y : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}
