func.func @layer(%x: tensor<4x96xf32> {ktn.name = "x"}, %w: tensor<96x64xf32> {ktn.name = "w"}) -> (tensor<4x64xf32> {ktn.name = "y"}) {
  %xw = ktn.dot_general %x, %w contract [1] x [0] : tensor<4x96xf32>, tensor<96x64xf32> -> tensor<4x64xf32> loc("first")
  %y = ktn.tanh %xw : tensor<4x64xf32> loc("first")
  return %y : tensor<4x64xf32>
}
