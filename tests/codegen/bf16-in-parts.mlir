// The columns behind the last whole vector of a product are four numbers of bf16, which a loop over rows
// finds in a register: no library rounds them there.
// RUN: keratinc %s -o %t --target=x86-64
// RUN: keratinc %s -o %t --target=x86-64-v2
// RUN: keratinc %s -o %t --target=x86-64-v3

func.func @columns(%x: tensor<?x65xbf16> {ktn.name = "x"}, %w: tensor<65x100xbf16> {ktn.name = "w"},
                   %b: tensor<100xbf16> {ktn.name = "b"}) -> (tensor<?x100xbf16> {ktn.name = "y"}) {
  %d = ktn.dot_general %x, %w contract [1] x [0] : tensor<?x65xbf16>, tensor<65x100xbf16> -> tensor<?x100xbf16>
  %e = ktn.bias_add %d, %b, channels_last : tensor<?x100xbf16>, tensor<100xbf16>
  %y = ktn.tanh %e : tensor<?x100xbf16>
  return %y : tensor<?x100xbf16>
}
