// RUN: keratin-opt %s --ktn-checkpoint-scan | FileCheck %s
// RUN: keratin-opt %s --ktn-checkpoint-scan=checkpoint-every=5 | FileCheck %s --check-prefix=OPTION

// Ten steps are three chunks of three and one more. Going backwards that one is the
// first of the sequence.
// CHECK-LABEL: func @backwards(
// CHECK-SAME:    %[[XS:.+]]: tensor<10x4xf32>, %[[S0:.+]]: tensor<4xf32>)
// CHECK:         %[[FRONT:.+]] = ktn.slice %[[XS]][1:10:1, 0:4:1] : tensor<10x4xf32> -> tensor<9x4xf32>
// CHECK:         %[[CHUNKS:.+]] = ktn.reshape %[[FRONT]] to [3, 3, 4]
// CHECK:         %[[OUTER:.+]]:2 = ktn.scan (%[[X:.+]] = %[[CHUNKS]] : tensor<3x3x4xf32>) init (%[[S:.+]] = %[[S0]] : tensor<4xf32>) reverse {
// CHECK:           %[[INNER:.+]]:2 = ktn.scan (%{{.+}} = %[[X]] : tensor<3x4xf32>) init (%{{.+}} = %[[S]] : tensor<4xf32>) reverse {
// CHECK:           ktn.yield %[[INNER]]#0, %[[INNER]]#1
// CHECK:         %[[MOST:.+]] = ktn.reshape %[[OUTER]]#1 to [9, 4]
// CHECK:         %[[REST:.+]] = ktn.slice %[[XS]][0:1:1, 0:4:1]
// CHECK:         %[[LAST:.+]]:2 = ktn.scan (%{{.+}} = %[[REST]] : tensor<1x4xf32>) init (%{{.+}} = %[[OUTER]]#0 : tensor<4xf32>) reverse {
// CHECK:         ktn.concat %[[LAST]]#1, %[[MOST]] {axis = 0 : i64} : tensor<1x4xf32>, tensor<9x4xf32> -> tensor<10x4xf32>
func.func @backwards(%xs: tensor<10x4xf32>, %s0: tensor<4xf32>) -> tensor<10x4xf32> {
  %last, %ys = ktn.scan (%x = %xs : tensor<10x4xf32>) init (%s = %s0 : tensor<4xf32>) reverse attributes {checkpoint_every = 3 : i64} {
    %n = ktn.mul %s, %x : tensor<4xf32>
    ktn.yield %n, %n : tensor<4xf32>, tensor<4xf32>
  } -> (tensor<4xf32>, tensor<10x4xf32>)
  %dx = ktn.gradients %ys wrt %xs : tensor<10x4xf32> wrt tensor<10x4xf32>
  return %dx : tensor<10x4xf32>
}

// A loop that does not tell is split by the option alone, and only where there are
// gradients.
// CHECK-LABEL:  func @untold(
// CHECK-NEXT:     ktn.scan {{.+}} length 10 {
// OPTION-LABEL: func @untold(
// OPTION-NEXT:    ktn.scan {{.+}} length 2 {
// OPTION-NEXT:      ktn.scan {{.+}} length 5 {
func.func @untold(%s0: tensor<4xf32>) -> tensor<4xf32> {
  %last = ktn.scan () init (%s = %s0 : tensor<4xf32>) length 10 {
    %n = ktn.mul %s, %s : tensor<4xf32>
    ktn.yield %n : tensor<4xf32>
  } -> tensor<4xf32>
  %d = ktn.gradients %last wrt %s0 : tensor<4xf32> wrt tensor<4xf32>
  return %d : tensor<4xf32>
}

// OPTION-LABEL: func @without_gradients(
// OPTION-NEXT:    ktn.scan {{.+}} length 10 {
func.func @without_gradients(%s0: tensor<4xf32>) -> tensor<4xf32> {
  %last = ktn.scan () init (%s = %s0 : tensor<4xf32>) length 10 {
    %n = ktn.mul %s, %s : tensor<4xf32>
    ktn.yield %n : tensor<4xf32>
  } -> tensor<4xf32>
  return %last : tensor<4xf32>
}
