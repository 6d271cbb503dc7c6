func.func @row(%x: tensor<1048576xf32> {ktn.name = "x"}) -> (tensor<1048576xf32> {ktn.name = "y"}) {
  %y = ktn.relu %x : tensor<1048576xf32> loc("relu")
  return %y : tensor<1048576xf32>
}
