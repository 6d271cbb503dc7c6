//===- BenchKernels.cpp - the kernels that keratin-bench times ------------===//
#include "BenchKernels.h"

#include <random>

namespace K = keratin::backend;

namespace keratin::tools {

static int64_t elementsOf(const K::Shape &shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

/// Bytes of float32 tensors of these shapes.
static double bytesOf(const std::vector<K::Shape> &shapes) {
  double bytes = 0;
  for (const K::Shape &shape : shapes)
    bytes += sizeof(float) * static_cast<double>(elementsOf(shape));
  return bytes;
}

K::Array randomArray(const K::Shape &shape) {
  static std::mt19937 generator(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(elementsOf(shape));
  for (float &value : values)
    value = uniform(generator);
  return K::Array::of(shape, values);
}

/// "conv/56/64_64": the name, then numbers.
static std::string named(std::string name, std::vector<int64_t> numbers,
                         char between = '/') {
  for (size_t index = 0; index < numbers.size(); ++index)
    name += (index ? between : '/') + std::to_string(numbers[index]);
  return name;
}

static std::string windowed(const char *name, int64_t window) {
  return name + std::to_string(window) + "x" + std::to_string(window);
}

static K::Tensor weight(const K::Shape &shape) {
  return K::variable(randomArray(shape));
}

/// Of images of `size` by `size` pixels.
static BenchKernel convolution(int64_t size, int64_t window, int64_t in,
                               int64_t out, int64_t stride = 1) {
  std::string name =
      named(named(windowed("conv", window), {size}), {in, out}, '_');
  if (stride > 1)
    name = named(name, {stride});
  K::Shape kernel{window, window, in, out};
  auto build = [=](const K::Tensors &x) {
    return K::conv2d(x[0], weight(kernel), {stride, stride}, "same",
                     "channels_last");
  };
  int64_t outSize = (size + stride - 1) / stride;
  K::Shape image{1, size, size, in}, result{1, outSize, outSize, out};
  double flops = 2.0 * static_cast<double>(elementsOf(result)) *
                 static_cast<double>(window * window * in);
  return {name, {image}, build, flops, bytesOf({image, kernel, result})};
}

/// The same convolution in each way that there is: the floor is that of sums
/// over the window.
static void addWinograd(std::vector<BenchKernel> &kernels, int64_t size,
                        int64_t in, int64_t out) {
  for (auto [kind, choice] : {std::pair("conv3x3_sums", "off"),
                              {"conv3x3_f2", "2"},
                              {"conv3x3_f4", "4"}}) {
    BenchKernel kernel = convolution(size, 3, in, out);
    kernel.name = named(named(kind, {size}), {in, out}, '_');
    kernel.settings.winograd = choice;
    kernels.push_back(std::move(kernel));
  }
}

/// The gradient of a convolution by its image, or by its kernel, as a training
/// step computes it: nothing is known ahead of time.
static BenchKernel convolutionGradient(bool byKernel, int64_t size,
                                       int64_t window, int64_t in,
                                       int64_t out) {
  constexpr int64_t batch = 8;
  auto build = [=](const K::Tensors &x) {
    K::Tensor y = K::conv2d(x[0], x[1], {1, 1}, "same", "channels_last");
    return K::gradients(y * x[2], {x[byKernel]})[0];
  };
  std::vector<K::Shape> shapes{{batch, size, size, in},
                               {window, window, in, out},
                               {batch, size, size, out}};
  double flops = 2.0 * static_cast<double>(elementsOf(shapes[2])) *
                 static_cast<double>(window * window * in);
  const char *kind = byKernel ? "conv_kernel_grad" : "conv_grad";
  return {named(named(windowed(kind, window), {size}), {in, out}, '_'), shapes,
          build, flops, bytesOf(shapes)};
}

/// The gradient of a pool of images.
static BenchKernel poolGradient(const char *mode, int64_t window,
                                int64_t stride) {
  constexpr int64_t batch = 8, size = 56, channels = 64;
  auto build = [=](const K::Tensors &x) {
    K::Tensor y = K::pool2d(x[0], {window, window}, {stride, stride}, "same",
                            "channels_last", mode);
    return K::gradients(y * x[1], {x[0]})[0];
  };
  int64_t pooled = size / stride;
  K::Shape image{batch, size, size, channels};
  K::Shape result{batch, pooled, pooled, channels};
  std::string kind = std::string(mode) + "_pool_grad";
  return {named(windowed(kind.c_str(), window), {stride}),
          {image, result},
          build,
          0,
          bytesOf({image, image, result})};
}

static BenchKernel depthwise(int64_t size, int64_t channels,
                             int64_t stride = 1) {
  K::Shape kernel{3, 3, channels, 1};
  auto build = [=](const K::Tensors &x) {
    return K::depthwise_conv2d(x[0], weight(kernel), {stride, stride}, "same",
                               "channels_last");
  };
  int64_t outSize = (size + stride - 1) / stride;
  K::Shape image{1, size, size, channels};
  K::Shape result{1, outSize, outSize, channels};
  std::vector<int64_t> numbers{size, channels};
  if (stride > 1)
    numbers.push_back(stride);
  return {named("depthwise3x3", numbers),
          {image},
          build,
          2.0 * 9 * static_cast<double>(elementsOf(result)),
          bytesOf({image, kernel, result})};
}

static BenchKernel product(int64_t rows, int64_t inner, int64_t columns) {
  K::Shape left{rows, inner}, right{inner, columns};
  auto build = [=](const K::Tensors &x) { return K::dot(x[0], weight(right)); };
  return {named("matmul", {rows, inner, columns}),
          {left},
          build,
          2.0 * static_cast<double>(rows * inner * columns),
          bytesOf({left, right, {rows, columns}})};
}

/// Both factors are inputs: nothing is packed ahead of time.
static BenchKernel productOfInputs(int64_t size) {
  auto build = [](const K::Tensors &x) { return K::dot(x[0], x[1]); };
  K::Shape square{size, size};
  return {named("matmul_of_inputs", {size}),
          {square, square},
          build,
          2.0 * static_cast<double>(size * size * size),
          bytesOf({square, square, square})};
}

/// For each of 12 heads; the right factor may have its rows as columns.
static BenchKernel productOfHeads(bool transposed, int64_t rows, int64_t inner,
                                  int64_t columns) {
  constexpr int64_t heads = 12;
  K::Shape left{heads, rows, inner}, result{heads, rows, columns};
  K::Shape right = transposed ? K::Shape{heads, columns, inner}
                              : K::Shape{heads, inner, columns};
  auto build = [=](const K::Tensors &x) {
    return K::batch_dot(x[0], x[1], {2, transposed ? 2 : 1});
  };
  return {named(transposed ? "batch_dot_transposed" : "batch_dot",
                {heads, rows, inner, columns}),
          {left, right},
          build,
          2.0 * static_cast<double>(elementsOf(result) * inner),
          bytesOf({left, right, result})};
}

static BenchKernel rows(const char *name, int64_t count, int64_t length,
                        std::function<K::Tensor(const K::Tensor &)> function) {
  auto build = [=](const K::Tensors &x) { return function(x[0]); };
  K::Shape shape{count, length};
  return {
      named(name, {count, length}), {shape}, build, 0, bytesOf({shape, shape})};
}

static void addProducts(std::vector<BenchKernel> &kernels) {
  for (int64_t size : {64, 128, 256, 512, 1024, 2048})
    kernels.push_back(product(size, size, size));
  // Few rows, few columns, a short inner axis; vectors of caches' sizes.
  kernels.push_back(product(8, 1024, 1024));
  kernels.push_back(product(1024, 1024, 8));
  kernels.push_back(product(1024, 8, 1024));
  for (int64_t size : {128, 512, 1024, 4096})
    kernels.push_back(product(1, size, size));
  // A layer of BERT-base at 128 tokens.
  kernels.push_back(product(128, 768, 768));
  kernels.push_back(product(128, 768, 3072));
  kernels.push_back(product(128, 3072, 768));
  for (int64_t size : {64, 256, 512, 1024, 2048})
    kernels.push_back(productOfInputs(size));
  // The last layers of classifiers.
  kernels.push_back(product(32, 2048, 1000));
  kernels.push_back(product(512, 512, 10));
  // What 12 heads of BERT-base attend to.
  kernels.push_back(productOfHeads(/*transposed=*/true, 128, 64, 128));
  kernels.push_back(productOfHeads(/*transposed=*/false, 128, 128, 64));
}

static void addConvolutions(std::vector<BenchKernel> &kernels) {
  // All that ResNet50 has: windows of 3 by 3, then of 1 by 1.
  kernels.push_back(convolution(224, 7, 3, 64, /*stride=*/2));
  for (auto [size, channels] :
       {std::pair(56, 64), {28, 128}, {14, 256}, {7, 512}}) {
    kernels.push_back(convolution(size, 3, channels, channels));
    addWinograd(kernels, size, channels, channels);
  }
  // What VGG16 and DenseNet121 have besides.
  for (auto [size, in, out] : {std::tuple(224, 64, 64),
                               {112, 128, 128},
                               {56, 256, 256},
                               {28, 512, 512},
                               {14, 512, 512},
                               {28, 128, 32}}) {
    kernels.push_back(convolution(size, 3, in, out));
    addWinograd(kernels, size, in, out);
  }
  for (auto [size, in, out] : {std::tuple(56, 64, 64),
                               {56, 64, 256},
                               {56, 256, 64},
                               {28, 128, 512},
                               {28, 512, 128},
                               {14, 256, 1024},
                               {14, 1024, 256},
                               {7, 512, 2048},
                               {7, 2048, 512}})
    kernels.push_back(convolution(size, 1, in, out));
  for (auto [size, in, out] : {std::tuple(56, 256, 128),
                               {56, 256, 512},
                               {28, 512, 256},
                               {28, 512, 1024},
                               {14, 1024, 512},
                               {14, 1024, 2048}})
    kernels.push_back(convolution(size, 1, in, out, /*stride=*/2));
  // What MobileNetV2 expands, filters and projects.
  kernels.push_back(convolution(224, 3, 3, 32, /*stride=*/2));
  for (auto [size, in, out] : {std::tuple(112, 32, 16),
                               {112, 16, 96},
                               {56, 96, 24},
                               {56, 24, 144},
                               {56, 144, 24},
                               {28, 144, 32},
                               {28, 32, 192},
                               {28, 192, 32},
                               {14, 192, 64},
                               {14, 64, 384},
                               {14, 384, 64},
                               {14, 384, 96},
                               {14, 96, 576},
                               {14, 576, 96},
                               {7, 576, 160},
                               {7, 160, 960},
                               {7, 960, 160},
                               {7, 960, 320},
                               {7, 320, 1280}})
    kernels.push_back(convolution(size, 1, in, out));
  for (auto [size, channels] : {std::pair(112, 32),
                                {56, 144},
                                {28, 192},
                                {14, 384},
                                {14, 576},
                                {7, 960}})
    kernels.push_back(depthwise(size, channels));
  for (auto [size, channels] :
       {std::pair(112, 96), {56, 144}, {28, 192}, {14, 576}})
    kernels.push_back(depthwise(size, channels, /*stride=*/2));
}

/// Dilated, grouped, of one dimension, transposed, and larger windows over one
/// channel.
static void addOtherConvolutions(std::vector<BenchKernel> &kernels) {
  using Op = std::function<K::Tensor(const K::Tensor &, const K::Tensor &)>;
  auto add = [&](const char *name, const K::Shape &image,
                 const K::Shape &kernel, const K::Shape &result,
                 int64_t productsOfElement, const Op &op) {
    auto build = [=](const K::Tensors &x) { return op(x[0], weight(kernel)); };
    kernels.push_back(
        {name,
         {image},
         build,
         2.0 * static_cast<double>(elementsOf(result) * productsOfElement),
         bytesOf({image, kernel, result})});
  };
  auto depthwiseSame = [](const K::Tensor &x, const K::Tensor &k) {
    return K::depthwise_conv2d(x, k, {1, 1}, "same", "channels_last");
  };
  add("conv3x3_dilated/28/256", {1, 28, 28, 256}, {3, 3, 256, 256},
      {1, 28, 28, 256}, int64_t(9) * 256, [](auto &x, auto &k) {
        return K::conv2d(x, k, {1, 1}, "same", "channels_last", {2, 2});
      });
  add("conv3x3_in_4_groups/28/128", {1, 28, 28, 128}, {3, 3, 32, 128},
      {1, 28, 28, 128}, int64_t(9) * 32, [](auto &x, auto &k) {
        return K::conv2d(x, k, {1, 1}, "same", "channels_last", {1, 1}, 4);
      });
  add("conv1d3/1000/64", {1, 1000, 64}, {3, 64, 64}, {1, 1000, 64},
      int64_t(3) * 64, [](auto &x, auto &k) {
        return K::conv1d(x, k, 1, "same", "channels_last");
      });
  add("conv2x2_transposed/28/128_64", {1, 28, 28, 128}, {2, 2, 64, 128},
      {1, 56, 56, 64}, 128, [](auto &x, auto &k) {
        return K::conv2d_transpose(x, k, {1, 56, 56, 64}, {2, 2}, "same",
                                   "channels_last");
      });
  add("conv4x4_transposed/14/256_128", {1, 14, 14, 256}, {4, 4, 128, 256},
      {1, 28, 28, 128}, int64_t(4) * 256, [](auto &x, auto &k) {
        return K::conv2d_transpose(x, k, {1, 28, 28, 128}, {2, 2}, "same",
                                   "channels_last");
      });
  add("depthwise5x5/28/240", {1, 28, 28, 240}, {5, 5, 240, 1}, {1, 28, 28, 240},
      25, depthwiseSame);
  add("depthwise5x5/14/672", {1, 14, 14, 672}, {5, 5, 672, 1}, {1, 14, 14, 672},
      25, depthwiseSame);
  for (auto [size, channels] :
       {std::pair<int64_t, int64_t>{56, 96}, {28, 192}, {14, 384}, {7, 768}})
    add(named("depthwise7x7", {size, channels}).c_str(),
        {1, size, size, channels}, {7, 7, channels, 1},
        {1, size, size, channels}, 49, depthwiseSame);
}

static void addGradients(std::vector<BenchKernel> &kernels) {
  for (bool byKernel : {false, true}) {
    kernels.push_back(convolutionGradient(byKernel, 56, 3, 64, 64));
    kernels.push_back(convolutionGradient(byKernel, 14, 3, 256, 256));
    kernels.push_back(convolutionGradient(byKernel, 56, 1, 64, 256));
    kernels.push_back(convolutionGradient(byKernel, 28, 1, 512, 128));
  }
  kernels.push_back(poolGradient("max", 2, 2));
  kernels.push_back(poolGradient("max", 3, 2));
  kernels.push_back(poolGradient("avg", 2, 2));
  kernels.push_back(poolGradient("avg", 3, 1));
}

static void addRows(std::vector<BenchKernel> &kernels) {
  auto layerNorm = [](const K::Tensor &x) {
    return K::layer_normalization(x, weight({768}), weight({768}));
  };
  kernels.push_back(
      rows("softmax", 128, 1000, [](auto &x) { return K::softmax(x); }));
  kernels.push_back(rows("layer_norm", 128, 768, layerNorm));
  kernels.push_back(
      rows("gelu", 1024, 1024, [](auto &x) { return K::gelu(x); }));
  kernels.push_back(
      rows("tanh", 1024, 1024, [](auto &x) { return K::tanh(x); }));
  kernels.push_back(
      rows("sigmoid", 1024, 1024, [](auto &x) { return K::sigmoid(x); }));
  kernels.push_back(rows("exp", 1024, 1024, [](auto &x) { return K::exp(x); }));
  kernels.push_back(
      rows("relu", 1024, 1024, [](auto &x) { return K::relu(x); }));
  BenchKernel sum = rows("sum", 1024, 1024, [](auto &x) { return K::sum(x); });
  sum.bytes /= 2; // nothing to speak of is written
  kernels.push_back(sum);
  kernels.push_back(
      rows("transpose", 256, 384, [](auto &x) { return K::transpose(x); }));
  kernels.push_back(
      rows("transpose", 1024, 768, [](auto &x) { return K::transpose(x); }));
}

//===----------------------------------------------------------------------===//
// Recurrent steps and attention
//===----------------------------------------------------------------------===//

/// Columns of gate `number` of some that have `units` each.
static K::Tensor gate(const K::Tensor &z, int64_t number, int64_t batch,
                      int64_t units) {
  return K::slice(z, {0, number * units}, {batch, units});
}

/// As LSTM in Keras: input, forget, cell and output.
static std::pair<K::Tensor, K::Tensors> lstmStep(const K::Tensor &x,
                                                 const K::Tensors &states,
                                                 const K::Tensor &kernel,
                                                 int64_t batch, int64_t units) {
  K::Tensor z = x + K::dot(states[0], kernel);
  K::Tensor input = K::sigmoid(gate(z, 0, batch, units));
  K::Tensor forget = K::sigmoid(gate(z, 1, batch, units));
  K::Tensor cell =
      forget * states[1] + input * K::tanh(gate(z, 2, batch, units));
  K::Tensor output = K::sigmoid(gate(z, 3, batch, units)) * K::tanh(cell);
  return {output, {output, cell}};
}

/// As GRU in Keras with reset_after: update, reset and candidate.
static std::pair<K::Tensor, K::Tensors> gruStep(const K::Tensor &x,
                                                const K::Tensors &states,
                                                const K::Tensor &kernel,
                                                int64_t batch, int64_t units) {
  K::Tensor z = K::dot(states[0], kernel);
  auto both = [&](int64_t number) {
    return K::sigmoid(gate(x, number, batch, units) +
                      gate(z, number, batch, units));
  };
  K::Tensor update = both(0);
  K::Tensor candidate =
      K::tanh(gate(x, 2, batch, units) + both(1) * gate(z, 2, batch, units));
  K::Tensor output = update * states[0] + (1.0 - update) * candidate;
  return {output, {output}};
}

/// The recurrence alone: what the inputs contribute is given. Each step reads
/// all weights.
static BenchKernel recurrence(const char *name, int64_t gates, int64_t batch,
                              int64_t steps, int64_t units) {
  K::Shape inputs{batch, steps, gates * units}, kernel{units, gates * units};
  auto build = [=](const K::Tensors &x) {
    K::Tensor recurrent = weight(kernel);
    K::Tensors states(gates == 4 ? 2 : 1, K::zeros({batch, units}));
    auto step = [=](const K::Tensor &input, const K::Tensors &before) {
      return gates == 4 ? lstmStep(input, before, recurrent, batch, units)
                        : gruStep(input, before, recurrent, batch, units);
    };
    return K::rnn(step, x[0], states).last_output;
  };
  auto turns = static_cast<double>(steps);
  return {named(name, {batch, steps, units}),
          {inputs},
          build,
          2.0 * turns * static_cast<double>(batch * elementsOf(kernel)),
          bytesOf({inputs, kernel})};
}

/// Queries, keys and values of 12 heads of 64, as MultiHeadAttention has them
/// between its projections: (tokens, heads, width).
static BenchKernel attention(int64_t tokens) {
  constexpr int64_t heads = 12, width = 64;
  K::Shape shape{tokens, heads, width};
  auto build = [=](const K::Tensors &x) {
    auto perHead = [](const K::Tensor &t) {
      return K::permute_dimensions(t, {1, 0, 2});
    };
    K::Tensor scores =
        K::batch_dot(perHead(x[0]) * 0.125, perHead(x[1]), {2, 2});
    return perHead(K::batch_dot(K::softmax(scores), perHead(x[2]), {2, 1}));
  };
  return {named("attention", {heads, tokens, width}),
          {shape, shape, shape},
          build,
          4.0 * static_cast<double>(tokens * elementsOf(shape)),
          4 * bytesOf({shape})};
}

static void addSteps(std::vector<BenchKernel> &kernels) {
  kernels.push_back(recurrence("lstm", 4, 1, 200, 128));
  kernels.push_back(recurrence("lstm", 4, 32, 200, 128));
  kernels.push_back(recurrence("gru", 3, 1, 100, 256));
  kernels.push_back(attention(64));
  kernels.push_back(attention(128));
  kernels.push_back(attention(512));
}

std::vector<BenchKernel> benchKernels() {
  std::vector<BenchKernel> kernels;
  addConvolutions(kernels);
  addOtherConvolutions(kernels);
  addProducts(kernels);
  addRows(kernels);
  addSteps(kernels);
  addGradients(kernels);
  return kernels;
}

} // namespace keratin::tools
