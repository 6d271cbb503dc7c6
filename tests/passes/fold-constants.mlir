// RUN: keratinc %s -o %t --emit=core && FileCheck %s --input-file=%t.mlir

// What depends on constants only is computed on the host. A value that is large
// and far larger than what it is made of stays an expression, but what it is made
// of is computed; but not one that is marked as worth its bytes.
// CHECK-LABEL: func @constants(
// CHECK-SAME:    %[[X:.+]]: tensor<4xf32>
// CHECK-DAG:     %[[SUM:.+]] = ktn.constant dense<[3.000000e+00, 5.000000e+00, 7.000000e+00, 9.000000e+00]> : tensor<4xf32>
// CHECK-DAG:     %[[ROW:.+]] = ktn.constant dense<[6.000000e+00, 1.000000e+01, 1.400000e+01, 1.800000e+01]> : tensor<4xf32>
// CHECK-DAG:     %[[TABLE:.+]] = ktn.broadcast_to %[[ROW]]
// CHECK-DAG:     %[[Y:.+]] = ktn.add %[[X]], %[[SUM]]
// CHECK-DAG:     %[[STORED:.+]] = ktn.constant dense_resource<{{.+}}> : tensor<16384x4xf32>
// CHECK:         return %[[Y]], %[[TABLE]], %[[STORED]]
func.func @constants(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<8192x4xf32>, tensor<16384x4xf32>) {
  %a = ktn.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %b = ktn.constant dense<[2.0, 3.0, 4.0, 5.0]> : tensor<4xf32>
  %sum = ktn.add %a, %b : tensor<4xf32>
  %y = ktn.add %x, %sum : tensor<4xf32>
  %row = ktn.add %sum, %sum : tensor<4xf32>
  %table = ktn.broadcast_to %row to [8192, 4] : tensor<4xf32> -> tensor<8192x4xf32>
  %stored = ktn.broadcast_to %row to [16384, 4] {ktn.stored} : tensor<4xf32> -> tensor<16384x4xf32>
  return %y, %table, %stored : tensor<4xf32>, tensor<8192x4xf32>, tensor<16384x4xf32>
}
