// Lines of 25 numbers of bf16 are registers and one number more. Where the target rounds to bf16 by an
// instruction LLVM ends the process over that number, so that lines are copied as integers.
// RUN: keratinc %s -o %t --precision=bf16 --target=x86_64-linux-gnu,znver4 --print-kernels | FileCheck %s
// RUN: keratinc %s -o %t --precision=bf16 --target=x86_64-linux-gnu,cooperlake --print-kernels | FileCheck %s

// CHECK: pad {{.*}} ?x30x30x25xbf16 ?x32x32x26xbf16
func.func @lines(%x: tensor<?x30x30x35xf32> {ktn.name = "x"}) -> (tensor<?x30x30x64xf32> {ktn.name = "y"}) {
  %first = ktn.constant dense<0.01> : tensor<3x3x35x35xf32>
  %second = ktn.constant dense<0.01> : tensor<3x3x25x64xf32>
  %t = ktn.conv %x, %first strides [1, 1] padding [1, 1, 1, 1] dilation [1, 1] channels_last : tensor<?x30x30x35xf32>, tensor<3x3x35x35xf32> -> tensor<?x30x30x35xf32>
  %some = ktn.slice %t[0:?:1, 0:30:1, 0:30:1, 0:25:1] : tensor<?x30x30x35xf32> -> tensor<?x30x30x25xf32>
  %y = ktn.conv %some, %second strides [1, 1] padding [1, 1, 1, 1] dilation [1, 1] channels_last : tensor<?x30x30x25xf32>, tensor<3x3x25x64xf32> -> tensor<?x30x30x64xf32>
  return %y : tensor<?x30x30x64xf32>
}
