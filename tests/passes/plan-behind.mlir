// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=256 vector-registers=16" --ktn-plan-memory --split-input-file | FileCheck %s

#window = affine_map<(h, w, c, kh, kw) -> (h + kh, w + kw, c)>
#taps = affine_map<(h, w, c, kh, kw) -> (kh, kw, c)>
#out = affine_map<(h, w, c, kh, kw) -> (h, w, c)>
#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// Rows of 10 pixels are 640 bytes, of the result 512. The last tile of 4 rows
// needs all 10 of them, and writes from row 4 on.
// CHECK-LABEL: func private @window(
// CHECK-SAME:    memref<10x10x16xf32> {ktn.behind = 4352 : i64}, %{{[^:]+}}: memref<3x3x16xf32>, %{{[^:]+}}: memref<8x8x16xf32>)
func.func private @window(%x: tensor<10x10x16xf32>, %w: tensor<3x3x16xf32>, %y: tensor<8x8x16xf32>) -> tensor<8x8x16xf32> attributes {ktn.kernel = "depthwise"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%y : tensor<8x8x16xf32>) -> tensor<8x8x16xf32>
  %sum = linalg.generic {indexing_maps = [#window, #taps, #out], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<10x10x16xf32>, tensor<3x3x16xf32>) outs(%start : tensor<8x8x16xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<8x8x16xf32>
  return %sum : tensor<8x8x16xf32>
}

func.func private @relu(%x: tensor<10x10x16xf32>, %out: tensor<10x10x16xf32>) -> tensor<10x10x16xf32> attributes {ktn.kernel = "elementwise"} {
  %zero = arith.constant 0.0 : f32
  %z = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%x : tensor<10x10x16xf32>) outs(%out : tensor<10x10x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.maximumf %a, %zero : f32
    linalg.yield %s : f32
  } -> tensor<10x10x16xf32>
  return %z : tensor<10x10x16xf32>
}

func.func private @twice(%x: tensor<8x8x16xf32>, %out: tensor<8x8x16xf32>) -> tensor<8x8x16xf32> attributes {ktn.kernel = "elementwise"} {
  %z = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%x : tensor<8x8x16xf32>) outs(%out : tensor<8x8x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<8x8x16xf32>
  return %z : tensor<8x8x16xf32>
}

// The result lies over the image from there on, and goes 2048 bytes beyond it.
// CHECK-LABEL: func @over(
// CHECK-SAME:    ktn.arena_bytes = array<i64: 8448, 0>
// CHECK-SAME:    ktn.arena_least = array<i64: 8448, 0>
// CHECK:         %[[IMAGE:.+]] = memref.view %arg1[%c0{{[_0-9]*}}][] : memref<?xi8> to memref<10x10x16xf32>
// CHECK:         call @relu(%{{.+}}, %[[IMAGE]])
// CHECK:         %[[PLACE:.+]] = arith.constant 4352 : index
// CHECK:         %[[Y:.+]] = memref.view %arg1[%[[PLACE]]][] : memref<?xi8> to memref<8x8x16xf32>
// CHECK:         call @window(%{{.+}}, %{{.+}}, %[[Y]])
func.func @over(%x: tensor<10x10x16xf32>, %w: tensor<3x3x16xf32>) -> tensor<8x8x16xf32> {
  %e = tensor.empty() : tensor<10x10x16xf32>
  %o = tensor.empty() : tensor<8x8x16xf32>
  %f = call @relu(%x, %e) : (tensor<10x10x16xf32>, tensor<10x10x16xf32>) -> tensor<10x10x16xf32>
  %y = call @window(%f, %w, %o) : (tensor<10x10x16xf32>, tensor<3x3x16xf32>, tensor<8x8x16xf32>) -> tensor<8x8x16xf32>
  %z = call @twice(%y, %o) : (tensor<8x8x16xf32>, tensor<8x8x16xf32>) -> tensor<8x8x16xf32>
  return %z : tensor<8x8x16xf32>
}

// What is made in its place then is there, too; and what is made in the place
// of an image is an image.
// CHECK-LABEL: func @between(
// CHECK-SAME:    ktn.arena_bytes = array<i64: 8448, 0>
// CHECK:         call @window(
// CHECK:         %[[PLACE:.+]] = arith.constant 4352 : index
// CHECK:         %[[Y:.+]] = memref.view %arg1[%[[PLACE]]][] : memref<?xi8> to memref<8x8x16xf32>
// CHECK:         %[[SAME:.+]] = arith.constant 4352 : index
// CHECK:         %[[Z:.+]] = memref.view %arg1[%[[SAME]]][] : memref<?xi8> to memref<8x8x16xf32>
// CHECK:         call @twice(%[[Y]], %[[Z]])
func.func @between(%x: tensor<10x10x16xf32>, %w: tensor<3x3x16xf32>) -> tensor<8x8x16xf32> {
  %e = tensor.empty() : tensor<10x10x16xf32>
  %o = tensor.empty() : tensor<8x8x16xf32>
  %d = call @relu(%x, %e) : (tensor<10x10x16xf32>, tensor<10x10x16xf32>) -> tensor<10x10x16xf32>
  %f = call @relu(%d, %e) : (tensor<10x10x16xf32>, tensor<10x10x16xf32>) -> tensor<10x10x16xf32>
  %y = call @window(%f, %w, %o) : (tensor<10x10x16xf32>, tensor<3x3x16xf32>, tensor<8x8x16xf32>) -> tensor<8x8x16xf32>
  %z = call @twice(%y, %o) : (tensor<8x8x16xf32>, tensor<8x8x16xf32>) -> tensor<8x8x16xf32>
  %t = call @twice(%z, %o) : (tensor<8x8x16xf32>, tensor<8x8x16xf32>) -> tensor<8x8x16xf32>
  return %t : tensor<8x8x16xf32>
}

// Only the last one to read an image is over it, and none over an input.
// CHECK-LABEL: func @again(
// CHECK-SAME:    ktn.arena_bytes = array<i64: 16640, 0>
// CHECK:         %[[FIRST:.+]] = arith.constant 8448 : index
// CHECK:         memref.view %arg1[%[[FIRST]]][] : memref<?xi8> to memref<8x8x16xf32>
// CHECK:         call @window(
// CHECK:         %[[SECOND:.+]] = arith.constant 12544 : index
// CHECK:         memref.view %arg1[%[[SECOND]]][] : memref<?xi8> to memref<8x8x16xf32>
// CHECK:         call @window(
// CHECK:         %[[THIRD:.+]] = arith.constant 4352 : index
// CHECK:         memref.view %arg1[%[[THIRD]]][] : memref<?xi8> to memref<8x8x16xf32>
// CHECK:         call @window(
func.func @again(%x: tensor<10x10x16xf32>, %w: tensor<3x3x16xf32>) -> (tensor<8x8x16xf32>, tensor<8x8x16xf32>) {
  %e = tensor.empty() : tensor<10x10x16xf32>
  %o = tensor.empty() : tensor<8x8x16xf32>
  %f = call @relu(%x, %e) : (tensor<10x10x16xf32>, tensor<10x10x16xf32>) -> tensor<10x10x16xf32>
  %y = call @window(%f, %w, %o) : (tensor<10x10x16xf32>, tensor<3x3x16xf32>, tensor<8x8x16xf32>) -> tensor<8x8x16xf32>
  %t = call @window(%x, %w, %o) : (tensor<10x10x16xf32>, tensor<3x3x16xf32>, tensor<8x8x16xf32>) -> tensor<8x8x16xf32>
  %s = call @window(%f, %w, %o) : (tensor<10x10x16xf32>, tensor<3x3x16xf32>, tensor<8x8x16xf32>) -> tensor<8x8x16xf32>
  %z = call @twice(%y, %o) : (tensor<8x8x16xf32>, tensor<8x8x16xf32>) -> tensor<8x8x16xf32>
  %u = call @twice(%t, %o) : (tensor<8x8x16xf32>, tensor<8x8x16xf32>) -> tensor<8x8x16xf32>
  %v = call @twice(%s, %o) : (tensor<8x8x16xf32>, tensor<8x8x16xf32>) -> tensor<8x8x16xf32>
  return %z, %v : tensor<8x8x16xf32>, tensor<8x8x16xf32>
}

// -----

// Rows of several images, of another order or of an unknown number are not over
// what is read last: no such place is known.
#images = affine_map<(n, h, w, c, kh, kw) -> (n, h + kh, w + kw, c)>
#taps = affine_map<(n, h, w, c, kh, kw) -> (kh, kw, c)>
#out = affine_map<(n, h, w, c, kh, kw) -> (n, h, w, c)>
#turned = affine_map<(n, h, w, c, kh, kw) -> (n, w + kw, h + kh, c)>

// CHECK-LABEL: func private @images(
// CHECK-SAME:    memref<2x10x10x16xf32>, %
func.func private @images(%x: tensor<2x10x10x16xf32>, %w: tensor<3x3x16xf32>, %y: tensor<2x8x8x16xf32>) -> tensor<2x8x8x16xf32> attributes {ktn.kernel = "depthwise"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%y : tensor<2x8x8x16xf32>) -> tensor<2x8x8x16xf32>
  %sum = linalg.generic {indexing_maps = [#images, #taps, #out], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<2x10x10x16xf32>, tensor<3x3x16xf32>) outs(%start : tensor<2x8x8x16xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<2x8x8x16xf32>
  return %sum : tensor<2x8x8x16xf32>
}

// CHECK-LABEL: func private @turned(
// CHECK-SAME:    memref<1x10x10x16xf32>, %
func.func private @turned(%x: tensor<1x10x10x16xf32>, %w: tensor<3x3x16xf32>, %y: tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32> attributes {ktn.kernel = "depthwise"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%y : tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
  %sum = linalg.generic {indexing_maps = [#turned, #taps, #out], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x10x10x16xf32>, tensor<3x3x16xf32>) outs(%start : tensor<1x8x8x16xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x8x8x16xf32>
  return %sum : tensor<1x8x8x16xf32>
}

// What is read for something else, too: here at the element that is written.
// CHECK-LABEL: func private @added(
// CHECK-SAME:    memref<1x8x8x16xf32>, %
#id = affine_map<(n, h, w, c) -> (n, h, w, c)>
func.func private @added(%x: tensor<1x8x8x16xf32>, %w: tensor<3x3x16xf32>, %y: tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32> attributes {ktn.kernel = "depthwise"} {
  %zero = arith.constant 0.0 : f32
  %around = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x8x8x16xf32> to tensor<1x10x10x16xf32>
  %e = tensor.empty() : tensor<1x8x8x16xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
  %sum = linalg.generic {indexing_maps = [#images, #taps, #out], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%around, %w : tensor<1x10x10x16xf32>, tensor<3x3x16xf32>) outs(%start : tensor<1x8x8x16xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x8x8x16xf32>
  %both = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%sum, %x : tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>) outs(%y : tensor<1x8x8x16xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %t = arith.addf %a, %c : f32
    linalg.yield %t : f32
  } -> tensor<1x8x8x16xf32>
  return %both : tensor<1x8x8x16xf32>
}
