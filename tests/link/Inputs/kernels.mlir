// Kernels of every form, each with work for several threads: convolutions and
// products of constants (packed) and of values, along rows and columns that no
// tile divides, a single image, windows, reductions, rows, elementwise, pads, pieces, a loop.
func.func @f(%image: tensor<?x33x31x24xf32> {ktn.name = "image"},
             %kernel: tensor<3x3x24x40xf32> {ktn.name = "kernel"},
             %a: tensor<?x300x96xf32> {ktn.name = "a"},
             %b: tensor<96x77xf32> {ktn.name = "b"},
             %flat: tensor<100003xf32> {ktn.name = "flat"},
             %batches: tensor<?x6x160xf32> {ktn.name = "batches"},
             %state: tensor<?x160xf32> {ktn.name = "state"},
             %single: tensor<1x15x14x48xf32> {ktn.name = "single"})
    -> (tensor<?x33x31x40xf32>, tensor<?x16x15x24xf32>, tensor<?x33x31x24xf32>,
        tensor<?x300x77xf32>, tensor<?x300x300xf32>, tensor<?x300x96xf32>,
        tensor<?x96xf32>, tensor<?x300xf32>, tensor<100003xf32>, tensor<f32>,
        tensor<?x39x31x24xf32>, tensor<?x300x192xf32>, tensor<?x96x300xf32>,
        tensor<?x160xf32>, tensor<1x15x14x96xf32>) {
  %weights = ktn.constant dense<0.01> : tensor<3x3x24x40xf32>
  %same = ktn.conv %image, %weights strides [1, 1] padding [1, 1, 1, 1] dilation [1, 1] channels_last : tensor<?x33x31x24xf32>, tensor<3x3x24x40xf32> -> tensor<?x33x31x40xf32>
  %given = ktn.conv %image, %kernel strides [1, 1] padding [1, 1, 1, 1] dilation [1, 1] channels_last : tensor<?x33x31x24xf32>, tensor<3x3x24x40xf32> -> tensor<?x33x31x40xf32>
  %convolved = ktn.add %same, %given : tensor<?x33x31x40xf32>
  %pooled = ktn.max_pool %image size [3, 3] strides [2, 2] padding [0, 0, 0, 0] channels_last : tensor<?x33x31x24xf32> -> tensor<?x16x15x24xf32>
  %window = ktn.constant dense<0.1> : tensor<3x3x1x24xf32>
  %depthwise = ktn.conv %image, %window strides [1, 1] padding [1, 1, 1, 1] dilation [1, 1] channels_last {groups = 24} : tensor<?x33x31x24xf32>, tensor<3x3x1x24xf32> -> tensor<?x33x31x24xf32>
  %product = ktn.dot_general %a, %b contract [2] x [0] : tensor<?x300x96xf32>, tensor<96x77xf32> -> tensor<?x300x77xf32>
  %scores = ktn.dot_general %a, %a batch [0] x [0] contract [2] x [2] : tensor<?x300x96xf32>, tensor<?x300x96xf32> -> tensor<?x300x300xf32>
  %softmax = ktn.softmax %a {axis = 2} : tensor<?x300x96xf32>
  %columns = ktn.sum %a, [1] : tensor<?x300x96xf32> -> tensor<?x96xf32>
  %rows = ktn.sum %a, [2] : tensor<?x300x96xf32> -> tensor<?x300xf32>
  %tanh = ktn.tanh %flat : tensor<100003xf32>
  %total = ktn.sum %flat, [0] : tensor<100003xf32> -> tensor<f32>
  %padded = ktn.pad %image low [0, 2, 0, 0] high [0, 4, 0, 0] value 0.5 : f32 : tensor<?x33x31x24xf32> -> tensor<?x39x31x24xf32>
  %pair = ktn.concat %a, %softmax {axis = 2} : tensor<?x300x96xf32>, tensor<?x300x96xf32> -> tensor<?x300x192xf32>
  %turned = ktn.transpose %a, [0, 2, 1] : tensor<?x300x96xf32> -> tensor<?x96x300xf32>
  %steps = ktn.transpose %batches, [1, 0, 2] : tensor<?x6x160xf32> -> tensor<6x?x160xf32>
  %recurrent = ktn.constant dense<0.02> : tensor<160x160xf32>
  %last = ktn.scan (%x = %steps : tensor<6x?x160xf32>) init (%h = %state : tensor<?x160xf32>) {
    %0 = ktn.dot_general %h, %recurrent contract [1] x [0] : tensor<?x160xf32>, tensor<160x160xf32> -> tensor<?x160xf32>
    %1 = ktn.add %0, %x : tensor<?x160xf32>
    %2 = ktn.tanh %1 : tensor<?x160xf32>
    ktn.yield %2 : tensor<?x160xf32>
  } -> (tensor<?x160xf32>)
  %filters = ktn.constant dense<0.03> : tensor<3x3x48x96xf32>
  %tiles = ktn.conv %single, %filters strides [1, 1] padding [1, 1, 1, 1] dilation [1, 1] channels_last : tensor<1x15x14x48xf32>, tensor<3x3x48x96xf32> -> tensor<1x15x14x96xf32>
  return %convolved, %pooled, %depthwise, %product, %scores, %softmax, %columns, %rows, %tanh, %total, %padded, %pair, %turned, %last, %tiles
      : tensor<?x33x31x40xf32>, tensor<?x16x15x24xf32>, tensor<?x33x31x24xf32>,
        tensor<?x300x77xf32>, tensor<?x300x300xf32>, tensor<?x300x96xf32>,
        tensor<?x96xf32>, tensor<?x300xf32>, tensor<100003xf32>, tensor<f32>,
        tensor<?x39x31x24xf32>, tensor<?x300x192xf32>, tensor<?x96x300xf32>,
        tensor<?x160xf32>, tensor<1x15x14x96xf32>
}
