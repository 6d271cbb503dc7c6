// RUN: keratin-opt %s --ktn-round-factors=type=f16 --canonicalize --split-input-file | FileCheck %s

#rows = affine_map<(m, n, k) -> (m, k)>
#columns = affine_map<(m, n, k) -> (k, n)>
#sums = affine_map<(m, n, k) -> (m, n)>

// Weights are rounded now, to nearest even: 1 + 2^-11 and 1 + 3 * 2^-11 are halfway between two numbers of f16, 65519
// is nearest to its largest one, and 2^-25 to zero. What is computed stays f32.
// CHECK-LABEL: func @dense(
// CHECK-SAME:    %[[X:.+]]: tensor<?x2xf32>
// CHECK-DAG:     arith.constant dense<{{\[}}[1.000000e+00, 1.001950e+00], [-6.550400e+04, 0.000000e+00]]> : tensor<2x2xf16>
// CHECK:         linalg.generic {{.+}} ins(%[[X]], %{{.+}} : tensor<?x2xf32>, tensor<2x2xf16>)
// CHECK-NEXT:    ^bb0(%{{.+}}: f32, %[[W:.+]]: f16, %{{.+}}: f32):
// CHECK-NEXT:      arith.extf %[[W]] : f16 to f32
// CHECK-NEXT:      arith.mulf %{{.+}} : f32
// CHECK-NEXT:      arith.addf %{{.+}} : f32
// CHECK-NOT:     truncf
// CHECK:         return
func.func @dense(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<[[1.00048828125, 1.00146484375], [-65519.0, 2.98023223876953125e-8]]> : tensor<2x2xf32>
  %n = tensor.dim %x, %c0 : tensor<?x2xf32>
  %e = tensor.empty(%n) : tensor<?x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x2xf32>) -> tensor<?x2xf32>
  %y = linalg.generic {indexing_maps = [#rows, #columns, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x2xf32>, tensor<2x2xf32>) outs(%f : tensor<?x2xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %p, %s : f32
    linalg.yield %t : f32
  } -> tensor<?x2xf32>
  return %y : tensor<?x2xf32>
}

// -----

#rows = affine_map<(m, n, k) -> (m, k)>
#columns = affine_map<(m, n, k) -> (k, n)>
#sums = affine_map<(m, n, k) -> (m, n)>

// Weights with a number that f16 does not reach stay as they are, all of them; infinity is one of f16. The same
// through a view, and from a resource.
// CHECK-LABEL: func @large(
// CHECK-DAG:     dense<{{\[}}[1.000000e+00, 1.000000e+00], [-6.552000e+04, 1.000000e+00]]> : tensor<2x2xf32>
// CHECK-DAG:     dense<{{\[}}[1.000000e+00, 0x7C00], [0xFC00, 1.000000e+00]]> : tensor<2x2xf16>
// CHECK-DAG:     dense_resource<large> : tensor<4xf32>
// CHECK-DAG:     dense_resource<small_f16> : tensor<4xf16>
// CHECK:         linalg.generic {{.+}} ins(%{{.+}}, %{{.+}} : tensor<2x2xf32>, tensor<2x2xf32>)
// CHECK:         linalg.generic {{.+}} ins(%{{.+}}, %{{.+}} : tensor<2x2xf32>, tensor<2x2xf16>)
// CHECK:         linalg.generic {{.+}} ins(%{{.+}}, %{{.+}} : tensor<2x2xf32>, tensor<2x2xf32>)
// CHECK:         linalg.generic {{.+}} ins(%{{.+}}, %{{.+}} : tensor<2x2xf32>, tensor<2x2xf16>)
// 1, -2, 1 + 2^-11, 2^-24 as f16.
// CHECK:         small_f16: "0x40000000003C00C0003C0100"
func.func @large(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %zero = arith.constant 0.0 : f32
  %u = arith.constant dense<[[1.0, 1.0], [-65520.0, 1.0]]> : tensor<2x2xf32>
  %v = arith.constant dense<[[1.0, 0x7F800000], [0xFF800000, 1.0]]> : tensor<2x2xf32>
  %large = arith.constant dense_resource<large> : tensor<4xf32>
  %small = arith.constant dense_resource<small> : tensor<4xf32>
  %w = tensor.expand_shape %large [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
  %z = tensor.expand_shape %small [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
  %e = tensor.empty() : tensor<2x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x2xf32>) -> tensor<2x2xf32>
  %0 = linalg.generic {indexing_maps = [#rows, #columns, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %u : tensor<2x2xf32>, tensor<2x2xf32>) outs(%f : tensor<2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %p, %s : f32
    linalg.yield %t : f32
  } -> tensor<2x2xf32>
  %1 = linalg.generic {indexing_maps = [#rows, #columns, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%0, %v : tensor<2x2xf32>, tensor<2x2xf32>) outs(%f : tensor<2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %p, %s : f32
    linalg.yield %t : f32
  } -> tensor<2x2xf32>
  %2 = linalg.generic {indexing_maps = [#rows, #columns, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%1, %w : tensor<2x2xf32>, tensor<2x2xf32>) outs(%f : tensor<2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %p, %s : f32
    linalg.yield %t : f32
  } -> tensor<2x2xf32>
  %3 = linalg.generic {indexing_maps = [#rows, #columns, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%2, %z : tensor<2x2xf32>, tensor<2x2xf32>) outs(%f : tensor<2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %p, %s : f32
    linalg.yield %t : f32
  } -> tensor<2x2xf32>
  return %3 : tensor<2x2xf32>
}

{-#
  dialect_resources: {
    builtin: {
      // 1, 1, 65520, 1 and 1, -2, 1 + 2^-11, 2^-24.
      large: "0x400000000000803F0000803F00F07F470000803F",
      small: "0x400000000000803F000000C00010803F00008033"
    }
  }
#-}

// -----

#image = affine_map<(h, w, k, i, j, c) -> (h + i, w + j, c)>
#kernel = affine_map<(h, w, k, i, j, c) -> (i, j, c, k)>
#result = affine_map<(h, w, k, i, j, c) -> (h, w, k)>

// Windows are multiplied more often than their weights are read.
// CHECK-LABEL: func @conv(
// CHECK-NOT:     f16
// CHECK:         return
func.func @conv(%x: tensor<8x8x4xf32>) -> tensor<6x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<1.001> : tensor<3x3x4x8xf32>
  %e = tensor.empty() : tensor<6x6x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x6x8xf32>) -> tensor<6x6x8xf32>
  %y = linalg.generic {indexing_maps = [#image, #kernel, #result],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<8x8x4xf32>, tensor<3x3x4x8xf32>) outs(%f : tensor<6x6x8xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %q = arith.mulf %a, %b : f32
    %t = arith.addf %q, %s : f32
    linalg.yield %t : f32
  } -> tensor<6x6x8xf32>
  return %y : tensor<6x6x8xf32>
}

// -----

#image = affine_map<(h, w, k, i, j, c) -> (h + i, w + j, c)>
#kernel = affine_map<(h, w, k, i, j, c) -> (i, j, c, k)>
#result = affine_map<(h, w, k, i, j, c) -> (h, w, k)>

// A window of one element is none.
// CHECK-LABEL: func @point(
// CHECK:         linalg.generic {{.+}} ins(%{{.+}}, %{{.+}} : tensor<6x6x4xf32>, tensor<1x1x4x8xf16>)
func.func @point(%x: tensor<6x6x4xf32>) -> tensor<6x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<1.001> : tensor<1x1x4x8xf32>
  %e = tensor.empty() : tensor<6x6x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x6x8xf32>) -> tensor<6x6x8xf32>
  %y = linalg.generic {indexing_maps = [#image, #kernel, #result],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<6x6x4xf32>, tensor<1x1x4x8xf32>) outs(%f : tensor<6x6x8xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %q = arith.mulf %a, %b : f32
    %t = arith.addf %q, %s : f32
    linalg.yield %t : f32
  } -> tensor<6x6x8xf32>
  return %y : tensor<6x6x8xf32>
}

// -----

#row = affine_map<(n, k) -> (k)>
#columns = affine_map<(n, k) -> (k, n)>
#sums = affine_map<(n, k) -> (n)>

// Every turn of a loop reads these from the cache, up to 1 MiB of f32; it does not hold those.
// CHECK-LABEL: func @loop(
// CHECK:         scf.for
// CHECK:           linalg.generic {{.+}} ins(%{{.+}}, %{{.+}} : tensor<512xf32>, tensor<512x512xf32>)
// CHECK:           linalg.generic {{.+}} ins(%{{.+}}, %{{.+}} : tensor<512xf32>, tensor<512x513xf16>)
func.func @loop(%x: tensor<512xf32>) -> tensor<513xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<1.001> : tensor<512x512xf32>
  %v = arith.constant dense<1.001> : tensor<512x513xf32>
  %d = tensor.empty() : tensor<513xf32>
  %r:2 = scf.for %i = %c0 to %c9 step %c1 iter_args(%a = %x, %b = %d) -> (tensor<512xf32>, tensor<513xf32>) {
    %e = tensor.empty() : tensor<512xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512xf32>) -> tensor<512xf32>
    %0 = linalg.generic {indexing_maps = [#row, #columns, #sums], iterator_types = ["parallel", "reduction"]}
        ins(%a, %w : tensor<512xf32>, tensor<512x512xf32>) outs(%f : tensor<512xf32>) {
    ^bb0(%g: f32, %h: f32, %s: f32):
      %p = arith.mulf %g, %h : f32
      %t = arith.addf %p, %s : f32
      linalg.yield %t : f32
    } -> tensor<512xf32>
    %k = linalg.fill ins(%zero : f32) outs(%b : tensor<513xf32>) -> tensor<513xf32>
    %1 = linalg.generic {indexing_maps = [#row, #columns, #sums], iterator_types = ["parallel", "reduction"]}
        ins(%0, %v : tensor<512xf32>, tensor<512x513xf32>) outs(%k : tensor<513xf32>) {
    ^bb0(%g: f32, %h: f32, %s: f32):
      %p = arith.mulf %g, %h : f32
      %t = arith.addf %p, %s : f32
      linalg.yield %t : f32
    } -> tensor<513xf32>
    scf.yield %0, %1 : tensor<512xf32>, tensor<513xf32>
  }
  return %r#1 : tensor<513xf32>
}
