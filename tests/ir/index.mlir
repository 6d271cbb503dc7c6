// RUN: keratin-opt %s | keratin-opt | FileCheck %s
// RUN: keratin-opt %s --emit-bytecode | keratin-opt | FileCheck %s

// CHECK-LABEL: func @gather(
// CHECK-SAME:    %[[X:.+]]: tensor<5x100x16xf32>, %[[I:.+]]: tensor<5x?xi32>)
func.func @gather(%x: tensor<5x100x16xf32>, %i: tensor<5x?xi32>) {
  // CHECK: ktn.gather %[[X]], %[[I]] {axis = 1 : i64} : tensor<5x100x16xf32>, tensor<5x?xi32> -> tensor<5x5x?x16xf32>
  %0 = ktn.gather %x, %i {axis = 1} : tensor<5x100x16xf32>, tensor<5x?xi32> -> tensor<5x5x?x16xf32>
  // CHECK: ktn.gather %[[X]], %[[I]] {axis = 1 : i64, batch_dims = 1 : i64} : tensor<5x100x16xf32>, tensor<5x?xi32> -> tensor<5x?x16xf32>
  %1 = ktn.gather %x, %i {axis = 1, batch_dims = 1} : tensor<5x100x16xf32>, tensor<5x?xi32> -> tensor<5x?x16xf32>
  return
}

// CHECK-LABEL: func @scatter_add(
// CHECK-SAME:    %[[X:.+]]: tensor<100x16xf32>, %[[I:.+]]: tensor<?xui8>, %[[U:.+]]: tensor<?x16xf32>)
func.func @scatter_add(%x: tensor<100x16xf32>, %i: tensor<?xui8>, %u: tensor<?x16xf32>) {
  // CHECK: ktn.scatter_add %[[X]], %[[I]], %[[U]] : tensor<100x16xf32>, tensor<?xui8>, tensor<?x16xf32>
  %0 = ktn.scatter_add %x, %i, %u : tensor<100x16xf32>, tensor<?xui8>, tensor<?x16xf32>
  return
}

// CHECK-LABEL: func @iota(
func.func @iota() {
  // CHECK: ktn.iota [4, 8], f32 {axis = 1 : i64} : tensor<4x8xf32>
  %0 = ktn.iota [4, 8], f32 {axis = 1} : tensor<4x8xf32>
  return
}

// CHECK-LABEL: func @iota_of_computed_extent(
func.func @iota_of_computed_extent(%n: tensor<1xi64>) {
  // CHECK: ktn.iota shape %{{.*}} : tensor<1xi64> to [?], i32 {axis = 0 : i64} : tensor<?xi32>
  %0 = ktn.iota shape %n : tensor<1xi64> to [?], i32 {axis = 0} : tensor<?xi32>
  return
}

// CHECK-LABEL: func @sparse(
func.func @sparse(%v: tensor<7xf32>, %r: tensor<7xi32>, %c: tensor<7xi32>) {
  // CHECK: ktn.sparse %{{.*}} at %{{.*}}, %{{.*}} to [100, 50] : tensor<7xf32> at tensor<7xi32>, tensor<7xi32> -> tensor<100x50xf32>
  %0 = ktn.sparse %v at %r, %c to [100, 50] : tensor<7xf32> at tensor<7xi32>, tensor<7xi32> -> tensor<100x50xf32>
  return
}
