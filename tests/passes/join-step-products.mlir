// RUN: keratin-opt %s --ktn-hoist-scan | FileCheck %s

// All products of the input would be 4 MiB, which come and go through memory:
// each step of 16 rows takes input and state as one row.
// CHECK-LABEL: func @joined(
// CHECK:         %[[WEIGHTS:.+]] = ktn.concat %{{.+}}, %{{.+}} {axis = 0 : i64} : tensor<24x64xf32>, tensor<64x64xf32> -> tensor<88x64xf32>
// CHECK:         ktn.scan (%[[X:.+]] = %{{.+}} : tensor<1024x16x24xf32>) init (%[[H:.+]] = %
// CHECK:           %[[ROWS:.+]] = ktn.concat %[[X]], %[[H]] {axis = 1 : i64}
// CHECK:           %[[SUM:.+]] = ktn.dot_general %[[ROWS]], %[[WEIGHTS]] contract [1] x [0]
// CHECK-NOT:       ktn.dot_general
// CHECK:           ktn.add %[[SUM]], %{{.+}} : tensor<16x64xf32>, tensor<64xf32>
func.func @joined(%x: tensor<1024x16x24xf32>, %h: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %w = ktn.constant dense<0.1> : tensor<24x64xf32>
  %u = ktn.constant dense<0.2> : tensor<64x64xf32>
  %b = ktn.constant dense<0.3> : tensor<64xf32>
  %y = ktn.scan (%xt = %x : tensor<1024x16x24xf32>) init (%s = %h : tensor<16x64xf32>) {
    %0 = ktn.dot_general %xt, %w contract [1] x [0] : tensor<16x24xf32>, tensor<24x64xf32> -> tensor<16x64xf32>
    %1 = ktn.add %0, %b : tensor<16x64xf32>, tensor<64xf32> -> tensor<16x64xf32>
    %2 = ktn.dot_general %s, %u contract [1] x [0] : tensor<16x64xf32>, tensor<64x64xf32> -> tensor<16x64xf32>
    %3 = ktn.add %1, %2 : tensor<16x64xf32>
    %4 = ktn.tanh %3 : tensor<16x64xf32>
    ktn.yield %4 : tensor<16x64xf32>
  } -> tensor<16x64xf32>
  return %y : tensor<16x64xf32>
}

// A few rows only: reading the weights is what takes the time of a step.
// CHECK-LABEL: func @few_rows(
// CHECK:         ktn.dot_general %{{.+}} : tensor<4096x4x24xf32>
// CHECK:         ktn.scan
// CHECK-NOT:       ktn.concat
func.func @few_rows(%x: tensor<4096x4x24xf32>, %h: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %w = ktn.constant dense<0.1> : tensor<24x64xf32>
  %u = ktn.constant dense<0.2> : tensor<64x64xf32>
  %y = ktn.scan (%xt = %x : tensor<4096x4x24xf32>) init (%s = %h : tensor<4x64xf32>) {
    %0 = ktn.dot_general %xt, %w contract [1] x [0] : tensor<4x24xf32>, tensor<24x64xf32> -> tensor<4x64xf32>
    %2 = ktn.dot_general %s, %u contract [1] x [0] : tensor<4x64xf32>, tensor<64x64xf32> -> tensor<4x64xf32>
    %3 = ktn.add %0, %2 : tensor<4x64xf32>
    ktn.yield %3 : tensor<4x64xf32>
  } -> tensor<4x64xf32>
  return %y : tensor<4x64xf32>
}

// Weights that are trained are packed anew for each call.
// CHECK-LABEL: func @trained(
// CHECK:         ktn.dot_general %{{.+}} : tensor<1024x16x24xf32>
// CHECK:         ktn.scan
// CHECK-NOT:       ktn.concat
func.func @trained(%x: tensor<1024x16x24xf32>, %h: tensor<16x64xf32>, %w: tensor<24x64xf32>, %u: tensor<64x64xf32>) -> tensor<16x64xf32> {
  %y = ktn.scan (%xt = %x : tensor<1024x16x24xf32>) init (%s = %h : tensor<16x64xf32>) {
    %0 = ktn.dot_general %xt, %w contract [1] x [0] : tensor<16x24xf32>, tensor<24x64xf32> -> tensor<16x64xf32>
    %2 = ktn.dot_general %s, %u contract [1] x [0] : tensor<16x64xf32>, tensor<64x64xf32> -> tensor<16x64xf32>
    %3 = ktn.add %2, %0 : tensor<16x64xf32>
    ktn.yield %3 : tensor<16x64xf32>
  } -> tensor<16x64xf32>
  return %y : tensor<16x64xf32>
}

// Rows of a table are taken from there in each step.
// CHECK-LABEL: func @embedded(
// CHECK-SAME:    %[[IDS:.+]]: tensor<16x1024xi32>
// CHECK-DAG:     %[[TABLE:.+]] = ktn.constant {{.+}} : tensor<100x24xf32>
// CHECK-DAG:     %[[NUMBERS:.+]] = ktn.transpose %[[IDS]], [1, 0]
// CHECK:         ktn.scan (%[[NUMBER:.+]] = %[[NUMBERS]] : tensor<1024x16xi32>) init (%[[H:.+]] = %
// CHECK:           %[[X:.+]] = ktn.gather %[[TABLE]], %[[NUMBER]] {axis = 0 : i64}
// CHECK:           %[[ROWS:.+]] = ktn.concat %[[X]], %[[H]] {axis = 1 : i64}
// CHECK:           ktn.dot_general %[[ROWS]],
func.func @embedded(%ids: tensor<16x1024xi32>, %h: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %table = ktn.constant dense<0.1> : tensor<100x24xf32>
  %w = ktn.constant dense<0.1> : tensor<24x64xf32>
  %u = ktn.constant dense<0.2> : tensor<64x64xf32>
  %e = ktn.gather %table, %ids {axis = 0} : tensor<100x24xf32>, tensor<16x1024xi32> -> tensor<16x1024x24xf32>
  %x = ktn.transpose %e, [1, 0, 2] : tensor<16x1024x24xf32> -> tensor<1024x16x24xf32>
  %y = ktn.scan (%xt = %x : tensor<1024x16x24xf32>) init (%s = %h : tensor<16x64xf32>) {
    %0 = ktn.dot_general %xt, %w contract [1] x [0] : tensor<16x24xf32>, tensor<24x64xf32> -> tensor<16x64xf32>
    %2 = ktn.dot_general %s, %u contract [1] x [0] : tensor<16x64xf32>, tensor<64x64xf32> -> tensor<16x64xf32>
    %3 = ktn.add %0, %2 : tensor<16x64xf32>
    ktn.yield %3 : tensor<16x64xf32>
  } -> tensor<16x64xf32>
  return %y : tensor<16x64xf32>
}

// Rows that are columns in memory follow one another there.
// CHECK-LABEL: func @columns(
// CHECK:         ktn.scan (%[[X:.+]] = %{{.+}} : tensor<1024x24x16xf32>) init (%[[H:.+]] = %
// CHECK:           %[[ROWS:.+]] = ktn.concat %[[X]], %[[H]] {axis = 0 : i64} : tensor<24x16xf32>, tensor<64x16xf32> -> tensor<88x16xf32>
// CHECK:           ktn.dot_general %[[ROWS]], %{{.+}} contract [0] x [0]
// CHECK-NOT:       ktn.dot_general
func.func @columns(%x: tensor<1024x24x16xf32>, %h: tensor<64x16xf32>) -> tensor<64x16xf32> {
  %w = ktn.constant dense<0.1> : tensor<24x64xf32>
  %u = ktn.constant dense<0.2> : tensor<64x64xf32>
  %y = ktn.scan (%xt = %x : tensor<1024x24x16xf32>) init (%s = %h : tensor<64x16xf32>) {
    %0 = ktn.dot_general %xt, %w contract [0] x [0] : tensor<24x16xf32>, tensor<24x64xf32> -> tensor<16x64xf32>
    %2 = ktn.dot_general %s, %u contract [0] x [0] : tensor<64x16xf32>, tensor<64x64xf32> -> tensor<16x64xf32>
    %3 = ktn.add %0, %2 : tensor<16x64xf32>
    %4 = ktn.transpose %3, [1, 0] : tensor<16x64xf32> -> tensor<64x16xf32>
    ktn.yield %4 : tensor<64x16xf32>
  } -> tensor<64x16xf32>
  return %y : tensor<64x16xf32>
}
