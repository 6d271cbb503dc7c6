// What a dump of the stage loops says of its memory is checked.
// RUN: not keratinc %s -o %t --name f 2>&1 | FileCheck %s --check-prefix=ARENA
// RUN: sed 's/-64, 0/64, 0/' %s > %t.mlir
// RUN: not keratinc %t.mlir -o %t --name f 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: sed 's/-64, 0/64, 0/; s/3037000500/2/g; s/ktn.outputs = ../&, ktn.in_place = array<i64: 0>/' %s > %t.mlir
// RUN: not keratinc %t.mlir -o %t --name f 2>&1 | FileCheck %s --check-prefix=PLACE

// ARENA: 'ktn.arena_bytes' is less than nothing
// PLACE: 'ktn.in_place' is not an input, or -1, for each output
// SIZE: 'x' is a 'tensor<3037000500x3037000500xf32>', more bytes than a process can address
module attributes {ktn.stage = "loops"} {
  func.func @f(%w: memref<?xi8>, %a: memref<?xi8>, %n: index, %x: memref<?xi8>) attributes {
      ktn.arena_bytes = array<i64: -64, 0>, ktn.weights_bytes = 0 : i64, ktn.weights = [], ktn.kernels = [],
      ktn.inputs = [{name = "x", type = tensor<3037000500x3037000500xf32>}], ktn.outputs = []} {
    return
  }
}
