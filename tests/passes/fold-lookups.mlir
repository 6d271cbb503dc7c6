// RUN: keratin-opt %s --ktn-fold-lookups | FileCheck %s
// RUN: keratin-opt %s --ktn-fold-lookups=most-kib=5 | FileCheck %s --check-prefix=SMALL

// Rows of a table times weights are rows of the products of the table. Indices
// may have any axes.
// CHECK-LABEL: func @dense(
// CHECK-SAME:    %[[I:.+]]: tensor<?x7xi32>)
// CHECK:         %[[TW:.+]] = ktn.dot_general %{{.+}}, %{{.+}} contract [1] x [0] {ktn.stored} : tensor<40x16xf32>, tensor<16x32xf32>
// CHECK:         %[[Y:.+]] = ktn.gather %[[TW]], %[[I]] {axis = 0 : i64} : tensor<40x32xf32>, tensor<?x7xi32> -> tensor<?x7x32xf32>
// CHECK-NEXT:    return %[[Y]]
// SMALL-LABEL: func @dense(
// SMALL:         ktn.stored
func.func @dense(%i: tensor<?x7xi32>) -> tensor<?x7x32xf32> {
  %t = ktn.constant dense<0.5> : tensor<40x16xf32>
  %w = ktn.constant dense<2.0> : tensor<16x32xf32>
  %x = ktn.gather %t, %i {axis = 0} : tensor<40x16xf32>, tensor<?x7xi32> -> tensor<?x7x16xf32>
  %y = ktn.dot_general %x, %w contract [2] x [0] : tensor<?x7x16xf32>, tensor<16x32xf32> -> tensor<?x7x32xf32>
  return %y : tensor<?x7x32xf32>
}

// A step looks up its own rows: what it had from outside are indices now.
// CHECK-LABEL: func @steps(
// CHECK-SAME:    %[[I:.+]]: tensor<?x7xi32>,
// CHECK-DAG:     %[[STEPS:.+]] = ktn.transpose %[[I]], [1, 0] : tensor<?x7xi32> -> tensor<7x?xi32>
// CHECK-DAG:     %[[TW:.+]] = ktn.dot_general {{.*}} {ktn.stored} : tensor<40x16xf32>, tensor<16x24xf32>
// CHECK-DAG:     %[[TV:.+]] = ktn.dot_general {{.*}} {ktn.stored} : tensor<40x16xf32>, tensor<16x4xf32>
// CHECK:         ktn.scan (%[[STEP:.+]] = %[[STEPS]] : tensor<7x?xi32>)
// CHECK-DAG:       ktn.gather %[[TW]], %[[STEP]] {{.*}} -> tensor<?x24xf32>
// CHECK-DAG:       ktn.gather %[[TV]], %[[STEP]] {{.*}} -> tensor<?x4xf32>
// CHECK-NOT:       tensor<?x16xf32>
// CHECK:           ktn.yield
// Tables of products of the function above have 5 KiB, these 3.75 and 0.6.
// SMALL-LABEL: func @steps(
// SMALL:         ktn.stored
func.func @steps(%i: tensor<?x7xi32>, %h0: tensor<?x24xf32>) -> tensor<?x24xf32> {
  %t = ktn.constant dense<0.5> : tensor<40x16xf32>
  %w = ktn.constant dense<2.0> : tensor<16x24xf32>
  %u = ktn.constant dense<3.0> : tensor<24x24xf32>
  %v = ktn.constant dense<4.0> : tensor<16x4xf32>
  %x = ktn.gather %t, %i {axis = 0} : tensor<40x16xf32>, tensor<?x7xi32> -> tensor<?x7x16xf32>
  %xs = ktn.transpose %x, [1, 0, 2] : tensor<?x7x16xf32> -> tensor<7x?x16xf32>
  %h = ktn.scan (%step = %xs : tensor<7x?x16xf32>) init (%s = %h0 : tensor<?x24xf32>) {
    %0 = ktn.dot_general %step, %w contract [1] x [0] : tensor<?x16xf32>, tensor<16x24xf32> -> tensor<?x24xf32>
    %1 = ktn.dot_general %s, %u contract [1] x [0] : tensor<?x24xf32>, tensor<24x24xf32> -> tensor<?x24xf32>
    %2 = ktn.add %0, %1 : tensor<?x24xf32>
    %p = ktn.dot_general %step, %v contract [1] x [0] : tensor<?x16xf32>, tensor<16x4xf32> -> tensor<?x4xf32>
    %3 = ktn.sum %p, [1] {keepdims = true} : tensor<?x4xf32> -> tensor<?x1xf32>
    %4 = ktn.add %2, %3 : tensor<?x24xf32>, tensor<?x1xf32> -> tensor<?x24xf32>
    ktn.yield %4 : tensor<?x24xf32>
  } -> (tensor<?x24xf32>)
  return %h : tensor<?x24xf32>
}

// Not where the step has another use of them as well.
// CHECK-LABEL: func @otherUse(
// CHECK-NOT:     ktn.stored
// CHECK:         return
func.func @otherUse(%i: tensor<7x3xi32>, %h0: tensor<3x16xf32>) -> tensor<3x16xf32> {
  %t = ktn.constant dense<0.5> : tensor<40x16xf32>
  %w = ktn.constant dense<2.0> : tensor<16x16xf32>
  %x = ktn.gather %t, %i {axis = 0} : tensor<40x16xf32>, tensor<7x3xi32> -> tensor<7x3x16xf32>
  %h = ktn.scan (%step = %x : tensor<7x3x16xf32>) init (%s = %h0 : tensor<3x16xf32>) {
    %0 = ktn.dot_general %step, %w contract [1] x [0] : tensor<3x16xf32>, tensor<16x16xf32> -> tensor<3x16xf32>
    %1 = ktn.mul %0, %step : tensor<3x16xf32>
    %2 = ktn.add %1, %s : tensor<3x16xf32>
    ktn.yield %2 : tensor<3x16xf32>
  } -> (tensor<3x16xf32>)
  return %h : tensor<3x16xf32>
}

// Not where tables become too large, each or together: 6.25 KiB, and a second
// one of 5.
// SMALL-LABEL: func @large(
// SMALL-COUNT-1: ktn.stored
// SMALL-NOT:     ktn.stored
// SMALL:         return
// CHECK-LABEL: func @large(
// CHECK-COUNT-3: ktn.stored
func.func @large(%i: tensor<3xi32>) -> (tensor<3x40xf32>, tensor<3x32xf32>, tensor<3x32xf32>) {
  %t = ktn.constant dense<0.5> : tensor<40x16xf32>
  %v = ktn.constant dense<1.0> : tensor<16x40xf32>
  %w = ktn.constant dense<2.0> : tensor<16x32xf32>
  %u = ktn.constant dense<3.0> : tensor<16x32xf32>
  %x = ktn.gather %t, %i {axis = 0} : tensor<40x16xf32>, tensor<3xi32> -> tensor<3x16xf32>
  %0 = ktn.dot_general %x, %v contract [1] x [0] : tensor<3x16xf32>, tensor<16x40xf32> -> tensor<3x40xf32>
  %1 = ktn.dot_general %x, %w contract [1] x [0] : tensor<3x16xf32>, tensor<16x32xf32> -> tensor<3x32xf32>
  %2 = ktn.dot_general %x, %u contract [1] x [0] : tensor<3x16xf32>, tensor<16x32xf32> -> tensor<3x32xf32>
  return %0, %1, %2 : tensor<3x40xf32>, tensor<3x32xf32>, tensor<3x32xf32>
}

// Nor where rows have few terms, or many more columns; where the table or the
// weights are not known, or not of f32; where something else is summed over.
// CHECK-LABEL: func @others(
// CHECK-NOT:     ktn.stored
// CHECK:         return
func.func @others(%i: tensor<3xi32>, %a: tensor<40x16xf32>, %b: tensor<16x16xf32>)
    -> (tensor<3x32xf32>, tensor<3x136xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf64>, tensor<16x16xf32>) {
  %few = ktn.constant dense<0.5> : tensor<40x15xf32>
  %t = ktn.constant dense<0.5> : tensor<40x16xf32>
  %d = ktn.constant dense<0.5> : tensor<40x16xf64>
  %v = ktn.constant dense<1.0> : tensor<15x32xf32>
  %wide = ktn.constant dense<1.0> : tensor<16x136xf32>
  %w = ktn.constant dense<2.0> : tensor<16x16xf32>
  %wd = ktn.constant dense<2.0> : tensor<16x16xf64>
  %three = ktn.constant dense<2.0> : tensor<3x16xf32>
  %0 = ktn.gather %few, %i {axis = 0} : tensor<40x15xf32>, tensor<3xi32> -> tensor<3x15xf32>
  %1 = ktn.dot_general %0, %v contract [1] x [0] : tensor<3x15xf32>, tensor<15x32xf32> -> tensor<3x32xf32>
  %2 = ktn.gather %t, %i {axis = 0} : tensor<40x16xf32>, tensor<3xi32> -> tensor<3x16xf32>
  %3 = ktn.dot_general %2, %wide contract [1] x [0] : tensor<3x16xf32>, tensor<16x136xf32> -> tensor<3x136xf32>
  %4 = ktn.dot_general %2, %b contract [1] x [0] : tensor<3x16xf32>, tensor<16x16xf32> -> tensor<3x16xf32>
  %5 = ktn.gather %a, %i {axis = 0} : tensor<40x16xf32>, tensor<3xi32> -> tensor<3x16xf32>
  %6 = ktn.dot_general %5, %w contract [1] x [0] : tensor<3x16xf32>, tensor<16x16xf32> -> tensor<3x16xf32>
  %7 = ktn.gather %d, %i {axis = 0} : tensor<40x16xf64>, tensor<3xi32> -> tensor<3x16xf64>
  %8 = ktn.dot_general %7, %wd contract [1] x [0] : tensor<3x16xf64>, tensor<16x16xf64> -> tensor<3x16xf64>
  %9 = ktn.dot_general %2, %three contract [0] x [0] : tensor<3x16xf32>, tensor<3x16xf32> -> tensor<16x16xf32>
  return %1, %3, %4, %6, %8, %9 : tensor<3x32xf32>, tensor<3x136xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf64>, tensor<16x16xf32>
}

// Nor where gradients may ask for what was looked up.
// CHECK-LABEL: func @gradients(
// CHECK-NOT:     ktn.stored
// CHECK:         return
func.func @gradients(%i: tensor<3xi32>) -> tensor<3x16xf32> {
  %t = ktn.constant dense<0.5> : tensor<40x16xf32>
  %w = ktn.constant dense<2.0> : tensor<16x16xf32>
  %x = ktn.gather %t, %i {axis = 0} : tensor<40x16xf32>, tensor<3xi32> -> tensor<3x16xf32>
  %y = ktn.dot_general %x, %w contract [1] x [0] : tensor<3x16xf32>, tensor<16x16xf32> -> tensor<3x16xf32>
  %dx = ktn.gradients %y wrt %x : tensor<3x16xf32> wrt tensor<3x16xf32>
  return %dx : tensor<3x16xf32>
}

// Nor where a step would have more to do with a row than to look it up.
// CHECK-LABEL: func @turned(
// CHECK-NOT:     ktn.stored
// CHECK:         ktn.scan
// CHECK-NOT:     ktn.gather
// CHECK:         return
func.func @turned(%i: tensor<16x7xi32>, %h0: tensor<16x4xf32>) -> tensor<16x4xf32> {
  %t = ktn.constant dense<0.5> : tensor<40x16xf32>
  %w = ktn.constant dense<2.0> : tensor<16x4xf32>
  %x = ktn.gather %t, %i {axis = 0} : tensor<40x16xf32>, tensor<16x7xi32> -> tensor<16x7x16xf32>
  %xs = ktn.transpose %x, [1, 2, 0] : tensor<16x7x16xf32> -> tensor<7x16x16xf32>
  %h = ktn.scan (%step = %xs : tensor<7x16x16xf32>) init (%s = %h0 : tensor<16x4xf32>) {
    %0 = ktn.dot_general %step, %w contract [1] x [0] : tensor<16x16xf32>, tensor<16x4xf32> -> tensor<16x4xf32>
    %1 = ktn.add %0, %s : tensor<16x4xf32>
    ktn.yield %1 : tensor<16x4xf32>
  } -> (tensor<16x4xf32>)
  return %h : tensor<16x4xf32>
}
