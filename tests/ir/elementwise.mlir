// RUN: keratin-opt %s | keratin-opt | FileCheck %s
// RUN: keratin-opt %s --emit-bytecode | keratin-opt | FileCheck %s

// One type stands for operands and result when they are the same.
// CHECK-LABEL: func @unary(
// CHECK-SAME:    %[[X:.+]]: tensor<?x4xf32>)
func.func @unary(%x: tensor<?x4xf32>) {
  // CHECK: ktn.neg %[[X]] : tensor<?x4xf32>
  %0 = ktn.neg %x : tensor<?x4xf32>
  // CHECK: ktn.abs %[[X]] : tensor<?x4xf32>
  %1 = ktn.abs %x : tensor<?x4xf32>
  // CHECK: ktn.sign %[[X]] : tensor<?x4xf32>
  %2 = ktn.sign %x : tensor<?x4xf32>
  // CHECK: ktn.exp %[[X]] : tensor<?x4xf32>
  %3 = ktn.exp %x : tensor<?x4xf32>
  // CHECK: ktn.expm1 %[[X]] : tensor<?x4xf32>
  %4 = ktn.expm1 %x : tensor<?x4xf32>
  // CHECK: ktn.log %[[X]] : tensor<?x4xf32>
  %5 = ktn.log %x : tensor<?x4xf32>
  // CHECK: ktn.log1p %[[X]] : tensor<?x4xf32>
  %6 = ktn.log1p %x : tensor<?x4xf32>
  // CHECK: ktn.sqrt %[[X]] : tensor<?x4xf32>
  %7 = ktn.sqrt %x : tensor<?x4xf32>
  // CHECK: ktn.rsqrt %[[X]] : tensor<?x4xf32>
  %8 = ktn.rsqrt %x : tensor<?x4xf32>
  // CHECK: ktn.sin %[[X]] : tensor<?x4xf32>
  %9 = ktn.sin %x : tensor<?x4xf32>
  // CHECK: ktn.cos %[[X]] : tensor<?x4xf32>
  %10 = ktn.cos %x : tensor<?x4xf32>
  // CHECK: ktn.tanh %[[X]] : tensor<?x4xf32>
  %11 = ktn.tanh %x : tensor<?x4xf32>
  // CHECK: ktn.sigmoid %[[X]] : tensor<?x4xf32>
  %12 = ktn.sigmoid %x : tensor<?x4xf32>
  // CHECK: ktn.erf %[[X]] : tensor<?x4xf32>
  %13 = ktn.erf %x : tensor<?x4xf32>
  // CHECK: ktn.floor %[[X]] : tensor<?x4xf32>
  %14 = ktn.floor %x : tensor<?x4xf32>
  // CHECK: ktn.ceil %[[X]] : tensor<?x4xf32>
  %15 = ktn.ceil %x : tensor<?x4xf32>
  // CHECK: ktn.round %[[X]] : tensor<?x4xf32>
  %16 = ktn.round %x : tensor<?x4xf32>
  // CHECK: ktn.relu %[[X]] : tensor<?x4xf32>
  %17 = ktn.relu %x : tensor<?x4xf32>
  return
}

// CHECK-LABEL: func @binary(
// CHECK-SAME:    %[[A:.+]]: tensor<2x4xf32>, %[[B:.+]]: tensor<4xf32>)
func.func @binary(%a: tensor<2x4xf32>, %b: tensor<4xf32>) {
  // CHECK: ktn.add %[[A]], %[[A]] : tensor<2x4xf32>{{$}}
  %0 = ktn.add %a, %a : tensor<2x4xf32>
  // CHECK: ktn.add %[[A]], %[[B]] : tensor<2x4xf32>, tensor<4xf32> -> tensor<2x4xf32>
  %1 = ktn.add %a, %b : tensor<2x4xf32>, tensor<4xf32> -> tensor<2x4xf32>
  // CHECK: ktn.sub %[[A]], %[[A]] : tensor<2x4xf32>
  %2 = ktn.sub %a, %a : tensor<2x4xf32>
  // CHECK: ktn.mul %[[A]], %[[A]] : tensor<2x4xf32>
  %3 = ktn.mul %a, %a : tensor<2x4xf32>
  // CHECK: ktn.div %[[A]], %[[A]] : tensor<2x4xf32>
  %4 = ktn.div %a, %a : tensor<2x4xf32>
  // CHECK: ktn.floordiv %[[A]], %[[A]] : tensor<2x4xf32>
  %5 = ktn.floordiv %a, %a : tensor<2x4xf32>
  // CHECK: ktn.mod %[[A]], %[[A]] : tensor<2x4xf32>
  %6 = ktn.mod %a, %a : tensor<2x4xf32>
  // CHECK: ktn.pow %[[A]], %[[A]] : tensor<2x4xf32>
  %7 = ktn.pow %a, %a : tensor<2x4xf32>
  // CHECK: ktn.maximum %[[A]], %[[A]] : tensor<2x4xf32>
  %8 = ktn.maximum %a, %a : tensor<2x4xf32>
  // CHECK: ktn.minimum %[[A]], %[[A]] : tensor<2x4xf32>
  %9 = ktn.minimum %a, %a : tensor<2x4xf32>
  return
}

// CHECK-LABEL: func @logical(
// CHECK-SAME:    %[[P:.+]]: tensor<4xi1>)
func.func @logical(%p: tensor<4xi1>) {
  // CHECK: ktn.logical_not %[[P]] : tensor<4xi1>
  %0 = ktn.logical_not %p : tensor<4xi1>
  // CHECK: ktn.logical_and %[[P]], %[[P]] : tensor<4xi1>
  %1 = ktn.logical_and %p, %p : tensor<4xi1>
  // CHECK: ktn.logical_or %[[P]], %[[P]] : tensor<4xi1>
  %2 = ktn.logical_or %p, %p : tensor<4xi1>
  // CHECK: ktn.logical_xor %[[P]], %[[P]] : tensor<4xi1>
  %3 = ktn.logical_xor %p, %p : tensor<4xi1>
  return
}

// Comparisons of any element type give i1.
// CHECK-LABEL: func @comparisons(
// CHECK-SAME:    %[[A:.+]]: tensor<4xi32>, %[[B:.+]]: tensor<i32>)
func.func @comparisons(%a: tensor<4xi32>, %b: tensor<i32>) {
  // CHECK: ktn.equal %[[A]], %[[B]] : tensor<4xi32>, tensor<i32> -> tensor<4xi1>
  %0 = ktn.equal %a, %b : tensor<4xi32>, tensor<i32> -> tensor<4xi1>
  // CHECK: ktn.not_equal %[[A]], %[[B]] : tensor<4xi32>, tensor<i32> -> tensor<4xi1>
  %1 = ktn.not_equal %a, %b : tensor<4xi32>, tensor<i32> -> tensor<4xi1>
  // CHECK: ktn.less %[[A]], %[[B]] : tensor<4xi32>, tensor<i32> -> tensor<4xi1>
  %2 = ktn.less %a, %b : tensor<4xi32>, tensor<i32> -> tensor<4xi1>
  // CHECK: ktn.less_equal %[[A]], %[[B]] : tensor<4xi32>, tensor<i32> -> tensor<4xi1>
  %3 = ktn.less_equal %a, %b : tensor<4xi32>, tensor<i32> -> tensor<4xi1>
  // CHECK: ktn.greater %[[A]], %[[B]] : tensor<4xi32>, tensor<i32> -> tensor<4xi1>
  %4 = ktn.greater %a, %b : tensor<4xi32>, tensor<i32> -> tensor<4xi1>
  // CHECK: ktn.greater_equal %[[A]], %[[B]] : tensor<4xi32>, tensor<i32> -> tensor<4xi1>
  %5 = ktn.greater_equal %a, %b : tensor<4xi32>, tensor<i32> -> tensor<4xi1>
  return
}

// ui8 is a storage type: it can be chosen between and converted.
// CHECK-LABEL: func @select_and_cast(
// CHECK-SAME:    %[[P:.+]]: tensor<4xi1>, %[[A:.+]]: tensor<4xui8>)
func.func @select_and_cast(%p: tensor<4xi1>, %a: tensor<4xui8>) {
  // CHECK: ktn.select %[[P]], %[[A]], %[[A]] : tensor<4xi1>, tensor<4xui8>, tensor<4xui8> -> tensor<4xui8>
  %0 = ktn.select %p, %a, %a : tensor<4xi1>, tensor<4xui8>, tensor<4xui8> -> tensor<4xui8>
  // CHECK: ktn.cast %[[A]] to bf16 : tensor<4xui8> -> tensor<4xbf16>
  %1 = ktn.cast %a to bf16 : tensor<4xui8> -> tensor<4xbf16>
  return
}

// `?` against 1 stays; against another extent it is that extent.
// CHECK-LABEL: func @broadcast_unknown(
func.func @broadcast_unknown(%a: tensor<?x1xf32>, %b: tensor<1x?xf32>, %c: tensor<3x5xf32>) {
  // CHECK: -> tensor<?x?xf32>
  %0 = ktn.add %a, %b : tensor<?x1xf32>, tensor<1x?xf32> -> tensor<?x?xf32>
  // CHECK: -> tensor<3x5xf32>
  %1 = ktn.add %0, %c : tensor<?x?xf32>, tensor<3x5xf32> -> tensor<3x5xf32>
  return
}
