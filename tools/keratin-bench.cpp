//===- keratin-bench.cpp - kernels against the peak of this machine -------===//
//
// Each kernel is a graph of the backend API, compiled by K::function; the times
// are CPU times. `of_peak` is the share of the multiply-adds per second that
// this core did just before; bytes are counted as read once and written once.
//
//===----------------------------------------------------------------------===//
#include "FmaPeak.h"

#include "keratin/abi.h"
#include "keratin/backend.h"

#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace K = keratin::backend;

namespace {

/// Numbers of one seed, so that every run computes the same.
K::Array randomArray(const K::Shape &shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  static std::mt19937 generator(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(count);
  for (float &value : values)
    value = uniform(generator);
  return K::Array::of(shape, values);
}

struct FreeArena {
  void operator()(void *arena) const { std::free(arena); }
};

/// A compiled function with its buffers, so that a run is the kernels alone.
class Runnable {
public:
  explicit Runnable(K::Function compiled) : function(std::move(compiled)) {
    std::vector<K::Shape> shapes;
    for (const K::TensorInfo &input : function.inputs()) {
      shapes.push_back(input.shape);
      values.push_back(randomArray(input.shape));
    }
    for (const K::TensorInfo &output : function.outputs())
      values.emplace_back(output.dtype, output.shape);
    for (size_t index = 0; index < values.size(); ++index) {
      if (index < shapes.size())
        inputs.push_back(values[index].data());
      else
        outputs.push_back(values[index].mutableData());
    }
    model = function.compiled(shapes);
    batch = model->batch == -1 ? 1 : model->batch;
    int64_t bytes = model->arena_bytes[0] + batch * model->arena_bytes[1];
    arena.reset(std::aligned_alloc(KTN_ALIGNMENT,
                                   (bytes + KTN_ALIGNMENT) & -KTN_ALIGNMENT));
  }

  bool run() {
    return model->run(model->weights, arena.get(), batch, inputs.data(),
                      outputs.data()) == KTN_OK;
  }

private:
  K::Function function;
  std::vector<K::Array> values;
  std::vector<const void *> inputs;
  std::vector<void *> outputs;
  const ktn_model_info_t *model;
  int64_t batch;
  std::unique_ptr<void, FreeArena> arena;
};

struct Kernel {
  std::string name;
  std::vector<K::Shape> inputs;
  std::function<K::Tensor(const K::Tensors &)> build;
  double flops; ///< 0: not a matter of arithmetic
  double bytes; ///< 0: not a matter of memory
};

double peakFlops = 0;

void runKernel(benchmark::State &state, const Kernel &kernel) {
  K::GraphScope graph;
  K::Tensors inputs;
  for (const K::Shape &shape : kernel.inputs)
    inputs.push_back(K::placeholder(shape));
  Runnable runnable(K::function(inputs, {kernel.build(inputs)}));
  if (!runnable.run()) {
    state.SkipWithError("the model returned an error");
    return;
  }
  double start = keratin::tools::cpuSeconds();
  for (auto iteration : state)
    runnable.run();
  double seconds = keratin::tools::cpuSeconds() - start;

  using benchmark::Counter;
  constexpr auto rate = Counter::kIsIterationInvariantRate;
  if (kernel.flops != 0) {
    state.counters["flop/s"] = Counter(kernel.flops, rate);
    state.counters["of_peak"] =
        kernel.flops * state.iterations() / seconds / peakFlops;
  }
  if (kernel.bytes != 0)
    state.counters["bytes/s"] = Counter(kernel.bytes, rate);
}

K::Tensor weight(const K::Shape &shape) {
  return K::variable(randomArray(shape));
}

Kernel convolution(int64_t size, int64_t window, int64_t in, int64_t out) {
  std::string name = "conv" + std::to_string(window) + "x" +
                     std::to_string(window) + "/" + std::to_string(size) + "/" +
                     std::to_string(in) + "_" + std::to_string(out);
  auto build = [=](const K::Tensors &x) {
    return K::conv2d(x[0], weight({window, window, in, out}), {1, 1}, "same",
                     "channels_last");
  };
  double flops = 2.0 * size * size * window * window * in * out;
  return {name, {{1, size, size, in}}, build, flops, 0};
}

/// The gradient of a convolution by its image, or by its kernel, as a training
/// step computes it: nothing is known ahead of time.
Kernel convolutionGradient(bool byKernel, int64_t size, int64_t window,
                           int64_t in, int64_t out) {
  constexpr int64_t batch = 8;
  std::string name = std::string(byKernel ? "conv_kernel_grad" : "conv_grad") +
                     std::to_string(window) + "x" + std::to_string(window) +
                     "/" + std::to_string(size) + "/" + std::to_string(in) +
                     "_" + std::to_string(out);
  auto build = [=](const K::Tensors &x) {
    K::Tensor y = K::conv2d(x[0], x[1], {1, 1}, "same", "channels_last");
    return K::gradients(y * x[2], {x[byKernel]})[0];
  };
  double flops = 2.0 * batch * size * size * window * window * in * out;
  return {name,
          {{batch, size, size, in},
           {window, window, in, out},
           {batch, size, size, out}},
          build,
          flops,
          0};
}

/// The gradient of a pool of images.
Kernel poolGradient(const char *mode, int64_t window, int64_t stride) {
  constexpr int64_t batch = 8, size = 56, channels = 64;
  auto build = [=](const K::Tensors &x) {
    K::Tensor y = K::pool2d(x[0], {window, window}, {stride, stride}, "same",
                            "channels_last", mode);
    return K::gradients(y * x[1], {x[0]})[0];
  };
  int64_t pooled = size / stride;
  return {std::string(mode) + "_pool_grad" + std::to_string(window) + "x" +
              std::to_string(window) + "/" + std::to_string(stride),
          {{batch, size, size, channels}, {batch, pooled, pooled, channels}},
          build,
          0,
          sizeof(float) * double(batch * channels) *
              double(2 * size * size + pooled * pooled)};
}

Kernel depthwise(int64_t size, int64_t channels) {
  auto build = [=](const K::Tensors &x) {
    return K::depthwise_conv2d(x[0], weight({3, 3, channels, 1}), {1, 1},
                               "same", "channels_last");
  };
  return {"depthwise3x3/" + std::to_string(size) + "/" +
              std::to_string(channels),
          {{1, size, size, channels}},
          build,
          2.0 * size * size * channels * 9,
          0};
}

Kernel product(int64_t rows, int64_t inner, int64_t columns) {
  auto build = [=](const K::Tensors &x) {
    return K::dot(x[0], weight({inner, columns}));
  };
  return {"matmul/" + std::to_string(rows) + "/" + std::to_string(inner) + "/" +
              std::to_string(columns),
          {{rows, inner}},
          build,
          2.0 * rows * inner * columns,
          0};
}

/// Both factors are inputs: nothing is packed ahead of time.
Kernel productOfInputs(int64_t size) {
  auto build = [](const K::Tensors &x) { return K::dot(x[0], x[1]); };
  return {"matmul_of_inputs/" + std::to_string(size),
          {{size, size}, {size, size}},
          build,
          2.0 * size * size * size,
          0};
}

Kernel rows(const char *name, int64_t count, int64_t length,
            std::function<K::Tensor(const K::Tensor &)> function) {
  auto build = [=](const K::Tensors &x) { return function(x[0]); };
  return {std::string(name) + "/" + std::to_string(count) + "/" +
              std::to_string(length),
          {{count, length}},
          build,
          0,
          2.0 * sizeof(float) * count * length};
}

std::vector<Kernel> makeKernels() {
  auto layerNorm = [](const K::Tensor &x) {
    return K::layer_normalization(x, weight({768}), weight({768}));
  };
  auto softmax = [](const K::Tensor &x) { return K::softmax(x); };
  auto gelu = [](const K::Tensor &x) { return K::gelu(x); };
  auto tanh = [](const K::Tensor &x) { return K::tanh(x); };
  auto sigmoid = [](const K::Tensor &x) { return K::sigmoid(x); };
  auto exp = [](const K::Tensor &x) { return K::exp(x); };
  auto relu = [](const K::Tensor &x) { return K::relu(x); };
  return {convolution(56, 3, 64, 64),
          convolution(28, 3, 128, 128),
          convolution(14, 3, 256, 256),
          convolution(7, 3, 512, 512),
          convolution(56, 1, 256, 64),
          convolution(56, 1, 64, 256),
          product(512, 512, 512),
          product(1, 1024, 1024),
          productOfInputs(512),
          depthwise(56, 144),
          depthwise(112, 32),
          convolutionGradient(/*byKernel=*/false, 56, 3, 64, 64),
          convolutionGradient(/*byKernel=*/true, 56, 3, 64, 64),
          convolutionGradient(/*byKernel=*/false, 56, 1, 64, 256),
          convolutionGradient(/*byKernel=*/true, 56, 1, 64, 256),
          poolGradient("max", 2, 2),
          poolGradient("max", 3, 2),
          poolGradient("avg", 2, 2),
          poolGradient("avg", 3, 1),
          rows("softmax", 128, 1000, softmax),
          rows("layer_norm", 128, 768, layerNorm),
          rows("gelu", 1024, 1024, gelu),
          rows("tanh", 1024, 1024, tanh),
          rows("sigmoid", 1024, 1024, sigmoid),
          rows("exp", 1024, 1024, exp),
          rows("relu", 1024, 1024, relu)};
}

} // namespace

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 2;
  // What is measured is what this compiler makes now.
  keratin::backend::set_cache_directory(std::nullopt);
  peakFlops = keratin::tools::measureFmaPeak();
  benchmark::AddCustomContext("fma_peak_gflops",
                              std::to_string(peakFlops * 1e-9));
  std::vector<Kernel> kernels = makeKernels();
  for (const Kernel &kernel : kernels)
    benchmark::RegisterBenchmark(
        kernel.name.c_str(),
        [&kernel](benchmark::State &state) { runKernel(state, kernel); })
        ->Unit(benchmark::kMicrosecond);
  try {
    // The peak is that of one core.
    keratin::backend::set_num_threads(1);
    benchmark::RunSpecifiedBenchmarks();
  } catch (const keratin::Error &error) {
    std::fprintf(stderr, "keratin-bench: %s\n", error.what());
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
