// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=256 vector-registers=16" --ktn-plan-memory | FileCheck %s

#id = affine_map<(d0) -> (d0)>
#back = affine_map<(d0) -> (15 - d0)>

// Where one call has a result in the place of an argument, the destination is
// not the only pointer to its memory.
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

func.func private @turn(%x: tensor<16xf32>, %out: tensor<16xf32>) -> tensor<16xf32> attributes {ktn.kernel = "elementwise"} {
  %z = linalg.generic {indexing_maps = [#back, #id], iterator_types = ["parallel"]}
    ins(%x : tensor<16xf32>) outs(%out : tensor<16xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<16xf32>
  return %z : tensor<16xf32>
}

// The second sum is made where the first is, which nobody reads again, and so
// is the third, of which the last is an output. Inputs stay what they are.
// CHECK-LABEL: func @residual(
// CHECK-SAME:    ktn.arena_bytes = array<i64: 64, 0>
// CHECK-SAME:    ktn.arena_least = array<i64: 64, 0>
// CHECK:         %[[A:.+]] = memref.view %arg1[
// CHECK:         call @add(%{{.+}}, %{{.+}}, %[[A]])
// CHECK:         %[[B:.+]] = memref.view %arg1[
// CHECK:         %[[C:.+]] = memref.view %arg1[
// CHECK:         call @add(%{{.+}}, %[[B]], %[[C]])
// CHECK:         %[[OUT:.+]] = memref.view %arg5[
// CHECK:         call @turn(%{{.+}}, %[[OUT]])
func.func @residual(%x: tensor<16xf32>, %y: tensor<16xf32>) -> tensor<16xf32> {
  %e = tensor.empty() : tensor<16xf32>
  %a = call @add(%x, %y, %e) : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %b = call @add(%y, %a, %e) : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %c = call @add(%b, %b, %e) : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %d = call @turn(%c, %e) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %d : tensor<16xf32>
}

// What is read once more keeps its memory.
// CHECK-LABEL: func @again(
// CHECK-SAME:    ktn.arena_bytes = array<i64: 128, 0>
func.func @again(%x: tensor<16xf32>) -> tensor<16xf32> {
  %e = tensor.empty() : tensor<16xf32>
  %a = call @add(%x, %x, %e) : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %b = call @add(%x, %a, %e) : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %c = call @add(%a, %b, %e) : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %c : tensor<16xf32>
}

// And what is read at other positions.
// CHECK-LABEL: func @elsewhere(
// CHECK-SAME:    ktn.arena_bytes = array<i64: 128, 0>
func.func @elsewhere(%x: tensor<16xf32>) -> tensor<16xf32> {
  %e = tensor.empty() : tensor<16xf32>
  %a = call @add(%x, %x, %e) : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %b = call @turn(%a, %e) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %c = call @turn(%b, %e) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %c : tensor<16xf32>
}

// A view of what is made in place is there, too.
// CHECK-LABEL: func @viewed(
// CHECK-SAME:    ktn.arena_bytes = array<i64: 64, 0>
func.func @viewed(%x: tensor<16xf32>) -> tensor<16xf32> {
  %e = tensor.empty() : tensor<16xf32>
  %a = call @add(%x, %x, %e) : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %b = call @add(%x, %a, %e) : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %square = tensor.expand_shape %b [[0, 1]] output_shape [4, 4] : tensor<16xf32> into tensor<4x4xf32>
  %flat = tensor.collapse_shape %square [[0, 1]] : tensor<4x4xf32> into tensor<16xf32>
  %c = call @turn(%flat, %e) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %c : tensor<16xf32>
}
