// RUN: keratin-opt %s --ktn-convert-to-llvm --reconcile-unrealized-casts --split-input-file | FileCheck %s

// Ops of all dialects are converted, block arguments with them.
// CHECK-LABEL: llvm.func @sum(
// CHECK-SAME:    %[[N:.+]]: i64, %[[X:.+]]: f32) -> f32
// CHECK:         llvm.br ^[[LOOP:.+]](%{{.+}}, %{{.+}} : i64, f32)
// CHECK:       ^[[LOOP]](%{{.+}}: i64, %{{.+}}: f32):
// CHECK:         llvm.intr.fma
// CHECK:         llvm.icmp "slt"
// CHECK:         llvm.cond_br
// CHECK-NOT:     unrealized_conversion_cast
func.func @sum(%n: index, %x: f32) -> f32 {
  %zero = arith.constant 0 : index
  %one = index.constant 1
  %none = arith.constant 0.0 : f32
  cf.br ^loop(%zero, %none : index, f32)
^loop(%i: index, %sum: f32):
  %next = math.fma %x, %x, %sum : f32
  %after = arith.addi %i, %one : index
  %more = arith.cmpi slt, %after, %n : index
  cf.cond_br %more, ^loop(%after, %next : index, f32), ^end
^end:
  return %next : f32
}

// -----

// Vectors of several dimensions, and slices of others, become what LLVM has.
// CHECK-LABEL: llvm.func @vectors(
// CHECK-NOT:     vector.{{[a-z]}}
// CHECK:         llvm.shufflevector
// CHECK:         llvm.return
func.func @vectors(%rows: vector<2x8xf32>) -> vector<4xf32> {
  %columns = vector.transpose %rows, [1, 0] : vector<2x8xf32> to vector<8x2xf32>
  %back = vector.transpose %columns, [1, 0] : vector<8x2xf32> to vector<2x8xf32>
  %row = vector.extract %back[1] : vector<8xf32> from vector<2x8xf32>
  %half = vector.extract_strided_slice %row {offsets = [4], sizes = [4], strides = [1]} : vector<8xf32> to vector<4xf32>
  return %half : vector<4xf32>
}
