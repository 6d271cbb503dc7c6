// RUN: keratin-opt %s --ktn-prepare-memrefs --split-input-file --verify-diagnostics | FileCheck %s

// A strided copy is loops, one a dimension, the outer one as long as the batch.
// CHECK-LABEL: func @strided(
// CHECK-SAME:    %[[FROM:.+]]: memref<?x8xf32, {{.+}}>, %[[TO:.+]]: memref<?x8xf32>)
// CHECK:         %[[BATCH:.+]] = memref.dim %[[FROM]]
// CHECK:         scf.for {{.*}} to %[[BATCH]]
// CHECK:         scf.for
// CHECK:         memref.store %{{.+}}, %[[TO]]
// CHECK-NOT:     memref.copy
func.func @strided(%from: memref<?x8xf32, strided<[16, 1]>>, %to: memref<?x8xf32>) {
  memref.copy %from, %to : memref<?x8xf32, strided<[16, 1]>> to memref<?x8xf32>
  return
}

// -----

// A dense copy stays: it is one memcpy.
// CHECK-LABEL: func @dense(
// CHECK:         memref.copy
func.func @dense(%from: memref<?x8xf32>, %to: memref<?x8xf32>) {
  memref.copy %from, %to : memref<?x8xf32> to memref<?x8xf32>
  return
}

// -----

func.func @allocates() {
  // expected-error@+1 {{would allocate while the model runs}}
  %0 = memref.alloc() : memref<4xf32>
  return
}
