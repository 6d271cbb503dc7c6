// RUN: keratin-opt %s --ktn-lower-to-linalg --ktn-widen-halves=bf16 --canonicalize | FileCheck %s --check-prefixes=CHECK,WIDE
// RUN: keratin-opt %s --ktn-lower-to-linalg --ktn-widen-halves --canonicalize | FileCheck %s --check-prefixes=CHECK,DOTS

// What one op computes for others is a tensor of f32, rounded all the same; the
// larger of two rounded numbers is not rounded again. Weights stay as they are,
// a bias does not, and neither does what is returned.
// CHECK-LABEL: func @chain(
// WIDE-DAG:      %[[BIAS:.+]] = arith.constant {{.*}} : tensor<3xf32>
// WIDE-DAG:      %[[WEIGHTS:.+]] = arith.constant {{.*}} : tensor<64x3xbf16>
// WIDE:          %[[SUM:.+]] = linalg.generic {{.+}} ins(%{{.+}}, %[[WEIGHTS]] : tensor<40x64xf32>, tensor<64x3xbf16>)
// WIDE:          %[[ROUNDED:.+]] = linalg.generic {{.+}} ins(%[[SUM]] : tensor<40x3xf32>)
// WIDE:            %[[HALF:.+]] = arith.truncf
// WIDE:            arith.extf %[[HALF]]
// WIDE:            -> tensor<40x3xf32>
// WIDE:          %[[SHIFTED:.+]] = linalg.generic {{.+}} ins(%[[ROUNDED]], %[[BIAS]] : tensor<40x3xf32>, tensor<3xf32>)
// WIDE:            %[[X:.+]] = arith.addf {{.+}} : f32
// WIDE:            %[[HALF:.+]] = arith.truncf %[[X]]
// WIDE:            arith.extf %[[HALF]]
// WIDE:          %[[LARGER:.+]] = linalg.generic {{.+}} ins(%[[SHIFTED]] : tensor<40x3xf32>)
// WIDE-NOT:        truncf
// WIDE:            arith.maximumf
// WIDE-NOT:        truncf
// WIDE:            linalg.yield
// WIDE:          linalg.generic {{.+}} ins(%[[LARGER]] : tensor<40x3xf32>)
// WIDE:            arith.truncf
// WIDE:            -> tensor<40x3xbf16>
// DOTS-NOT:      tensor<64x3xf32>
// DOTS:          linalg.generic {{.+}} ins({{.+}} : tensor<40x64xbf16>, tensor<64x3xbf16>)
func.func @chain(%x: tensor<40x64xf32>) -> tensor<40x3xbf16> {
  %w = ktn.constant dense<0.1> : tensor<64x3xbf16>
  %bias = ktn.constant dense<[1.0, 2.0, 3.0]> : tensor<3xbf16>
  %0 = ktn.cast %x to bf16 : tensor<40x64xf32> -> tensor<40x64xbf16>
  %1 = ktn.dot_general %0, %w contract [1] x [0] : tensor<40x64xbf16>, tensor<64x3xbf16> -> tensor<40x3xbf16>
  %2 = ktn.add %1, %bias : tensor<40x3xbf16>, tensor<3xbf16> -> tensor<40x3xbf16>
  %3 = ktn.relu %2 : tensor<40x3xbf16>
  %4 = ktn.exp %3 : tensor<40x3xbf16>
  return %4 : tensor<40x3xbf16>
}

// f16 is widened for each target, and an argument that a product reads many
// times is copied.
// CHECK-LABEL: func @argument(
// CHECK-SAME:    %[[X:.+]]: tensor<40x64xf16>, %[[Y:.+]]: tensor<64x48xf16>
// CHECK-DAG:     linalg.generic {{.+}} ins(%[[X]] : tensor<40x64xf16>) outs(%{{.+}} : tensor<40x64xf32>)
// CHECK-DAG:     linalg.generic {{.+}} ins(%[[Y]] : tensor<64x48xf16>) outs(%{{.+}} : tensor<64x48xf32>)
// CHECK:         linalg.generic {{.+}} ins(%{{.+}}, %{{.+}} : tensor<40x64xf32>, tensor<64x48xf32>)
func.func @argument(%x: tensor<40x64xf16>, %y: tensor<64x48xf16>) -> tensor<40x48xf16> {
  %0 = ktn.dot_general %x, %y contract [1] x [0] : tensor<40x64xf16>, tensor<64x48xf16> -> tensor<40x48xf16>
  return %0 : tensor<40x48xf16>
}

// Weights of a window are multiplied more often than they are read.
// CHECK-LABEL: func @window(
// CHECK:         arith.constant {{.+}} : tensor<3x3x8x8xf32>
// CHECK-NOT:     tensor<3x3x8x8xf16>
func.func @window(%x: tensor<1x9x9x8xf32>) -> tensor<1x7x7x8xf16> {
  %w = ktn.constant dense<0.1> : tensor<3x3x8x8xf16>
  %0 = ktn.cast %x to f16 : tensor<1x9x9x8xf32> -> tensor<1x9x9x8xf16>
  %1 = ktn.conv %0, %w strides [1, 1] padding [0, 0, 0, 0] dilation [1, 1] channels_last
      : tensor<1x9x9x8xf16>, tensor<3x3x8x8xf16> -> tensor<1x7x7x8xf16>
  return %1 : tensor<1x7x7x8xf16>
}

// A state that the next step multiplies is f32 from step to step; what is
// returned of it is f16.
// CHECK-LABEL: func @state(
// CHECK:         scf.for {{.+}} -> (tensor<40x64xf32>)
// CHECK:           linalg.generic {{.+}} ins({{.+}} : tensor<40x64xf32>, tensor<64x64xf32>)
// CHECK:           scf.yield {{.+}} : tensor<40x64xf32>
// CHECK:         linalg.generic
// CHECK:           arith.truncf
// CHECK:         return {{.+}} : tensor<40x64xf16>
func.func @state(%xs: tensor<5x40x64xf32>, %init: tensor<40x64xf32>) -> tensor<40x64xf16> {
  %w = ktn.constant dense<0.1> : tensor<64x64xf16>
  %h = ktn.cast %init to f16 : tensor<40x64xf32> -> tensor<40x64xf16>
  %y = ktn.scan (%x = %xs : tensor<5x40x64xf32>) init (%s = %h : tensor<40x64xf16>) {
    %0 = ktn.dot_general %s, %w contract [1] x [0] : tensor<40x64xf16>, tensor<64x64xf16> -> tensor<40x64xf16>
    %1 = ktn.cast %x to f16 : tensor<40x64xf32> -> tensor<40x64xf16>
    %2 = ktn.add %0, %1 : tensor<40x64xf16>, tensor<40x64xf16> -> tensor<40x64xf16>
    ktn.yield %2 : tensor<40x64xf16>
  } -> (tensor<40x64xf16>)
  return %y : tensor<40x64xf16>
}
