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
