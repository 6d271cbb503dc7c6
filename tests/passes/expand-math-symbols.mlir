// No object calls libm or a C runtime, whatever the target and the float.
// RUN: keratin-opt %s --keratin-llvm | mlir-translate --mlir-to-llvmir -o %t.ll
// RUN: llc %t.ll -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3 -filetype=obj -o %t.v3.o
// RUN: llc %t.ll -mtriple=x86_64-linux-gnu -mcpu=x86-64-v4 -filetype=obj -o %t.v4.o
// RUN: llc %t.ll -mtriple=aarch64-linux-gnu -filetype=obj -o %t.arm.o
// RUN: keratin-opt %s --ktn-expand-math="has-fma=false has-rounding=false" --keratin-llvm \
// RUN:   | mlir-translate --mlir-to-llvmir \
// RUN:   | llc -mtriple=x86_64-linux-gnu -mcpu=x86-64 -filetype=obj -o %t.v1.o
// RUN: llvm-nm -u %t.v3.o %t.v4.o %t.arm.o %t.v1.o | FileCheck %s --implicit-check-not=" U "

// CHECK: v3.o
// CHECK: v4.o
// CHECK: arm.o
// CHECK: v1.o
func.func @vectors(%x: vector<16xf32>, %y: vector<16xf32>, %b: vector<16xbf16>)
    -> (vector<16xf32>, vector<16xbf16>) {
  %0 = math.exp %x : vector<16xf32>
  %1 = math.expm1 %0 : vector<16xf32>
  %2 = math.log %1 : vector<16xf32>
  %3 = math.log1p %2 : vector<16xf32>
  %4 = math.tanh %3 : vector<16xf32>
  %5 = math.erf %4 : vector<16xf32>
  %6 = math.sin %5 : vector<16xf32>
  %7 = math.cos %6 : vector<16xf32>
  %8 = math.powf %7, %y : vector<16xf32>
  %9 = arith.remf %8, %y : vector<16xf32>
  %10 = math.floor %9 : vector<16xf32>
  %11 = math.ceil %10 : vector<16xf32>
  %12 = math.trunc %11 : vector<16xf32>
  %13 = math.roundeven %12 : vector<16xf32>
  %14 = math.rsqrt %13 : vector<16xf32>
  %15 = math.sqrt %14 : vector<16xf32>
  %16 = math.absf %15 : vector<16xf32>
  %17 = math.copysign %16, %y : vector<16xf32>
  %18 = math.fma %17, %x, %y : vector<16xf32>
  %19 = arith.maximumf %18, %y : vector<16xf32>
  %20 = arith.minimumf %19, %y : vector<16xf32>
  %21 = math.exp %b : vector<16xbf16>
  %22 = arith.addf %21, %b : vector<16xbf16>
  %23 = math.sqrt %22 : vector<16xbf16>
  return %20, %23 : vector<16xf32>, vector<16xbf16>
}

func.func @scalars(%x: f64, %y: f64, %n: i32, %b: bf16) -> (f64, bf16) {
  %0 = math.exp %x : f64
  %1 = math.expm1 %0 : f64
  %2 = math.log %1 : f64
  %3 = math.log1p %2 : f64
  %4 = math.tanh %3 : f64
  %5 = math.erf %4 : f64
  %6 = math.sin %5 : f64
  %7 = math.cos %6 : f64
  %8 = math.powf %7, %y : f64
  %9 = arith.remf %8, %y : f64
  %10 = math.fpowi %9, %n : f64, i32
  %11 = math.floor %10 : f64
  %12 = math.roundeven %11 : f64
  %13 = arith.maximumf %12, %y : f64
  %14 = arith.fptosi %13 : f64 to i64
  %15 = arith.sitofp %14 : i64 to f64
  %16 = math.tanh %b : bf16
  %17 = arith.mulf %16, %b : bf16
  %18 = arith.truncf %15 : f64 to bf16
  %19 = arith.addf %17, %18 : bf16
  return %15, %19 : f64, bf16
}
