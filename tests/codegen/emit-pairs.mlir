// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 pairs winograd=4" --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32 winograd=4" --split-input-file | FileCheck %s --check-prefix=OFF
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=256 vector-registers=16 pairs winograd=4" --split-input-file | FileCheck %s --check-prefix=OFF

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// Panels of two vectors have two rows behind the weights. Rows are measured,
// and copied if one is of another size than weights; then tiles of 12 rows have
// two pairs and two products in each step.
// CHECK-LABEL: func private @product(
// CHECK-SAME:    %[[X:[^:]+]]: memref<24x96xf32>,
// CHECK-SAME:    %[[W:[^:]+]]: memref<4x98x32xf32> {ktn.constant, ktn.packed = {block = 32 : i64, columns_inside, paired = array<i64: 96, 128>}, ktn.unpacked_type = tensor<96x128xf32>}
// CHECK-SAME:    memref<{{[0-9]+}}xf32> {ktn.scratch}
// CHECK-SAME:    ktn.kernel = "paired"
// CHECK:         vector.shuffle
// CHECK:         scf.if
// CHECK:           vector.store
// CHECK:         vector.load %[[W]]{{.+}} : memref<4x98x32xf32>
// CHECK:         scf.for
// CHECK-COUNT-6:   vector.load %[[W]]
// CHECK:           llvm.inline_asm has_side_effects "vaddps 0($24){1to16}, $27, %zmm30\0A\09vaddps 4($24){1to16}, $25, %zmm31\0A\09vfmadd231ps %zmm30, %zmm31, $0
// CHECK-SAME:      \0A\09vfmadd231ps 16($24){1to16}, $29, $0\0A\09
// CHECK-SAME:      ~{memory}
// CHECK-COUNT-6:   vector.load %[[W]]
// CHECK:           llvm.inline_asm has_side_effects "vsubps 8($24){1to16}, $27, %zmm30\0A\09vsubps 12($24){1to16}, $25, %zmm31\0A\09vfnmadd231ps %zmm30, %zmm31, $0
// CHECK-SAME:      \0A\09vfmadd231ps 20($24){1to16}, $29, $0\0A\09
// OFF-LABEL: func private @product(
// OFF-NOT:     vaddps
func.func private @product(%x: tensor<24x96xf32>, %w: tensor<96x128xf32> {ktn.constant}, %out: tensor<24x128xf32>) -> tensor<24x128xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<24x128xf32>) -> tensor<24x128xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<24x96xf32>, tensor<96x128xf32>) outs(%start : tensor<24x128xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<24x128xf32>
  return %sum : tensor<24x128xf32>
}
func.func @call(%x: tensor<24x96xf32>) -> tensor<24x128xf32> {
  %w = arith.constant dense<0.5> : tensor<96x128xf32>
  %out = tensor.empty() : tensor<24x128xf32>
  %y = func.call @product(%x, %w, %out) : (tensor<24x96xf32>, tensor<96x128xf32>, tensor<24x128xf32>) -> tensor<24x128xf32>
  return %y : tensor<24x128xf32>
}

// -----

#x = affine_map<(n, h, w, k, i, j, c) -> (n, h + i, w + j, c)>
#g = affine_map<(n, h, w, k, i, j, c) -> (i, j, c, k)>
#y = affine_map<(n, h, w, k, i, j, c) -> (n, h, w, k)>

// The products of positions of tiles of Winograd: rows of another size are made
// as large as weights where they are.
// CHECK-LABEL: func private @window(
// CHECK-SAME:    memref<36x4x130x32xf32> {ktn.constant, ktn.packed = {axes = array<i64: 0, 1>, block = 32 : i64, pairs, strides = array<i64: 1, 1>, taps = 3 : i64, winograd = 4 : i64}
// CHECK-SAME:    ktn.kernel = "winograd4"
// CHECK:         vector.shuffle
// CHECK:         scf.if
// CHECK:         } else {
// CHECK:           vector.store
// CHECK:         llvm.inline_asm has_side_effects "vaddps 0(
// OFF-LABEL: func private @window(
// OFF-SAME:    {{128x[0-9]+xf32}}
// OFF-NOT:     vaddps
func.func private @window(%x: tensor<1x26x26x128xf32>, %g: tensor<3x3x128x128xf32> {ktn.constant}, %out: tensor<1x24x24x128xf32>) -> tensor<1x24x24x128xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x24x24x128xf32>) -> tensor<1x24x24x128xf32>
  %sum = linalg.generic {indexing_maps = [#x, #g, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %g : tensor<1x26x26x128xf32>, tensor<3x3x128x128xf32>) outs(%start : tensor<1x24x24x128xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x24x24x128xf32>
  return %sum : tensor<1x24x24x128xf32>
}

// -----

#x = affine_map<(n, h, w, k, i, j, c) -> (n, h + i, w + j, c)>
#g = affine_map<(n, h, w, k, i, j, c) -> (i, j, c, k)>
#y = affine_map<(n, h, w, k, i, j, c) -> (n, h, w, k)>

// Not of 9 tiles with weights that come from memory, which would come too late:
// those of the function are 37 MB.
// CHECK-LABEL: func private @far_window(
// CHECK-SAME:    memref<36x{{[0-9]+}}x1024x{{[0-9]+}}xf32> {ktn.constant, ktn.packed = {axes = array<i64: 0, 1>, block = {{[0-9]+}} : i64, strides = array<i64: 1, 1>, taps = 3 : i64, winograd = 4 : i64}
// CHECK-NOT:     vaddps
// OFF-LABEL: func private @far_window(
func.func private @far_window(%x: tensor<1x14x14x1024xf32>, %g: tensor<3x3x1024x1024xf32> {ktn.constant}, %out: tensor<1x12x12x1024xf32>) -> tensor<1x12x12x1024xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x12x12x1024xf32>) -> tensor<1x12x12x1024xf32>
  %sum = linalg.generic {indexing_maps = [#x, #g, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %g : tensor<1x14x14x1024xf32>, tensor<3x3x1024x1024xf32>) outs(%start : tensor<1x12x12x1024xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x12x12x1024xf32>
  return %sum : tensor<1x12x12x1024xf32>
}
func.func @far(%x: tensor<1x14x14x1024xf32>) -> tensor<1x12x12x1024xf32> {
  %g = arith.constant dense_resource<far> : tensor<3x3x1024x1024xf32>
  %out = tensor.empty() : tensor<1x12x12x1024xf32>
  %y = func.call @far_window(%x, %g, %out) : (tensor<1x14x14x1024xf32>, tensor<3x3x1024x1024xf32>, tensor<1x12x12x1024xf32>) -> tensor<1x12x12x1024xf32>
  return %y : tensor<1x12x12x1024xf32>
}

// -----

#x = affine_map<(n, h, w, k, i, j, c) -> (n, 2 * h + i, 2 * w + j, c)>
#g = affine_map<(n, h, w, k, i, j, c) -> (i, j, c, k)>
#y = affine_map<(n, h, w, k, i, j, c) -> (n, h, w, k)>

// Windows that move by two: a row is copied as three runs of 3 x 64 elements.
// CHECK-LABEL: func private @strided(
// CHECK-SAME:    memref<4x578x32xf32> {ktn.constant
// CHECK-SAME:    ktn.kernel = "paired"
// CHECK:         %[[ELEMENTS:.+]] = memref.reinterpret_cast {{.+}} strides: [1] : memref<f32> to memref<?xf32
// CHECK:         scf.for {{.+}} = %c0{{.*}} to %c3
// CHECK:           scf.for {{.+}} = %c0{{.*}} to %c192{{.*}} step %c16
// CHECK:             vector.load %[[ELEMENTS]]
// CHECK:             vector.store
// CHECK:         vector.shuffle
// CHECK:         llvm.inline_asm has_side_effects "vaddps 0(
// OFF-LABEL: func private @strided(
// OFF-NOT:     vaddps
func.func private @strided(%x: tensor<1x17x17x64xf32>, %g: tensor<3x3x64x128xf32> {ktn.constant}, %out: tensor<1x8x8x128xf32>) -> tensor<1x8x8x128xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x8x8x128xf32>) -> tensor<1x8x8x128xf32>
  %sum = linalg.generic {indexing_maps = [#x, #g, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %g : tensor<1x17x17x64xf32>, tensor<3x3x64x128xf32>) outs(%start : tensor<1x8x8x128xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x8x8x128xf32>
  return %sum : tensor<1x8x8x128xf32>
}
func.func @call(%x: tensor<1x17x17x64xf32>) -> tensor<1x8x8x128xf32> {
  %g = arith.constant dense<0.5> : tensor<3x3x64x128xf32>
  %out = tensor.empty() : tensor<1x8x8x128xf32>
  %y = func.call @strided(%x, %g, %out) : (tensor<1x17x17x64xf32>, tensor<3x3x64x128xf32>, tensor<1x8x8x128xf32>) -> tensor<1x8x8x128xf32>
  return %y : tensor<1x8x8x128xf32>
}

// -----

#x = affine_map<(n, h, k, i, c) -> (n, 3 * h + i, c)>
#g = affine_map<(n, h, k, i, c) -> (i, c, k)>
#y = affine_map<(n, h, k, i, c) -> (n, h, k)>

// Windows that share elements are copied too, for one of them may have to be
// multiplied: as one run.
// CHECK-LABEL: func private @shared(
// CHECK-SAME:    ktn.kernel = "paired"
// CHECK:         %[[ELEMENTS:.+]] = memref.reinterpret_cast {{.+}} strides: [1] : memref<f32> to memref<?xf32
// CHECK:           scf.for {{.+}} = %c0{{.*}} to %c128{{.*}} step %c16
// CHECK:             vector.load %[[ELEMENTS]]
// CHECK-NOT:       scf.for
// CHECK:             vector.store
func.func private @shared(%x: tensor<1x106x32xf32>, %g: tensor<4x32x128xf32> {ktn.constant}, %out: tensor<1x35x128xf32>) -> tensor<1x35x128xf32> attributes {ktn.kernel = "conv"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<1x35x128xf32>) -> tensor<1x35x128xf32>
  %sum = linalg.generic {indexing_maps = [#x, #g, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %g : tensor<1x106x32xf32>, tensor<4x32x128xf32>) outs(%start : tensor<1x35x128xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x35x128xf32>
  return %sum : tensor<1x35x128xf32>
}
func.func @call(%x: tensor<1x106x32xf32>) -> tensor<1x35x128xf32> {
  %g = arith.constant dense<0.5> : tensor<4x32x128xf32>
  %out = tensor.empty() : tensor<1x35x128xf32>
  %y = func.call @shared(%x, %g, %out) : (tensor<1x106x32xf32>, tensor<4x32x128xf32>, tensor<1x35x128xf32>) -> tensor<1x35x128xf32>
  return %y : tensor<1x35x128xf32>
}

// -----

#x = affine_map<(m, n, k) -> (k, m)>
#w = affine_map<(m, n, k) -> (n, k)>
#y = affine_map<(m, n, k) -> (m, n)>

// Two factors that are not known, both with neighbours along the wrong axis:
// rows are transposed in squares and measured; then weights are transposed into
// a panel, which is measured and multiplied by powers of two, before the rows
// meet it.
// CHECK-LABEL: func private @of_inputs(
// CHECK-SAME:    memref<{{[0-9]+}}xf32> {ktn.shared_scratch}
// CHECK-SAME:    ktn.kernel = "paired"
// CHECK:         %[[PANEL:.+]] = memref.reinterpret_cast {{.+}} sizes: [1, 194, 32]
// CHECK:         %[[COPIES:.+]] = memref.reinterpret_cast {{.+}} sizes: [96, 192], strides: [208, 1]
// CHECK:         %[[ROWS:.+]] = memref.reinterpret_cast {{.+}} sizes: [96, 192], strides: [208, 1]
// CHECK:         memref.prefetch
// CHECK:         vector.shuffle
// CHECK:         vector.store {{.+}}, %[[ROWS]]
// CHECK:         scf.if
// CHECK:           vector.store {{.+}}, %[[COPIES]]
// CHECK:         vector.shuffle
// CHECK:         vector.store {{.+}}, %[[PANEL]]
// CHECK:         arith.cmpf oge, {{.+}} : vector<16xf32>
// CHECK:         arith.mulf {{.+}} : vector<16xf32>
// CHECK:         vector.store {{.+}}, %[[PANEL]]
// CHECK:         arith.select {{.+}} : !llvm.ptr
// CHECK:         llvm.inline_asm has_side_effects "vaddps 0(
// OFF-LABEL: func private @of_inputs(
// OFF-NOT:     vaddps
func.func private @of_inputs(%x: tensor<192x96xf32>, %w: tensor<512x192xf32>, %out: tensor<96x512xf32>) -> tensor<96x512xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<96x512xf32>) -> tensor<96x512xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<192x96xf32>, tensor<512x192xf32>) outs(%start : tensor<96x512xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<96x512xf32>
  return %sum : tensor<96x512xf32>
}
func.func @call(%x: tensor<192x96xf32>, %w: tensor<512x192xf32>) -> tensor<96x512xf32> {
  %out = tensor.empty() : tensor<96x512xf32>
  %y = func.call @of_inputs(%x, %w, %out) : (tensor<192x96xf32>, tensor<512x192xf32>, tensor<96x512xf32>) -> tensor<96x512xf32>
  return %y : tensor<96x512xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// Of more rows than the second cache has, all panels are packed first.
// CHECK-LABEL: func private @of_many_rows(
// CHECK-SAME:    memref<{{[0-9]+}}xf32> {ktn.shared_scratch}
// CHECK-SAME:    ktn.kernel = "paired"
// CHECK:         %[[PANELS:.+]] = memref.reinterpret_cast {{.+}} sizes: [4, 98, 32]
// CHECK:         scf.for {{.+}} = %c0{{.*}} to %c4{{.*}} {
// CHECK:           vector.store {{.+}}, %[[PANELS]]
// CHECK:         scf.for
// CHECK:           vector.shuffle
// CHECK:           llvm.inline_asm has_side_effects "vaddps 0(
func.func private @of_many_rows(%x: tensor<16384x96xf32>, %w: tensor<96x128xf32>, %out: tensor<16384x128xf32>) -> tensor<16384x128xf32> attributes {ktn.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<16384x128xf32>) -> tensor<16384x128xf32>
  %sum = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<16384x96xf32>, tensor<96x128xf32>) outs(%start : tensor<16384x128xf32>) {
  ^bb0(%a: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %c : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<16384x128xf32>
  return %sum : tensor<16384x128xf32>
}
func.func @call(%x: tensor<16384x96xf32>, %w: tensor<96x128xf32>) -> tensor<16384x128xf32> {
  %out = tensor.empty() : tensor<16384x128xf32>
  %y = func.call @of_many_rows(%x, %w, %out) : (tensor<16384x96xf32>, tensor<96x128xf32>, tensor<16384x128xf32>) -> tensor<16384x128xf32>
  return %y : tensor<16384x128xf32>
}
