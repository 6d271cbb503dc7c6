// Loops stay as they are unless they are told to be unrolled, and gradients keep
// all states unless they are told to keep few.
// RUN: keratinc %s -o - --emit=linalg | FileCheck %s --check-prefix=ROLLED
// RUN: keratinc %s -o - --emit=linalg --unroll-factor=0 | FileCheck %s --check-prefix=UNROLLED
// RUN: keratinc %s -o - --emit=linalg --unroll-factor=2 | FileCheck %s --check-prefix=PAIRS
// RUN: keratinc %s -o - --emit=core --checkpoint-every=5 | FileCheck %s --check-prefix=FEW
// RUN: not keratinc %s -o - --emit=core --unroll-factor=-1 2>&1 | FileCheck %s --check-prefix=RANGE
// RUN: not keratinc %s -o - --emit=core --checkpoint-every=x 2>&1 | FileCheck %s --check-prefix=WORD

// ROLLED-LABEL:   func.func @slope(
// ROLLED-COUNT-2:   scf.for
// UNROLLED-LABEL: func.func @slope(
// UNROLLED-NOT:     scf.for
// PAIRS-LABEL:    func.func @slope(
// PAIRS:            %[[TWO:.+]] = arith.constant 2 : index
// PAIRS:            scf.for {{.+}} step %[[TWO]]
// FEW-LABEL:      func.func @slope(
// FEW:              ktn.scan
// FEW:                ktn.scan
// RANGE: --unroll-factor
// WORD: --checkpoint-every
func.func @slope(%xs: tensor<10x4xf32> {ktn.name = "xs"}, %s0: tensor<4xf32> {ktn.name = "s0"})
    -> (tensor<10x4xf32> {ktn.name = "slope"}) {
  %last = ktn.scan (%x = %xs : tensor<10x4xf32>) init (%s = %s0 : tensor<4xf32>) {
    %n = ktn.mul %s, %x : tensor<4xf32>
    ktn.yield %n : tensor<4xf32>
  } -> tensor<4xf32>
  %dx = ktn.gradients %last wrt %xs : tensor<4xf32> wrt tensor<10x4xf32>
  return %dx : tensor<10x4xf32>
}
