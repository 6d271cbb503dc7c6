//===- TrainModels.cpp - digits that a C program trains -------------------===//
//
// keratin-train-models (mlp|cnn) PREFIX writes digits.o and digits.h, at
// PREFIX: predict and step of a classifier of 12 x 12 pictures, with Adam.
//
//===----------------------------------------------------------------------===//
#include "keratin/backend.h"

#include <cmath>
#include <cstdio>
#include <string>

namespace K = keratin::backend;
using keratin::Array;
using keratin::DType;

namespace {

constexpr int64_t side = 12, classes = 10;

/// Glorot's uniform numbers, the same in every run.
K::Tensor glorot(const K::Shape &shape, int64_t fanIn, int64_t fanOut,
                 const std::string &name) {
  static uint64_t state = 1;
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  double limit = std::sqrt(6.0 / static_cast<double>(fanIn + fanOut));
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    double unit = static_cast<double>(state >> 40) / (1 << 24);
    values.push_back(static_cast<float>((2 * unit - 1) * limit));
  }
  return K::variable(Array::of<float>(shape, values), name);
}

K::Tensor zeros(const K::Shape &shape, const std::string &name) {
  return K::variable(Array(DType::Float32, shape), name);
}

/// A model under construction.
struct Builder {
  K::Tensors weights;

  K::Tensor weight(K::Tensor w) {
    weights.push_back(w);
    return w;
  }
  K::Tensor dense(const K::Tensor &x, int64_t inputs, int64_t units,
                  const std::string &name) {
    K::Tensor kernel =
        weight(glorot({inputs, units}, inputs, units, name + "/kernel"));
    return K::bias_add(K::dot(x, kernel),
                       weight(zeros({units}, name + "/bias")));
  }
  K::Tensor conv(const K::Tensor &x, int64_t inputs, int64_t filters,
                 const std::string &name) {
    K::Tensor kernel = weight(glorot({3, 3, inputs, filters}, 9 * inputs,
                                     9 * filters, name + "/kernel"));
    K::Tensor y = K::conv2d(x, kernel, {1, 1}, "same");
    return K::relu(K::bias_add(y, weight(zeros({filters}, name + "/bias"))));
  }
};

/// Scores of a picture. Dropout makes random numbers a part of the state.
K::Tensor mlp(Builder &b, const K::Tensor &image) {
  K::Tensor h = K::relu(b.dense(image, side * side, 64, "hidden"));
  h = K::in_train_phase(K::dropout(h, 0.1, std::nullopt, /*seed=*/7), h);
  return b.dense(h, 64, classes, "scores");
}

K::Tensor cnn(Builder &b, const K::Tensor &image) {
  K::Tensor h = K::reshape(image, {-1, side, side, 1});
  h = K::pool2d(b.conv(h, 1, 8, "conv1"), {2, 2}, {2, 2});
  h = K::pool2d(b.conv(h, 8, 16, "conv2"), {2, 2}, {2, 2});
  return b.dense(K::batch_flatten(h), 9 * 16, classes, "scores");
}

/// Kingma & Ba, Adam, algorithm 1, with the step size of its section 2.
std::vector<K::Update> adam(const K::Tensor &loss, const K::Tensors &weights) {
  constexpr double rate = 0.002, beta1 = 0.9, beta2 = 0.999;
  K::Tensor t = zeros({}, "adam/t");
  K::Tensor next = t + 1.0;
  std::vector<K::Update> updates = {K::update(t, next)};
  K::Tensor size = rate * K::sqrt(1.0 - K::pow(K::Tensor(beta2), next)) /
                   (1.0 - K::pow(K::Tensor(beta1), next));
  K::Tensors gradients = K::gradients(loss, weights);
  for (size_t i = 0; i < weights.size(); ++i) {
    K::Shape shape = K::int_shape(weights[i]);
    std::string number = std::to_string(i);
    K::Tensor m = zeros(shape, "adam/m" + number);
    K::Tensor v = zeros(shape, "adam/v" + number);
    K::Tensor newM = beta1 * m + (1 - beta1) * gradients[i];
    K::Tensor newV = beta2 * v + (1 - beta2) * K::square(gradients[i]);
    updates.push_back(K::update(m, newM));
    updates.push_back(K::update(v, newV));
    updates.push_back(K::update(
        weights[i], weights[i] - size * newM / (K::sqrt(newV) + 1e-7)));
  }
  return updates;
}

void save(const std::string &kind, const std::string &prefix) {
  Builder b;
  K::Tensor image =
      K::placeholder({K::None, side * side}, DType::Float32, "image");
  K::Tensor label = K::placeholder({K::None}, DType::Int32, "label");
  K::Tensor scores = K::softmax(kind == "cnn" ? cnn(b, image) : mlp(b, image));
  K::Tensor loss = K::mean(K::sparse_categorical_crossentropy(label, scores));
  K::FunctionNames predictNames, stepNames;
  predictNames.outputs = {"scores"};
  stepNames.outputs = {"loss"};
  K::Function predict = K::function({image}, {scores}, {}, predictNames);
  K::Function step =
      K::function({image, label}, {loss}, adam(loss, b.weights), stepNames);
  K::save(prefix, {{"predict", predict}, {"step", step, /*training=*/true}});
}

} // namespace

int main(int argc, char **argv) {
  std::string kind = argc == 3 ? argv[1] : "";
  if (kind != "mlp" && kind != "cnn") {
    std::fprintf(stderr, "usage: keratin-train-models (mlp|cnn) PREFIX\n");
    return 2;
  }
  try {
    save(kind, argv[2]);
  } catch (const keratin::Error &error) {
    std::fprintf(stderr, "keratin-train-models: %s\n", error.what());
    return 1;
  }
  return 0;
}
