// RUN: keratin-opt %s --ktn-fold-constants | FileCheck %s

// A variable that nobody assigns is the constant it starts as; the other stays.
// CHECK-NOT:     ktn.variable @weights
// CHECK:         ktn.variable @state
// CHECK-LABEL: func @step(
// CHECK:         ktn.constant dense<2.000000e+00> : tensor<4xf32>
// CHECK:         ktn.read @state
// CHECK:         ktn.assign @state
ktn.variable @weights : tensor<4xf32> = dense<2.0> : tensor<4xf32>
ktn.variable @state : tensor<4xf32> = dense<0.0> : tensor<4xf32>
func.func @step() {
  %w = ktn.read @weights : tensor<4xf32>
  %s = ktn.read @state : tensor<4xf32>
  %next = ktn.add %s, %w : tensor<4xf32>
  ktn.assign @state, %next : tensor<4xf32>
  return
}
