// RUN: keratin-opt %s | keratin-opt | FileCheck %s
// RUN: keratin-opt %s --emit-bytecode | keratin-opt | FileCheck %s

// CHECK: ktn.variable @w : tensor<4xf32> = dense<0.000000e+00> : tensor<4xf32>
ktn.variable @w : tensor<4xf32> = dense<0.0> : tensor<4xf32>
// A weight is a blob outside of the text.
// CHECK: ktn.variable @k : tensor<2xf32> = dense_resource<k> : tensor<2xf32>
ktn.variable @k : tensor<2xf32> = dense_resource<k> : tensor<2xf32>

// CHECK-LABEL: func @variables(
func.func @variables() {
  // CHECK: %[[W:.+]] = ktn.read @w : tensor<4xf32>
  %w = ktn.read @w : tensor<4xf32>
  // CHECK: %[[N:.+]] = ktn.assign @w, %[[W]] : tensor<4xf32>
  %n = ktn.assign @w, %w : tensor<4xf32>
  // CHECK: ktn.after %[[W]], %[[N]] : tensor<4xf32>, tensor<4xf32>
  %a = ktn.after %w, %n : tensor<4xf32>, tensor<4xf32>
  return
}

// An extent in which the choices differ is open.
// CHECK-LABEL: func @choose(
// CHECK-SAME:    %[[C:.+]]: tensor<i1>, %[[A:.+]]: tensor<2x3xf32>, %[[B:.+]]: tensor<4x3xf32>)
func.func @choose(%c: tensor<i1>, %a: tensor<2x3xf32>, %b: tensor<4x3xf32>) {
  // CHECK: ktn.choose %[[C]], %[[A]], %[[B]] : tensor<i1>, tensor<2x3xf32>, tensor<4x3xf32> -> tensor<?x3xf32>
  %y = ktn.choose %c, %a, %b : tensor<i1>, tensor<2x3xf32>, tensor<4x3xf32> -> tensor<?x3xf32>
  return
}

// CHECK-LABEL: func @values(
func.func @values() {
  // CHECK: %[[X:.+]] = ktn.placeholder "image" : tensor<?x4xf32>
  %x = ktn.placeholder "image" : tensor<?x4xf32>
  // CHECK: %[[C:.+]] = ktn.constant dense<1.000000e+00> : tensor<4xf32>
  %c = ktn.constant dense<1.0> : tensor<4xf32>
  // CHECK: ktn.constant dense_resource<k> : tensor<2xf32>
  %k = ktn.constant dense_resource<k> : tensor<2xf32>
  // CHECK: ktn.training_phase : tensor<i1>
  %t = ktn.training_phase : tensor<i1>
  // CHECK: %[[S:.+]] = ktn.stop_gradient %[[X]] : tensor<?x4xf32>
  %s = ktn.stop_gradient %x : tensor<?x4xf32>
  // CHECK: ktn.gradients %[[S]] wrt %[[X]], %[[C]] : tensor<?x4xf32> wrt tensor<?x4xf32>, tensor<4xf32>
  %g:2 = ktn.gradients %s wrt %x, %c : tensor<?x4xf32> wrt tensor<?x4xf32>, tensor<4xf32>
  return
}

// The body sees slices, states and values from outside.
// CHECK-LABEL: func @scan(
// CHECK-SAME:    %[[XS:.+]]: tensor<10x?x8xf32>, %[[H0:.+]]: tensor<?x8xf32>, %[[W:.+]]: tensor<8xf32>)
func.func @scan(%xs: tensor<10x?x8xf32>, %h0: tensor<?x8xf32>, %w: tensor<8xf32>) {
  // CHECK:      ktn.scan (%[[X:.+]] = %[[XS]] : tensor<10x?x8xf32>) init (%[[H:.+]] = %[[H0]] : tensor<?x8xf32>) reverse {
  // CHECK-NEXT:   %[[WX:.+]] = ktn.mul %[[X]], %[[W]]
  // CHECK-NEXT:   %[[N:.+]] = ktn.add %[[WX]], %[[H]]
  // CHECK-NEXT:   ktn.yield %[[N]], %[[WX]] : tensor<?x8xf32>, tensor<?x8xf32>
  // CHECK-NEXT: } -> (tensor<?x8xf32>, tensor<10x?x8xf32>)
  %h, %ys = ktn.scan (%x = %xs : tensor<10x?x8xf32>) init (%s = %h0 : tensor<?x8xf32>) reverse {
    %wx = ktn.mul %x, %w : tensor<?x8xf32>, tensor<8xf32> -> tensor<?x8xf32>
    %n = ktn.add %wx, %s : tensor<?x8xf32>
    ktn.yield %n, %wx : tensor<?x8xf32>, tensor<?x8xf32>
  } -> (tensor<?x8xf32>, tensor<10x?x8xf32>)
  return
}

// CHECK-LABEL: func @scan_without_xs(
func.func @scan_without_xs(%h0: tensor<f32>) {
  // CHECK: ktn.scan () init (%{{.+}} = %{{.+}} : tensor<f32>) length 5 attributes {unroll} {
  // CHECK: } -> tensor<f32>
  %h = ktn.scan () init (%s = %h0 : tensor<f32>) length 5 attributes {unroll} {
    %n = ktn.exp %s : tensor<f32>
    ktn.yield %n : tensor<f32>
  } -> tensor<f32>
  return
}

{-#
  dialect_resources: {
    builtin: {
      k: "0x040000000000803F00000040"
    }
  }
#-}
