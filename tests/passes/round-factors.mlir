// RUN: keratin-opt %s --ktn-round-factors=narrow=true --canonicalize --split-input-file | FileCheck %s --check-prefixes=CHECK,NARROW
// RUN: keratin-opt %s --ktn-round-factors --canonicalize --split-input-file | FileCheck %s --check-prefixes=CHECK,WIDE

#rows = affine_map<(m, n, k) -> (m, k)>
#columns = affine_map<(m, n, k) -> (k, n)>
#sums = affine_map<(m, n, k) -> (m, n)>

// Weights are rounded now, to nearest even: 1 + 2^-8 and 1 + 3 * 2^-8 are halfway between two numbers
// of bf16. Both products share what is rounded of x.
// CHECK-LABEL: func @dense(
// CHECK-SAME:    %[[X:.+]]: tensor<?x2xf32>
// CHECK-DAG:     arith.constant dense<{{\[}}[1.000000e+00, 1.015630e+00], [-2.000000e+00, 0x7F80]]> : tensor<2x2xbf16>
// CHECK:         linalg.generic {{.+}} ins(%[[X]] : tensor<?x2xf32>)
// CHECK:           arith.truncf %{{.+}} : f32 to bf16
// WIDE-NEXT:       arith.extf %{{.+}} : bf16 to f32
// NARROW:        } -> tensor<?x2xbf16>
// WIDE:          } -> tensor<?x2xf32>
// NARROW:        linalg.generic {{.+}} ins(%{{.+}}, %{{.+}} : tensor<?x2xbf16>, tensor<2x2xbf16>)
// WIDE:          linalg.generic {{.+}} ins(%{{.+}}, %{{.+}} : tensor<?x2xf32>, tensor<2x2xbf16>)
// CHECK-NOT:       truncf
// CHECK:           arith.extf %{{.+}} : bf16 to f32
// CHECK:           arith.mulf %{{.+}} : f32
// CHECK:           arith.addf %{{.+}} : f32
// CHECK-NOT:     truncf
// CHECK:         return
func.func @dense(%x: tensor<?x2xf32>) -> (tensor<?x2xf32>, tensor<?x2xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<[[1.00390625, 1.01171875], [-2.0, 3.4e38]]> : tensor<2x2xf32>
  %v = arith.constant dense<2.0> : tensor<2x2xf32>
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
  %z = linalg.generic {indexing_maps = [#rows, #columns, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %v : tensor<?x2xf32>, tensor<2x2xf32>) outs(%f : tensor<?x2xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %p, %s : f32
    linalg.yield %t : f32
  } -> tensor<?x2xf32>
  return %y, %z : tensor<?x2xf32>, tensor<?x2xf32>
}

// -----

#image = affine_map<(h, w, k, i, j, c) -> (h + i, w + j, c)>
#kernel = affine_map<(h, w, k, i, j, c) -> (i, j, c, k)>
#result = affine_map<(h, w, k, i, j, c) -> (h, w, k)>

// An image is rounded inside of its border. Weights of a window stay f32 where nothing multiplies bf16.
// CHECK-LABEL: func @conv(
// NARROW-DAG:    arith.constant dense<1.000000e+00> : tensor<3x3x4x8xbf16>
// WIDE-DAG:      arith.constant dense<1.000000e+00> : tensor<3x3x4x8xf32>
// NARROW:        tensor.pad {{.+}}
// NARROW:        } : tensor<6x6x4xbf16> to tensor<8x8x4xbf16>
// WIDE:          } : tensor<6x6x4xf32> to tensor<8x8x4xf32>
// CHECK:         linalg.generic
// NARROW:          arith.extf
// WIDE-NOT:        arith.extf
// CHECK:           arith.mulf
func.func @conv(%x: tensor<6x6x4xf32>) -> tensor<6x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<1.001> : tensor<3x3x4x8xf32>
  %p = tensor.pad %x low[1, 1, 0] high[1, 1, 0] {
  ^bb0(%h: index, %v: index, %c: index):
    tensor.yield %zero : f32
  } : tensor<6x6x4xf32> to tensor<8x8x4xf32>
  %e = tensor.empty() : tensor<6x6x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x6x8xf32>) -> tensor<6x6x8xf32>
  %y = linalg.generic {indexing_maps = [#image, #kernel, #result],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%p, %w : tensor<8x8x4xf32>, tensor<3x3x4x8xf32>) outs(%f : tensor<6x6x8xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %q = arith.mulf %a, %b : f32
    %t = arith.addf %q, %s : f32
    linalg.yield %t : f32
  } -> tensor<6x6x8xf32>
  return %y : tensor<6x6x8xf32>
}

// -----

#image = affine_map<(h, w, c, i, j) -> (h + i, w + j, c)>
#kernel = affine_map<(h, w, c, i, j) -> (i, j, c)>
#result = affine_map<(h, w, c, i, j) -> (h, w, c)>
#row = affine_map<(m, k) -> (m, k)>
#sum = affine_map<(m, k) -> (m)>

// A depthwise window sums over no channels, and a sum of squares shares nothing.
// CHECK-LABEL: func @others(
// CHECK-NOT:     bf16
// CHECK:         return
func.func @others(%x: tensor<8x8x4xf32>, %w: tensor<3x3x4xf32>, %m: tensor<4x9xf32>) -> (tensor<6x6x4xf32>, tensor<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x6x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x6x4xf32>) -> tensor<6x6x4xf32>
  %y = linalg.generic {indexing_maps = [#image, #kernel, #result],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<8x8x4xf32>, tensor<3x3x4xf32>) outs(%f : tensor<6x6x4xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %q = arith.mulf %a, %b : f32
    %t = arith.addf %q, %s : f32
    linalg.yield %t : f32
  } -> tensor<6x6x4xf32>
  %e1 = tensor.empty() : tensor<4xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4xf32>) -> tensor<4xf32>
  %z = linalg.generic {indexing_maps = [#row, #row, #sum], iterator_types = ["parallel", "reduction"]}
      ins(%m, %m : tensor<4x9xf32>, tensor<4x9xf32>) outs(%f1 : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %q = arith.mulf %a, %b : f32
    %t = arith.addf %q, %s : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  return %y, %z : tensor<6x6x4xf32>, tensor<4xf32>
}

// -----

#rows = affine_map<(m, n, k) -> (m, k)>
#columns = affine_map<(m, n, k) -> (k, n)>
#sums = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(m, n) -> (m, n)>

// What is rounded for a product is read rounded by the sum of a residual as well, so that only that is kept.
// CHECK-LABEL: func @residual(
// CHECK-SAME:    %[[X:.+]]: tensor<4x4xf32>
// CHECK:         %[[Y:.+]] = linalg.generic {{.+}} ins(%[[X]] : tensor<4x4xf32>)
// CHECK:           math.tanh
// CHECK:         %[[R:.+]] = linalg.generic {{.+}} ins(%[[Y]] : tensor<4x4xf32>)
// CHECK:           arith.truncf
// CHECK:         %[[P:.+]] = linalg.generic {{.+}} ins(%[[R]], %{{.+}})
// CHECK:         linalg.generic {{.+}} ins(%[[P]], %[[R]] :
// NARROW-NEXT:   ^bb0(%[[A:.+]]: f32, %[[B:.+]]: bf16, %{{.+}}: f32):
// NARROW-NEXT:     %[[W:.+]] = arith.extf %[[B]] : bf16 to f32
// NARROW-NEXT:     arith.addf %[[A]], %[[W]] : f32
func.func @residual(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<2.0> : tensor<4x4xf32>
  %e = tensor.empty() : tensor<4x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %t = math.tanh %a : f32
    linalg.yield %t : f32
  } -> tensor<4x4xf32>
  %p = linalg.generic {indexing_maps = [#rows, #columns, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%y, %w : tensor<4x4xf32>, tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %q = arith.mulf %a, %b : f32
    %t = arith.addf %q, %s : f32
    linalg.yield %t : f32
  } -> tensor<4x4xf32>
  %r = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%p, %y : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// -----

#image = affine_map<(h, w, k, i, j, c) -> (h + i, w + j, c)>
#kernel = affine_map<(h, w, k, i, j, c) -> (i, j, c, k)>
#result = affine_map<(h, w, k, i, j, c) -> (h, w, k)>

// Three colours become four where products are made of pairs.
// CHECK-LABEL: func @colours(
// NARROW:        arith.constant dense_resource<padded_bf16{{.*}}> : tensor<3x3x4x8xbf16>
// NARROW:        tensor.pad %{{.+}} low[0, 0, 0] high[0, 0, 1]
// NARROW:        } : tensor<8x8x3xbf16> to tensor<8x8x4xbf16>
// WIDE-NOT:      tensor.pad
// WIDE:          tensor<3x3x3x8xf32>
func.func @colours(%x: tensor<8x8x3xf32>) -> tensor<6x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<1.001> : tensor<3x3x3x8xf32>
  %e = tensor.empty() : tensor<6x6x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x6x8xf32>) -> tensor<6x6x8xf32>
  %y = linalg.generic {indexing_maps = [#image, #kernel, #result],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<8x8x3xf32>, tensor<3x3x3x8xf32>) outs(%f : tensor<6x6x8xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %q = arith.mulf %a, %b : f32
    %t = arith.addf %q, %s : f32
    linalg.yield %t : f32
  } -> tensor<6x6x8xf32>
  return %y : tensor<6x6x8xf32>
}

// -----

#padded = affine_map<(i, j, c, h, w) -> (i * 2 + h, j * 2 + w, c)>
#size = affine_map<(i, j, c, h, w) -> (h, w)>
#pool = affine_map<(i, j, c, h, w) -> (i, j, c)>
#pixels = affine_map<(i, j, k, c) -> (i, j, c)>
#matrix = affine_map<(i, j, k, c) -> (c, k)>
#point = affine_map<(i, j, k, c) -> (i, j, k)>

// The largest of a window is taken of rounded elements, which are half as many bytes.
// CHECK-LABEL: func @largest(
// NARROW:        %[[E:.+]] = math.exp
// NARROW:        arith.truncf
// NARROW:        } -> tensor<8x8x16xbf16>
// NARROW:        ins(%{{.+}}, %{{.+}} : tensor<8x8x16xbf16>, tensor<2x2xf32>)
// NARROW:          %[[W:.+]] = arith.extf
// NARROW-NEXT:     arith.maximumf %[[W]]
// NARROW:        arith.truncf
// WIDE:          ins(%{{.+}}, %{{.+}} : tensor<8x8x16xf32>, tensor<2x2xf32>)
// WIDE-NOT:      arith.extf
// WIDE:          arith.maximumf
func.func @largest(%x: tensor<8x8x16xf32>) -> tensor<4x4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %k = arith.constant dense<2.0> : tensor<16x16xf32>
  %s = tensor.empty() : tensor<2x2xf32>
  %d = tensor.empty() : tensor<8x8x16xf32>
  %e = tensor.empty() : tensor<4x4x16xf32>
  %f = linalg.fill ins(%lowest : f32) outs(%e : tensor<4x4x16xf32>) -> tensor<4x4x16xf32>
  %g = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4x16xf32>) -> tensor<4x4x16xf32>
  %x1 = linalg.generic {indexing_maps = [affine_map<(i, j, c) -> (i, j, c)>, affine_map<(i, j, c) -> (i, j, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<8x8x16xf32>) outs(%d : tensor<8x8x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.exp %a : f32
    linalg.yield %t : f32
  } -> tensor<8x8x16xf32>
  %y = linalg.generic {indexing_maps = [#padded, #size, #pool],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x1, %s : tensor<8x8x16xf32>, tensor<2x2xf32>) outs(%f : tensor<4x4x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.maximumf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<4x4x16xf32>
  %z = linalg.generic {indexing_maps = [#pixels, #matrix, #point],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%y, %k : tensor<4x4x16xf32>, tensor<16x16xf32>) outs(%g : tensor<4x4x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.mulf %a, %b : f32
    %t = arith.addf %q, %o : f32
    linalg.yield %t : f32
  } -> tensor<4x4x16xf32>
  return %z : tensor<4x4x16xf32>
}

// -----

#row = affine_map<(n, k) -> (k)>
#columns = affine_map<(n, k) -> (k, n)>
#sums = affine_map<(n, k) -> (n)>

// Weights that each turn of a loop reads from the cache stay f32 where nothing multiplies bf16: 1 + 3 * 2^-8 is rounded all the same.
// CHECK-LABEL: func @loop(
// NARROW-DAG:    arith.constant dense<1.015630e+00> : tensor<8x8xbf16>
// WIDE-DAG:      arith.constant dense<1.015625{{.*}}> : tensor<8x8xf32>
// CHECK:         scf.for
// NARROW:          linalg.generic {{.+}} ins(%{{.+}}, %{{.+}} : tensor<8xbf16>, tensor<8x8xbf16>)
// WIDE:            linalg.generic {{.+}} ins(%{{.+}}, %{{.+}} : tensor<8xf32>, tensor<8x8xf32>)
func.func @loop(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<1.01171875> : tensor<8x8xf32>
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%a = %x) -> (tensor<8xf32>) {
    %e = tensor.empty() : tensor<8xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    %0 = linalg.generic {indexing_maps = [#row, #columns, #sums], iterator_types = ["parallel", "reduction"]}
        ins(%a, %w : tensor<8xf32>, tensor<8x8xf32>) outs(%f : tensor<8xf32>) {
    ^bb0(%g: f32, %h: f32, %s: f32):
      %p = arith.mulf %g, %h : f32
      %t = arith.addf %p, %s : f32
      linalg.yield %t : f32
    } -> tensor<8xf32>
    scf.yield %0 : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

#rows = affine_map<(m, n, k) -> (m, k)>
#columns = affine_map<(m, n, k) -> (k, n)>
#sums = affine_map<(m, n, k) -> (m, n)>

// What only a product reads of some that are joined is rounded before that:
// what joins them has half as many bytes, and nobody reads them again. What
// somebody else reads as well is joined as it is.
// CHECK-LABEL: func @joined(
// CHECK-SAME:    %[[X:.+]]: tensor<4x2xf32>, %[[H:.+]]: tensor<4x3xf32>
// CHECK:         linalg.generic {{.+}} ins(%[[H]] : tensor<4x3xf32>)
// CHECK:           arith.truncf
// CHECK:         linalg.generic {{.+}} ins(%[[X]] : tensor<4x2xf32>)
// CHECK:           arith.truncf
// NARROW:        tensor.concat dim(1) %{{.+}}, %{{.+}} : (tensor<4x2xbf16>, tensor<4x3xbf16>) -> tensor<4x5xbf16>
// WIDE:          tensor.concat dim(1) %{{.+}}, %{{.+}} : (tensor<4x2xf32>, tensor<4x3xf32>) -> tensor<4x5xf32>
// CHECK-NOT:     truncf
// CHECK:         return
// CHECK-LABEL: func @read_twice(
// CHECK:         %[[ALL:.+]] = tensor.concat dim(1) %{{.+}}, %{{.+}} : (tensor<4x2xf32>, tensor<4x3xf32>) -> tensor<4x5xf32>
// CHECK:         linalg.generic {{.+}} ins(%[[ALL]] : tensor<4x5xf32>)
// CHECK:           arith.truncf
func.func @joined(%x: tensor<4x2xf32>, %h: tensor<4x3xf32>, %w: tensor<5x6xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %xh = tensor.concat dim(1) %x, %h : (tensor<4x2xf32>, tensor<4x3xf32>) -> tensor<4x5xf32>
  %e = tensor.empty() : tensor<4x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = linalg.generic {indexing_maps = [#rows, #columns, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%xh, %w : tensor<4x5xf32>, tensor<5x6xf32>) outs(%f : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %p, %s : f32
    linalg.yield %t : f32
  } -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

func.func @read_twice(%x: tensor<4x2xf32>, %h: tensor<4x3xf32>, %w: tensor<5x6xf32>) -> (tensor<4x6xf32>, tensor<4x5xf32>) {
  %zero = arith.constant 0.0 : f32
  %xh = tensor.concat dim(1) %x, %h : (tensor<4x2xf32>, tensor<4x3xf32>) -> tensor<4x5xf32>
  %e = tensor.empty() : tensor<4x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = linalg.generic {indexing_maps = [#rows, #columns, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%xh, %w : tensor<4x5xf32>, tensor<5x6xf32>) outs(%f : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %p, %s : f32
    linalg.yield %t : f32
  } -> tensor<4x6xf32>
  return %y, %xh : tensor<4x6xf32>, tensor<4x5xf32>
}
