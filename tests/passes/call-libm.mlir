// RUN: keratin-opt %s --ktn-call-libm | FileCheck %s

// expm1 is not e^x - 1.
// CHECK-LABEL: func @single(
// CHECK:         call @expm1f(
// CHECK-NOT:     arith.subf
func.func @single(%x: f32) -> f32 {
  %0 = math.expm1 %x : f32
  return %0 : f32
}

// CHECK-LABEL: func @double(
// CHECK:         call @pow(
func.func @double(%x: f64) -> f64 {
  %0 = math.powf %x, %x : f64
  return %0 : f64
}

// Instructions are left to the target.
// CHECK-LABEL: func @instruction(
// CHECK:         math.floor
func.func @instruction(%x: f32) -> f32 {
  %0 = math.floor %x : f32
  return %0 : f32
}
