// RUN: keratin-opt %s --ktn-hide-kernels | FileCheck %s

// A kernel named after a layer that is called like a C function; calls follow.
// The function that users call keeps its name.
// CHECK-LABEL: func.func @erfc(
// CHECK:         call @kernel.erf(
// CHECK:       func.func private @kernel.erf(
func.func @erfc(%x: memref<4xf64>) {
  call @erf(%x) : (memref<4xf64>) -> ()
  return
}
func.func private @erf(%x: memref<4xf64>) attributes {ktn.kernel = "elementwise"} {
  return
}
