// RUN: keratin-opt %s --ktn-round-to-bf16 | FileCheck %s

// CHECK-LABEL: func @double(
// CHECK:         %[[SINGLE:.+]] = arith.truncf {{.*}} : vector<8xf64> to vector<8xf32>
// CHECK:         arith.truncf %[[SINGLE]] : vector<8xf32> to vector<8xbf16>
func.func @double(%x: vector<8xf64>) -> vector<8xbf16> {
  %0 = arith.truncf %x : vector<8xf64> to vector<8xbf16>
  return %0 : vector<8xbf16>
}

// CHECK-LABEL: func @integer(
// CHECK:         %[[SINGLE:.+]] = arith.sitofp {{.*}} : i64 to f32
// CHECK:         arith.truncf %[[SINGLE]] : f32 to bf16
func.func @integer(%x: i64) -> bf16 {
  %0 = arith.sitofp %x : i64 to bf16
  return %0 : bf16
}

// A float rounds once.
// CHECK-LABEL: func @single(
// CHECK:         arith.truncf {{.*}} : f32 to bf16
// CHECK-NEXT:    return
func.func @single(%x: f32) -> bf16 {
  %0 = arith.truncf %x : f32 to bf16
  return %0 : bf16
}
