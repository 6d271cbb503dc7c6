// RUN: keratin-opt %s --ktn-reduce-lanes | FileCheck %s

// Halves are added until one lane is left, then the start value.
// CHECK-LABEL: func @sum(
// CHECK-SAME:    %{{.+}}: vector<4xf32>, %[[START:.+]]: f32)
// CHECK:         arith.addf {{.*}} : vector<2xf32>
// CHECK:         arith.addf {{.*}} : vector<1xf32>
// CHECK:         %[[SUM:.+]] = vector.extract
// CHECK:         arith.addf %[[SUM]], %[[START]]
func.func @sum(%x: vector<4xf32>, %start: f32) -> f32 {
  %0 = vector.reduction <add>, %x, %start : vector<4xf32> into f32
  return %0 : f32
}

// Lanes beyond a power of two are reduced by themselves.
// CHECK-LABEL: func @odd(
// CHECK:         arith.maximumf {{.*}} : vector<1xf32>
// CHECK:         arith.maximumf {{.*}} : vector<4xf32>
// CHECK-NOT:     vector.reduction
func.func @odd(%x: vector<10xf32>) -> f32 {
  %0 = vector.reduction <maximumf>, %x : vector<10xf32> into f32
  return %0 : f32
}
