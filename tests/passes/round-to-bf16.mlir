// RUN: keratin-opt %s --ktn-round-to-bf16 | FileCheck %s --check-prefixes=CHECK,NATIVE
// RUN: keratin-opt %s --ktn-round-to-bf16=expand=true | FileCheck %s --check-prefixes=CHECK,EXPAND --implicit-check-not=truncf

// CHECK-LABEL: func @double(
// CHECK:         %[[SINGLE:.+]] = arith.truncf {{.*}} : vector<8xf64> to vector<8xf32>
// NATIVE:        arith.truncf %[[SINGLE]] : vector<8xf32> to vector<8xbf16>
// EXPAND:        arith.bitcast %[[SINGLE]] : vector<8xf32> to vector<8xi32>
func.func @double(%x: vector<8xf64>) -> vector<8xbf16> {
  %0 = arith.truncf %x : vector<8xf64> to vector<8xbf16>
  return %0 : vector<8xbf16>
}

// CHECK-LABEL: func @integer(
// CHECK:         %[[SINGLE:.+]] = arith.sitofp {{.*}} : i64 to f32
// NATIVE:        arith.truncf %[[SINGLE]] : f32 to bf16
// EXPAND:        arith.bitcast %[[SINGLE]] : f32 to i32
func.func @integer(%x: i64) -> bf16 {
  %0 = arith.sitofp %x : i64 to bf16
  return %0 : bf16
}

// A float rounds once; numbers of bf16 are bits to the end.
// CHECK-LABEL: func @single(
// NATIVE:        arith.truncf {{.*}} : f32 to bf16
// EXPAND:        arith.select {{.*}} : i32
// EXPAND:        %[[HALF:.+]] = arith.trunci {{.*}} : i32 to i16
// EXPAND:        arith.bitcast %[[HALF]] : i16 to bf16
// CHECK-NEXT:    return
func.func @single(%x: f32) -> bf16 {
  %0 = arith.truncf %x : f32 to bf16
  return %0 : bf16
}
