// RUN: keratin-opt %s --ktn-lower-to-linalg --split-input-file | FileCheck %s

// Weights keep their bytes outside of the text.
// CHECK-LABEL: func @weights(
// CHECK:         arith.constant dense_resource<w> : tensor<4xf32>
func.func @weights() -> tensor<4xf32> {
  %w = ktn.constant dense_resource<w> : tensor<4xf32>
  return %w : tensor<4xf32>
}

// -----

// The loop carries the state and the stacked outputs. Step t reads slice t and
// writes output t; the extents of the outputs are known before the loop.
// CHECK-LABEL: func @scan(
// CHECK-SAME:    %[[XS:.+]]: tensor<10x?x8xf32>, %[[S0:.+]]: tensor<?x8xf32>)
// CHECK-DAG:     %[[T:.+]] = arith.constant 10 : index
// CHECK:         %[[N:.+]] = tensor.dim %[[XS]], %c1
// CHECK:         %[[STACK:.+]] = tensor.empty(%[[N]]) : tensor<10x?x8xf32>
// CHECK:         %[[LOOP:.+]]:2 = scf.for %[[I:[a-z0-9]+]] = %{{.+}} to %[[T]] step %{{.+}} iter_args(%[[S:.+]] = %[[S0]], %[[YS:.+]] = %[[STACK]])
// CHECK:           %[[X:.+]] = tensor.extract_slice %[[XS]][%[[I]], 0, 0] [1, %{{.+}}, 8] [1, 1, 1]
// CHECK:           %[[NEXT:.+]] = linalg.generic
// CHECK-SAME:        ins(%[[X]], %[[S]] :
// CHECK:           %[[STACKED:.+]] = tensor.insert_slice %[[NEXT]] into %[[YS]][%[[I]], 0, 0]
// CHECK:           scf.yield %[[NEXT]], %[[STACKED]]
// CHECK:         return %[[LOOP]]#0, %[[LOOP]]#1
func.func @scan(%xs: tensor<10x?x8xf32>, %s0: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<10x?x8xf32>) {
  %r:2 = ktn.scan (%x = %xs : tensor<10x?x8xf32>) init (%s = %s0 : tensor<?x8xf32>) {
    %n = ktn.add %x, %s : tensor<?x8xf32>
    ktn.yield %n, %n : tensor<?x8xf32>, tensor<?x8xf32>
  } -> (tensor<?x8xf32>, tensor<10x?x8xf32>)
  return %r#0, %r#1 : tensor<?x8xf32>, tensor<10x?x8xf32>
}

// -----

// Backwards, step t still reads and writes at t.
// CHECK-LABEL: func @reverse_scan(
// CHECK-DAG:     %[[LAST:.+]] = arith.constant 9 : index
// CHECK:         scf.for %[[I:[a-z0-9]+]] =
// CHECK:           %[[T:.+]] = arith.subi %[[LAST]], %[[I]]
// CHECK:           tensor.extract_slice %{{.+}}[%[[T]], 0]
// CHECK:           tensor.insert_slice %{{.+}} into %{{.+}}[%[[T]], 0]
func.func @reverse_scan(%xs: tensor<10x8xf32>, %s0: tensor<8xf32>) -> tensor<10x8xf32> {
  %r:2 = ktn.scan (%x = %xs : tensor<10x8xf32>) init (%s = %s0 : tensor<8xf32>) reverse {
    %n = ktn.add %x, %s : tensor<8xf32>
    ktn.yield %n, %n : tensor<8xf32>, tensor<8xf32>
  } -> (tensor<8xf32>, tensor<10x8xf32>)
  return %r#1 : tensor<10x8xf32>
}
