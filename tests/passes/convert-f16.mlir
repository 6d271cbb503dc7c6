// RUN: keratin-opt %s --ktn-convert-f16 | FileCheck %s --check-prefixes=CHECK,NATIVE
// RUN: keratin-opt %s --ktn-convert-f16=expand=true | FileCheck %s --check-prefixes=CHECK,EXPAND --implicit-check-not=": f16 to f32" --implicit-check-not=": f32 to f16"

// CHECK-LABEL: func @widen(
// NATIVE-NEXT:   arith.extf %{{.+}} : vector<8xf16> to vector<8xf32>
// EXPAND:        arith.bitcast %{{.+}} : vector<8xf16> to vector<8xi16>
// EXPAND-NOT:    extf
// EXPAND:        arith.bitcast %{{.+}} : vector<8xi32> to vector<8xf32>
// CHECK:         return
func.func @widen(%x: vector<8xf16>) -> vector<8xf32> {
  %0 = arith.extf %x : vector<8xf16> to vector<8xf32>
  return %0 : vector<8xf32>
}

// CHECK-LABEL: func @narrow(
// NATIVE-NEXT:   arith.truncf %{{.+}} : f32 to f16
// EXPAND:        arith.bitcast %{{.+}} : f32 to i32
// EXPAND-NOT:    truncf
// EXPAND:        arith.bitcast %{{.+}} : i16 to f16
// CHECK:         return
func.func @narrow(%x: f32) -> f16 {
  %0 = arith.truncf %x : f32 to f16
  return %0 : f16
}

// CHECK-LABEL: func @from_double(
// CHECK:         arith.truncf %{{.+}} : vector<4xf64> to vector<4xf32>
// An even number that is not exact becomes its neighbour.
// CHECK:         arith.extf %{{.+}} : vector<4xf32> to vector<4xf64>
// CHECK:         arith.cmpf olt
// NATIVE:        arith.truncf %{{.+}} : vector<4xf32> to vector<4xf16>
// EXPAND:        arith.bitcast %{{.+}} : vector<4xi16> to vector<4xf16>
// CHECK:         return
func.func @from_double(%x: vector<4xf64>) -> vector<4xf16> {
  %0 = arith.truncf %x : vector<4xf64> to vector<4xf16>
  return %0 : vector<4xf16>
}

// CHECK-LABEL: func @to_double(
// NATIVE-NEXT:   arith.extf %{{.+}} : f16 to f32
// EXPAND:        arith.bitcast %{{.+}} : f16 to i16
// CHECK:         arith.extf %{{.+}} : f32 to f64
// CHECK-NEXT:    return
func.func @to_double(%x: f16) -> f64 {
  %0 = arith.extf %x : f16 to f64
  return %0 : f64
}

// Other types stay.
// CHECK-LABEL: func @others(
// CHECK-NEXT:    arith.truncf %{{.+}} : f64 to f32
// CHECK-NEXT:    arith.truncf %{{.+}} : f32 to bf16
// CHECK-NEXT:    arith.extf %{{.+}} : bf16 to f32
// CHECK-NEXT:    return
func.func @others(%x: f64) -> f32 {
  %0 = arith.truncf %x : f64 to f32
  %1 = arith.truncf %0 : f32 to bf16
  %2 = arith.extf %1 : bf16 to f32
  return %2 : f32
}
