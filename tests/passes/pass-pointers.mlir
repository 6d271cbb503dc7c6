// RUN: keratin-opt %s --ktn-pass-pointers --split-input-file | FileCheck %s

// A static memref is its pointer, which keeps what LLVM is to know of it.
// CHECK-LABEL: func private @static(
// CHECK-SAME:    %{{.+}}: !llvm.ptr {llvm.noalias}, %{{.+}}: f32)
func.func private @static(%x: memref<4x16xf32> {llvm.noalias, ktn.constant}, %y: f32) {
  return
}

// -----

// What a type leaves open follows the pointer: extents, then strides.
// CHECK-LABEL: func private @open(
// CHECK-SAME:    %{{.+}}: !llvm.ptr, %[[EXTENT:.+]]: i64, %[[STRIDE:.+]]: i64)
// CHECK:         llvm.insertvalue %[[EXTENT]], %{{.+}}[3, 0]
// CHECK:         llvm.insertvalue %[[STRIDE]], %{{.+}}[4, 0]
func.func private @open(%x: memref<?x16xf32, strided<[?, 1], offset: ?>>) {
  %c0 = arith.constant 0 : index
  %0 = memref.load %x[%c0, %c0] : memref<?x16xf32, strided<[?, 1], offset: ?>>
  return
}

// The caller adds an open offset to the pointer.
// CHECK-LABEL: func @caller(
// CHECK-SAME:    %{{.+}}: !llvm.ptr, %{{.+}}: index)
// CHECK:         %[[POINTER:.+]] = llvm.getelementptr
// CHECK:         call @open(%[[POINTER]], %{{.+}}, %{{.+}}) : (!llvm.ptr, i64, i64) -> ()
func.func @caller(%bytes: memref<?xi8>, %row: index) {
  %c0 = arith.constant 0 : index
  %x = memref.view %bytes[%c0][%row] : memref<?xi8> to memref<?x16xf32>
  %y = memref.subview %x[%row, 0] [%row, 16] [1, 1]
    : memref<?x16xf32> to memref<?x16xf32, strided<[16, 1], offset: ?>>
  %z = memref.cast %y : memref<?x16xf32, strided<[16, 1], offset: ?>>
    to memref<?x16xf32, strided<[?, 1], offset: ?>>
  call @open(%z) : (memref<?x16xf32, strided<[?, 1], offset: ?>>) -> ()
  return
}
