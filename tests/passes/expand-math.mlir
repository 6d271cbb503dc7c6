// RUN: keratin-opt %s --ktn-expand-math --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-expand-math="has-fma=false has-rounding=false" --split-input-file | FileCheck %s --check-prefix=PLAIN
// RUN: keratin-opt %s --ktn-expand-math="has-avx512" --split-input-file | FileCheck %s --check-prefix=AVX512
// RUN: keratin-opt %s --ktn-expand-math="has-avx512 divides" --split-input-file | FileCheck %s --check-prefix=DIVIDES
// RUN: keratin-opt %s --ktn-expand-math="permutes" --split-input-file | FileCheck %s --check-prefix=PERMUTES

// A vector keeps its width, and no op of libm is left.
// CHECK-LABEL: func @functions(
// CHECK-NOT:     math.{{(exp|log|tanh|erf|sin|cos|pow)}}
// CHECK:         math.fma {{.*}} : vector<24xf32>
// CHECK-NOT:     math.{{(exp|log|tanh|erf|sin|cos|pow)}}
// CHECK:         return
// PLAIN-LABEL: func @functions(
// PLAIN-NOT:     math.
// PLAIN:         return
func.func @functions(%x: vector<24xf32>) -> vector<24xf32> {
  %0 = math.exp %x : vector<24xf32>
  %1 = math.expm1 %0 : vector<24xf32>
  %2 = math.log %1 : vector<24xf32>
  %3 = math.log1p %2 : vector<24xf32>
  %4 = math.tanh %3 : vector<24xf32>
  %5 = math.erf %4 : vector<24xf32>
  %6 = math.sin %5 : vector<24xf32>
  %7 = math.cos %6 : vector<24xf32>
  %8 = math.powf %7, %x : vector<24xf32>
  return %8 : vector<24xf32>
}

// -----

// Scalars take the same sequence.
// CHECK-LABEL: func @scalar(
// CHECK-NOT:     math.exp
// CHECK:         math.fma {{.*}} : f32
func.func @scalar(%x: f32) -> f32 {
  %0 = math.exp %x : f32
  return %0 : f32
}

// -----

// Doubles have sequences of their own.
// CHECK-LABEL: func @double(
// CHECK-NOT:     math.tanh
// CHECK:         math.fma {{.*}} : vector<4xf64>
func.func @double(%x: vector<4xf64>) -> vector<4xf64> {
  %0 = math.tanh %x : vector<4xf64>
  return %0 : vector<4xf64>
}

// -----

// Narrow floats are computed in f32 and rounded once.
// CHECK-LABEL: func @half(
// CHECK:         arith.extf {{.*}} : vector<8xf16> to vector<8xf32>
// CHECK:         arith.truncf {{.*}} : vector<8xf32> to vector<8xf16>
// CHECK-NOT:     truncf
func.func @half(%x: vector<8xf16>) -> vector<8xf16> {
  %0 = math.log %x : vector<8xf16>
  return %0 : vector<8xf16>
}

// -----

// An exp that may flush scales once, by one shifted exponent, and its reduced
// argument is one fused operation: that, the exponent's and a polynomial of
// degree 5.
// CHECK-LABEL: func @flushed(
// CHECK-COUNT-2: math.fma
// CHECK-NOT:     math.fma
// CHECK-COUNT-1: arith.shli
// CHECK-COUNT-5: math.fma
// CHECK-NOT:     {{arith.shli|math.fma}}
// By eighths of degree 3.
// PERMUTES-LABEL: func @flushed(
// PERMUTES-COUNT-2: llvm.call_intrinsic "llvm.x86.avx2.permps"
// PERMUTES-COUNT-1: arith.shli
// PERMUTES-COUNT-3: math.fma
// PERMUTES-NOT:     {{arith.shli|math.fma}}
// PERMUTES:         return
func.func @flushed(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.exp %x {ktn.flush} : vector<16xf32>
  return %0 : vector<16xf32>
}

// -----

// A maximum that may leave NaN out is one choice.
// CHECK-LABEL: func @skipped_nan(
// CHECK:         arith.cmpf ogt
// CHECK-NOT:     arith.cmpf
// CHECK:         arith.select
// CHECK-NOT:     arith.select
func.func @skipped_nan(%x: vector<16xf32>, %y: vector<16xf32>) -> vector<16xf32> {
  %0 = arith.maximumf %x, %y {ktn.skip_nan} : vector<16xf32>
  return %0 : vector<16xf32>
}

// -----

// A remainder, exact whatever the quotient, loops until no lane has more.
// CHECK-LABEL: func @remainder(
// CHECK-NOT:     arith.remf
// CHECK:         scf.while
// CHECK:         vector.reduction <or>
func.func @remainder(%x: vector<8xf32>, %y: vector<8xf32>) -> vector<8xf32> {
  %0 = arith.remf %x, %y : vector<8xf32>
  return %0 : vector<8xf32>
}

// -----

// Integer exponents go the way of float ones.
// CHECK-LABEL: func @integer_power(
// CHECK:         arith.sitofp {{.*}} : i32 to f64
// CHECK-NOT:     math.fpowi
func.func @integer_power(%x: f32, %n: i32) -> f32 {
  %0 = math.fpowi %x, %n : f32, i32
  return %0 : f32
}

// -----

// What a target has as an instruction stays; the others do it in arithmetic.
// CHECK-LABEL: func @instructions(
// CHECK:         math.floor
// CHECK:         math.roundeven
// CHECK:         math.sqrt
// PLAIN-LABEL: func @instructions(
// PLAIN-NOT:     math.{{(floor|roundeven)}}
// PLAIN:         math.sqrt
func.func @instructions(%x: vector<8xf32>) -> vector<8xf32> {
  %0 = math.floor %x : vector<8xf32>
  %1 = math.roundeven %0 : vector<8xf32>
  %2 = math.sqrt %1 : vector<8xf32>
  return %2 : vector<8xf32>
}

// -----

// With a constant a maximum is one comparison, since only %x can be NaN.
// CHECK-LABEL: func @relu(
// CHECK-SAME:    %[[X:.+]]: vector<16xf32>)
// CHECK:         %[[BETTER:.+]] = arith.cmpf ogt, %[[ZERO:.+]], %[[X]]
// CHECK-NEXT:    %[[Y:.+]] = arith.select %[[BETTER]], %[[ZERO]], %[[X]]
// CHECK-NEXT:    return %[[Y]]
func.func @relu(%x: vector<16xf32>) -> vector<16xf32> {
  %zero = arith.constant dense<0.0> : vector<16xf32>
  %0 = arith.maximumf %x, %zero : vector<16xf32>
  return %0 : vector<16xf32>
}

// Without one a NaN of the first operand has its own test.
// CHECK-LABEL: func @minimum(
// CHECK-SAME:    %[[X:.+]]: f32, %[[Y:.+]]: f32)
// CHECK:         %[[NUMBER:.+]] = arith.select %{{.+}}, %[[X]], %[[Y]]
// CHECK:         %[[NAN:.+]] = arith.cmpf uno, %[[X]], %[[X]]
// CHECK:         arith.select %[[NAN]], %{{.+}}, %[[NUMBER]]
func.func @minimum(%x: f32, %y: f32) -> f32 {
  %0 = arith.minimumf %x, %y : f32
  return %0 : f32
}

// -----

// The exp of a sigmoid has no positive argument: no upper clamp.
// CHECK-LABEL: func @negated_magnitude(
// CHECK-COUNT-1: arith.cmpf
// CHECK-NOT:     arith.cmpf
func.func @negated_magnitude(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.absf %x : vector<16xf32>
  %1 = arith.negf %0 : vector<16xf32>
  %2 = math.exp %1 : vector<16xf32>
  return %2 : vector<16xf32>
}

// A sigmoid of f32 chooses nothing and divides a constant, once. With AVX-512
// products do that.
// CHECK-LABEL:   func @sigmoid(
// CHECK-NOT:       math.exp
// CHECK:           arith.divf %cst
// CHECK-NOT:       arith.divf
// CHECK:           return
// AVX512-LABEL:  func @sigmoid(
// AVX512-NOT:      arith.divf
// AVX512:          return
func.func @sigmoid(%x: vector<16xf32>) -> vector<16xf32> {
  %nought = arith.constant dense<0.0> : vector<16xf32>
  %one = arith.constant dense<1.0> : vector<16xf32>
  %0 = math.absf %x : vector<16xf32>
  %1 = arith.negf %0 : vector<16xf32>
  %2 = math.exp %1 : vector<16xf32>
  %3 = arith.cmpf olt, %x, %nought : vector<16xf32>
  %4 = arith.select %3, %2, %one : vector<16xi1>, vector<16xf32>
  %5 = arith.addf %2, %one : vector<16xf32>
  %6 = arith.divf %4, %5 : vector<16xf32>
  return %6 : vector<16xf32>
}

// A tanh of f32 has one part of ln 2 and no product but r^2: 8 fused operations.
// CHECK-LABEL: func @tanh(
// CHECK-COUNT-1: arith.mulf
// CHECK-NOT:     arith.mulf
// CHECK-COUNT-6: math.fma
// CHECK-NOT:     math.fma
// CHECK:         arith.divf
func.func @tanh(%x: vector<8xf32>) -> vector<8xf32> {
  %y = math.tanh %x : vector<8xf32>
  return %y : vector<8xf32>
}

// Times its argument it needs no product of its own, and the exponent takes what
// is rounded of x log2 e.
// CHECK-LABEL: func @swish(
// CHECK:         arith.constant dense<8.730000e+01>
// CHECK-NOT:     arith.mulf
// CHECK:         %[[Y:.+]] = arith.divf
// CHECK-NEXT:    return %[[Y]]
// AVX512-LABEL: func @swish(
// AVX512:         llvm.call_intrinsic "llvm.x86.avx512.mask.reduce.ps.512"(%[[T:[0-9]+]],
// AVX512:         llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"(%{{[0-9]+}}, %[[T]],
// AVX512:         llvm.call_intrinsic "llvm.x86.avx512.rcp14.ps.512"
// AVX512-COUNT-1: arith.mulf
// AVX512-NOT:     arith.mulf
// AVX512:         return
// DIVIDES-LABEL: func @swish(
// DIVIDES:         arith.constant dense<-8.730000e+01>
// DIVIDES:         llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"
// DIVIDES-NOT:     rcp14
// DIVIDES:         %[[Y:.+]] = arith.divf
// DIVIDES-NEXT:    return %[[Y]]
// Eighths of an exponent are two steps of a polynomial less, and chosen for eight
// lanes at a time.
// PERMUTES-LABEL: func @swish(
// PERMUTES:         arith.constant dense<8.730000e+01>
// PERMUTES-COUNT-2: llvm.call_intrinsic "llvm.x86.avx2.permps"({{.+}}) : (vector<8xf32>, vector<8xi32>) -> vector<8xf32>
// PERMUTES-COUNT-4: math.fma
// PERMUTES-NOT:     math.fma
// PERMUTES:         %[[Y:.+]] = arith.divf
// PERMUTES-NEXT:    return %[[Y]]
func.func @swish(%x: vector<16xf32>) -> vector<16xf32> {
  %nought = arith.constant dense<0.0> : vector<16xf32>
  %one = arith.constant dense<1.0> : vector<16xf32>
  %0 = math.absf %x : vector<16xf32>
  %1 = arith.negf %0 : vector<16xf32>
  %2 = math.exp %1 : vector<16xf32>
  %3 = arith.cmpf olt, %x, %nought : vector<16xf32>
  %4 = arith.select %3, %2, %one : vector<16xi1>, vector<16xf32>
  %5 = arith.addf %2, %one : vector<16xf32>
  %6 = arith.divf %4, %5 : vector<16xf32>
  %7 = arith.mulf %6, %x : vector<16xf32>
  return %7 : vector<16xf32>
}

// AVX-512 multiplies by 2^k and finds reciprocals: of 16 lanes at once.
// AVX512-LABEL: func @wide_exp(
// AVX512-COUNT-2: llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"({{.+}}) : (vector<16xf32>, vector<16xf32>, vector<16xf32>, i16, i32) -> vector<16xf32>
// AVX512-NOT:     llvm.call_intrinsic
func.func @wide_exp(%x: vector<32xf32>) -> vector<32xf32> {
  %0 = math.exp %x : vector<32xf32>
  return %0 : vector<32xf32>
}

// AVX512-LABEL: func @scalar_tanh(
// AVX512:         %[[WIDE:.+]] = vector.broadcast %{{.+}} : f32 to vector<16xf32>
// AVX512:         llvm.call_intrinsic "llvm.x86.avx512.rcp14.ps.512"(%[[WIDE]],
// AVX512:         vector.extract
// DIVIDES-LABEL: func @scalar_tanh(
// DIVIDES-NOT:     rcp14
// DIVIDES:         arith.divf
// DIVIDES:         return
func.func @scalar_tanh(%x: f32) -> f32 {
  %0 = math.tanh %x : f32
  return %0 : f32
}

// Of f32, that is.
// AVX512-LABEL: func @wide_exp_of_f64(
// AVX512-NOT:     llvm.call_intrinsic
// AVX512:         return
func.func @wide_exp_of_f64(%x: vector<8xf64>) -> vector<8xf64> {
  %0 = math.exp %x : vector<8xf64>
  return %0 : vector<8xf64>
}

// Another quotient stays one.
// CHECK-LABEL: func @quotient(
// CHECK:         arith.divf
func.func @quotient(%x: vector<16xf32>, %y: vector<16xf32>) -> vector<16xf32> {
  %0 = arith.divf %x, %y : vector<16xf32>
  return %0 : vector<16xf32>
}

// erf needs fewer digits where 1 is added: two clamps, no choice between two
// ranges, and one division.
// CHECK-LABEL: func @erf_plus_one(
// CHECK-COUNT-2: arith.select
// CHECK-NOT:     arith.select
// CHECK:         arith.divf
// CHECK-NOT:     arith.{{select|divf}}
// CHECK:         return
// AVX-512 picks the coefficients of a short polynomial from registers, and a
// constant factor of x is one of theirs.
// AVX512-LABEL: func @erf_plus_one(
// AVX512:         %[[PIECES:.+]] = arith.constant dense<4.000000e+00>
// AVX512:         math.fma %{{.+}}, %[[PIECES]]
// AVX512-COUNT-5: llvm.call_intrinsic "llvm.x86.avx512.vpermi2var.ps.512"
// AVX512-NOT:     arith.{{mulf|divf}}
// AVX512:         return
func.func @erf_plus_one(%x: vector<16xf32>) -> vector<16xf32> {
  %one = arith.constant dense<1.0> : vector<16xf32>
  %half = arith.constant dense<0.5> : vector<16xf32>
  %y = arith.mulf %x, %half : vector<16xf32>
  %0 = math.erf %y : vector<16xf32>
  %1 = arith.addf %0, %one : vector<16xf32>
  return %1 : vector<16xf32>
}

// -----

// GELU: the sum with one and the product with 1/2 are one operation; that with
// x is the last, so that -0 stays -0.
// CHECK-LABEL: func @gelu(
// CHECK:         %[[PHI:.+]] = math.fma %{{.+}}, %[[HALF:[^,]+]], %[[HALF]] :
// CHECK-NEXT:    %[[Y:.+]] = arith.mulf %arg0, %[[PHI]]
// CHECK-NEXT:    return %[[Y]]
// PLAIN-LABEL: func @gelu(
// PLAIN:         %[[HALF:.+]] = arith.mulf %arg0
// PLAIN:         %[[Y:.+]] = arith.mulf %[[HALF]], %
// PLAIN-NEXT:    return %[[Y]]
func.func @gelu(%x: vector<16xf32>) -> vector<16xf32> {
  %one = arith.constant dense<1.0> : vector<16xf32>
  %half = arith.constant dense<0.5> : vector<16xf32>
  %root = arith.constant dense<0.707106769> : vector<16xf32>
  %h = arith.mulf %x, %half : vector<16xf32>
  %y = arith.mulf %x, %root : vector<16xf32>
  %0 = math.erf %y : vector<16xf32>
  %1 = arith.addf %0, %one : vector<16xf32>
  %2 = arith.mulf %h, %1 : vector<16xf32>
  return %2 : vector<16xf32>
}

// What else is multiplied may be infinite where 1 + erf is not 0.
// CHECK-LABEL: func @times_another(
// CHECK:         %[[SUM:.+]] = arith.addf
// CHECK:         %[[Z:.+]] = arith.mulf %arg1, %[[SUM]]
// CHECK-NEXT:    return %[[Z]]
func.func @times_another(%x: vector<16xf32>, %y: vector<16xf32>) -> vector<16xf32> {
  %one = arith.constant dense<1.0> : vector<16xf32>
  %0 = math.erf %x : vector<16xf32>
  %1 = arith.addf %0, %one : vector<16xf32>
  %2 = arith.mulf %y, %1 : vector<16xf32>
  return %2 : vector<16xf32>
}

// -----

// Large angles are reduced in f64, when a lane has one.
// CHECK-LABEL: func @sine(
// CHECK:         %[[LARGE:.+]] = vector.reduction <or>
// CHECK:         scf.if %[[LARGE]]
// CHECK:         arith.truncf {{.*}} : vector<8xf64> to vector<8xf32>
func.func @sine(%x: vector<8xf32>) -> vector<8xf32> {
  %0 = math.sin %x : vector<8xf32>
  return %0 : vector<8xf32>
}
