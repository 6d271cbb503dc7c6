// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=256 vector-registers=16" --ktn-plan-memory --split-input-file | FileCheck %s

#id = affine_map<(d0) -> (d0)>
#back = affine_map<(d0) -> (15 - d0)>

// A result is written over the argument that it is the new value of when its
// kernel is the last to read that and reads an element before it writes there;
// then neither is the only pointer to its memory.
// CHECK-LABEL: func private @add(
// CHECK-SAME:    %{{.+}}: memref<16xf32> {ktn.in_place}, %{{.+}}: memref<16xf32> {ktn.in_place}, %{{.+}}: memref<16xf32>)
func.func private @add(%x: tensor<16xf32>, %y: tensor<16xf32>, %out: tensor<16xf32>) -> tensor<16xf32> attributes {ktn.kernel = "elementwise"} {
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
    ins(%x, %y : tensor<16xf32>, tensor<16xf32>) outs(%out : tensor<16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<16xf32>
  return %z : tensor<16xf32>
}

// Each element from the other end.
// CHECK-LABEL: func private @turn(
// CHECK-SAME:    %{{.+}}: memref<16xf32>, %{{.+}}: memref<16xf32> {llvm.noalias})
func.func private @turn(%x: tensor<16xf32>, %out: tensor<16xf32>) -> tensor<16xf32> attributes {ktn.kernel = "elementwise"} {
  %z = linalg.generic {indexing_maps = [#back, #id], iterator_types = ["parallel"]}
    ins(%x : tensor<16xf32>) outs(%out : tensor<16xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<16xf32>
  return %z : tensor<16xf32>
}

// The second variable is read by nobody once the first is written; the first is.
// The third is what the second was: it is copied. The fourth is turned round.
// CHECK-LABEL: func @step(
// CHECK-SAME:    ktn.in_place = array<i64: -1, 2, -1, -1>
func.func @step(%x: tensor<16xf32>, %p: tensor<16xf32>, %q: tensor<16xf32>, %r: tensor<16xf32>, %s: tensor<16xf32>)
    -> (tensor<16xf32> {ktn.updates = 1 : i64}, tensor<16xf32> {ktn.updates = 2 : i64}, tensor<16xf32> {ktn.updates = 3 : i64}, tensor<16xf32> {ktn.updates = 4 : i64}) {
  %e = tensor.empty() : tensor<16xf32>
  %a = call @add(%x, %p, %e) : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %b = call @add(%p, %q, %e) : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %t = call @turn(%s, %e) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %a, %b, %r, %t : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
}

// The next state of a loop is made where the state is, if that was read for the
// last time: by the kernel that makes it, position by position.
// CHECK-LABEL: func @states(
// CHECK:         memref.copy
// CHECK:         scf.for
// CHECK:           %[[P:.+]] = memref.view %[[Y:arg5]][{{.+}}][] : memref<?xi8> to memref<16xf32>
// CHECK:           %[[NEXT:.+]] = memref.view %[[Y]][{{.+}}][] : memref<?xi8> to memref<16xf32>
// CHECK:           call @add(%{{.+}}, %[[P]], %[[NEXT]])
// CHECK-NOT:       memref.copy
// CHECK:         return
func.func @states(%x: tensor<16xf32>, %p: tensor<16xf32>) -> tensor<16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %e = tensor.empty() : tensor<16xf32>
  %r = scf.for %t = %c0 to %c9 step %c1 iter_args(%state = %p) -> tensor<16xf32> {
    %next = func.call @add(%x, %state, %e) : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    scf.yield %next : tensor<16xf32>
  }
  return %r : tensor<16xf32>
}

// A kernel that reads other positions, and states that are read once the next
// one is there: their own memory, and a copy at the end of each turn.
// CHECK-LABEL: func @turned(
// CHECK:         scf.for
// CHECK:           call @turn(
// CHECK:           memref.copy
// CHECK:         return
func.func @turned(%p: tensor<16xf32>) -> tensor<16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %e = tensor.empty() : tensor<16xf32>
  %r = scf.for %t = %c0 to %c9 step %c1 iter_args(%state = %p) -> tensor<16xf32> {
    %next = func.call @turn(%state, %e) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    scf.yield %next : tensor<16xf32>
  }
  return %r : tensor<16xf32>
}

// The first is what the second was: that is put aside, until the first may be
// written. The third is in place, for nobody needs the one before it.
// CHECK-LABEL: func @moved(
// CHECK:         scf.for
// CHECK:           %[[B:.+]] = memref.view %arg7[{{.+}}][] : memref<?xi8> to memref<16xf32>
// CHECK:           call @add(%{{.+}}, %[[B]], %{{.+}})
// CHECK:           %[[C:.+]] = memref.view %arg8[{{.+}}][] : memref<?xi8> to memref<16xf32>
// CHECK:           %[[AGAIN:.+]] = memref.view %arg7[{{.+}}][] : memref<?xi8> to memref<16xf32>
// CHECK:           %[[LAST:.+]] = memref.view %arg8[{{.+}}][] : memref<?xi8> to memref<16xf32>
// CHECK:           call @add(%[[C]], %[[AGAIN]], %[[LAST]])
// CHECK:           %[[FROM:.+]] = memref.view %arg7
// CHECK:           %[[ASIDE:.+]] = memref.view %arg1[%[[AT:.+]]][
// CHECK:           memref.copy %[[FROM]], %[[ASIDE]]
// CHECK:           %[[BACK:.+]] = memref.view %arg1[
// CHECK:           %[[A:.+]] = memref.view %arg6
// CHECK:           memref.copy %[[BACK]], %[[A]]
// CHECK:           memref.copy
// CHECK-NOT:       memref.copy
// CHECK:         return
func.func @moved(%x: tensor<16xf32>, %p: tensor<16xf32>, %q: tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %e = tensor.empty() : tensor<16xf32>
  %r:3 = scf.for %t = %c0 to %c9 step %c1 iter_args(%a = %p, %b = %q, %c = %x) -> (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) {
    %next = func.call @add(%x, %b, %e) : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    %last = func.call @add(%c, %b, %e) : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    scf.yield %b, %next, %last : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
  }
  return %r#0, %r#1, %r#2 : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
}
