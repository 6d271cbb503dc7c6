// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=512 vector-registers=32" --split-input-file | FileCheck %s
// RUN: keratin-opt %s --ktn-emit-tiles="vector-bits=256 vector-registers=16" --split-input-file | FileCheck %s --check-prefix=AVX2

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#lane = affine_map<(i, j) -> (j)>

// Two rows go through each pass in one loop, and share what both are multiplied
// with.
// CHECK-LABEL: func private @scaled(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<6x256xf32>{{.*}}, %[[W:[a-z0-9]+]]: memref<256xf32>, %[[Y:[a-z0-9]+]]: memref<6x256xf32>
// CHECK:         scf.for %[[I:.+]] = %c0 to %c6 step %c2
// CHECK:           scf.for %[[J:.+]] = %c0 to %c256 step %c64 iter_args
// CHECK:             vector.load %[[X]][%[[I]], %[[J]]]
// CHECK:             %[[NEXT:.+]] = arith.addi %[[I]], %c1
// CHECK:             vector.load %[[X]][%[[NEXT]], %[[J]]]
// CHECK:           }
// CHECK:           scf.for %[[J2:.+]] = %c0 to %c256 step %c64
// CHECK:             vector.load %[[X]][%[[I]], %[[J2]]]
// CHECK:             vector.load %[[W]][%[[J2]]]
// CHECK:             vector.store %{{.+}}, %[[Y]][%[[I]], %[[J2]]]
// CHECK-NOT:         vector.load %[[W]]
// CHECK:             vector.store %{{.+}}, %[[Y]][%{{.+}}, %[[J2]]]

// Half of the registers hold sums.
// AVX2-LABEL: func private @scaled(
// AVX2:         scf.for %{{.+}} = %c0 to %c6 step %c2
// AVX2:           scf.for %{{.+}} = %c0 to %c256 step %c32 iter_args
func.func private @scaled(%x: tensor<6x256xf32>, %w: tensor<256xf32>, %out: tensor<6x256xf32>) -> tensor<6x256xf32> attributes {ktn.kernel = "rows"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<6xf32>) -> tensor<6xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<6x256xf32>) outs(%start : tensor<6xf32>) {
  ^bb0(%a: f32, %s: f32):
    %t = arith.addf %s, %a : f32
    linalg.yield %t : f32
  } -> tensor<6xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #lane, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum, %w : tensor<6x256xf32>, tensor<6xf32>, tensor<256xf32>) outs(%out : tensor<6x256xf32>) {
  ^bb0(%a: f32, %s: f32, %f: f32, %o: f32):
    %t = arith.subf %a, %s : f32
    %u = arith.mulf %t, %f : f32
    linalg.yield %u : f32
  } -> tensor<6x256xf32>
  return %y : tensor<6x256xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Rows of about a page are stored one after the other: a load from one would
// wait for the store to the same place in the other.
// CHECK-LABEL: func private @of_a_page(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<6x1000xf32>{{.*}}, %[[Y:[a-z0-9]+]]: memref<6x1000xf32>
// CHECK:         scf.for %[[I:.+]] = %c0 to %c6 step %c2
// CHECK:           scf.for %{{.+}} = %c0 to %c960 step %c64 iter_args
// CHECK:           scf.for %[[J:.+]] = %c0 to %c960 step %c64
// CHECK-COUNT-4:     vector.store %{{.+}}, %[[Y]][%[[I]], %{{.+}}]
// CHECK-NOT:         vector.store
// CHECK:           }
// CHECK:           scf.for %{{.+}} = %c0 to %c960 step %c64
func.func private @of_a_page(%x: tensor<6x1000xf32>, %out: tensor<6x1000xf32>) -> tensor<6x1000xf32> attributes {ktn.kernel = "rows"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<6xf32>) -> tensor<6xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<6x1000xf32>) outs(%start : tensor<6xf32>) {
  ^bb0(%a: f32, %s: f32):
    %t = arith.addf %s, %a : f32
    linalg.yield %t : f32
  } -> tensor<6xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<6x1000xf32>, tensor<6xf32>) outs(%out : tensor<6x1000xf32>) {
  ^bb0(%a: f32, %s: f32, %o: f32):
    %t = arith.subf %a, %s : f32
    linalg.yield %t : f32
  } -> tensor<6x1000xf32>
  return %y : tensor<6x1000xf32>
}
