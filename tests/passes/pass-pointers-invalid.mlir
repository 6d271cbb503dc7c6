// RUN: keratin-opt %s --ktn-pass-pointers --split-input-file --verify-diagnostics

// A caller in C says nothing of extents.
func.func @asks_for_extent(%bytes: memref<?xi8>) -> index {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{uses an argument of a public function, the extent of which is not passed}}
  %0 = memref.dim %bytes, %c0 : memref<?xi8>
  return %0 : index
}

// -----

// expected-error@+1 {{returns a memref}}
func.func private @returns(%x: memref<4xf32>) -> memref<4xf32> {
  return %x : memref<4xf32>
}

// -----

func.func @callee(%x: memref<?xi8>) {
  return
}
func.func @calls_public(%x: memref<?xi8>) {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{passes memrefs to callee, which is not a private function}}
  call @callee(%x) : (memref<?xi8>) -> ()
  return
}
