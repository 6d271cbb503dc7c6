// RUN: keratin-opt %s --keratin-llvm | FileCheck %s
// RUN: keratin-opt %s --keratin-llvm=optimize=false | FileCheck %s --check-prefix=LIBM

// Only the LLVM dialect is left, and the function has the signature of C.
// CHECK-LABEL: llvm.func @main(
// CHECK-SAME:    %{{[a-z0-9]+}}: !llvm.ptr, %{{[a-z0-9]+}}: !llvm.ptr, %{{[a-z0-9]+}}: i64, %{{[a-z0-9]+}}: !llvm.ptr)
// CHECK-NOT:     unrealized_conversion_cast
// CHECK:         llvm.call @kernel{{[a-z.]*}}({{.*}}) : (!llvm.ptr, i64, !llvm.ptr, i64) -> ()
// CHECK:         llvm.intr.memcpy
// CHECK-NOT:     {{memrefCopy|malloc|free}}
func.func @main(%weights: memref<?xi8>, %arena: memref<?xi8>, %batch: index, %image: memref<?xi8>) {
  %c0 = arith.constant 0 : index
  %x = memref.view %image[%c0][%batch] : memref<?xi8> to memref<?x16xf32>
  %y = memref.view %arena[%c0][%batch] : memref<?xi8> to memref<?x16xf32>
  call @kernel(%x, %y) : (memref<?x16xf32>, memref<?x16xf32>) -> ()
  memref.copy %y, %x : memref<?x16xf32> to memref<?x16xf32>
  return
}

// Each kind of vector op that a kernel may hold has a lowering.
// CHECK-LABEL: llvm.func @kernel{{.*}}(
// CHECK-NOT:     llvm.intr.{{(exp|log|tanh|pow)}}
// CHECK:         llvm.intr.fma
// CHECK:         llvm.return
// LIBM-LABEL: llvm.func @kernel{{.*}}(
// LIBM:         llvm.call @expf
// LIBM-NOT:     llvm.intr.fma
func.func private @kernel(%x: memref<?x16xf32>, %y: memref<?x16xf32>) attributes {ktn.kernel = "rows"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %rows = memref.dim %x, %c0 : memref<?x16xf32>
  scf.for %i = %c0 to %rows step %c1 {
    %a = vector.load %x[%i, %c0] : memref<?x16xf32>, vector<16xf32>
    %e = math.exp %a : vector<16xf32>
    %sum = vector.reduction <add>, %e, %zero : vector<16xf32> into f32
    %s = vector.broadcast %sum : f32 to vector<16xf32>
    %f = vector.fma %e, %s, %a : vector<16xf32>
    %m = arith.maximumf %f, %a : vector<16xf32>
    %half = vector.extract_strided_slice %m {offsets = [0], sizes = [8], strides = [1]}
      : vector<16xf32> to vector<8xf32>
    %back = vector.insert_strided_slice %half, %f {offsets = [8], strides = [1]}
      : vector<8xf32> into vector<16xf32>
    %table = vector.shape_cast %back : vector<16xf32> to vector<4x4xf32>
    %row = vector.extract %table[1] : vector<4xf32> from vector<4x4xf32>
    %wide = vector.shuffle %row, %row [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7]
      : vector<4xf32>, vector<4xf32>
    %step = vector.step : vector<16xindex>
    %mask = vector.create_mask %rows : vector<16xi1>
    %g = vector.gather %x[%i, %c0] [%step], %mask, %wide
      : memref<?x16xf32>, vector<16xindex>, vector<16xi1>, vector<16xf32> into vector<16xf32>
    %k = vector.maskedload %x[%i, %c0], %mask, %g
      : memref<?x16xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
    %four = vector.from_elements %sum, %zero, %sum, %zero : vector<4xf32>
    %all = vector.insert_strided_slice %four, %k {offsets = [4], strides = [1]}
      : vector<4xf32> into vector<16xf32>
    vector.store %all, %y[%i, %c0] : memref<?x16xf32>, vector<16xf32>
  }
  return
}
