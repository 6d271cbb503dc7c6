//===- LayersCore.cpp - dense, embedding and identity layers --------------===//
#include "Layer.h"
#include "Quantized.h"

#include <algorithm>

using namespace keratin;
using namespace keratin::model;

//===----------------------------------------------------------------------===//
// Dense
//===----------------------------------------------------------------------===//

static K::Tensors dense(LayerContext &layer) {
  int64_t units = layer.config().integer("units", 1);
  K::Tensor x = layer.input();
  if (K::ndim(x) < 2)
    layer.fail("is called with an input of shape " +
               shapeName(K::int_shape(x)) +
               ", but one of rank 2 or more is expected");
  int64_t features = layer.channels(x, -1);
  bool biased = layer.config().flag("use_bias", true);
  K::Tensor y;
  if (layer.quantization().empty()) {
    y = K::dot(x, layer.weight("kernel", {features, units}));
    if (biased)
      y = y + layer.weight("bias", {units});
  } else {
    y = quantizedDense(layer, x, features, units, biased);
  }
  return {activate(layer, y)};
}

/// The parts of "abc,cd->abd".
struct EinsumEquation {
  std::string input, kernel, output;
};

static EinsumEquation parseEquation(LayerContext &layer) {
  std::string text = layer.config().text("equation", "");
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  size_t comma = text.find(','), arrow = text.find("->");
  bool right = comma != text.npos && arrow != text.npos && comma < arrow &&
               text.find(',', comma + 1) == text.npos;
  if (!right)
    layer.fail("has 'equation': '" + text +
               "', but one such as 'abc,cd->abd' is expected");
  return {text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1),
          text.substr(arrow + 2)};
}

/// Extents of the axes that `letters` name, -1 where only the file knows.
static K::Shape einsumShape(LayerContext &layer, const EinsumEquation &equation,
                            const K::Tensor &x, const std::string &letters) {
  K::Shape inputShape = K::int_shape(x);
  const Json &stated = layer.config().at("output_shape");
  auto extent = [&](char letter) -> int64_t {
    // Letters after an ellipsis count from the end.
    auto fromEnd = [&](const std::string &part) -> std::optional<size_t> {
      size_t found = part.rfind(letter);
      if (found == part.npos)
        return std::nullopt;
      return part.size() - found;
    };
    if (auto place = fromEnd(equation.input);
        place && *place <= inputShape.size() &&
        inputShape[inputShape.size() - *place] >= 0 &&
        equation.kernel.find(letter) != std::string::npos)
      return inputShape[inputShape.size() - *place];
    if (auto place = fromEnd(equation.output)) {
      if (asInteger(stated) && *place == 1)
        return *asInteger(stated);
      if (stated.is_array() && *place <= stated.size())
        return asInteger(stated[stated.size() - *place]).value_or(-1);
    }
    return -1;
  };
  K::Shape shape;
  for (char letter : letters)
    shape.push_back(extent(letter));
  return shape;
}

/// The bias, with an axis of extent 1 for each output axis that it lacks.
static K::Tensor einsumBias(LayerContext &layer, const EinsumEquation &equation,
                            const K::Tensor &x, const std::string &axes) {
  // Keras orders the axes of the bias as in the output.
  std::string ordered;
  for (char letter : equation.output)
    if (axes.find(letter) != axes.npos)
      ordered += letter;
  Array value =
      layer.weightArray("bias", einsumShape(layer, equation, x, ordered));
  K::Shape shape;
  size_t axis = 0;
  for (char letter : equation.output.substr(equation.output.find(ordered[0])))
    shape.push_back(axes.find(letter) == axes.npos ? 1 : value.shape()[axis++]);
  return K::cast(K::reshape(K::constant(value, "bias"), shape), layer.dtype());
}

static K::Tensors einsumDense(LayerContext &layer) {
  if (!layer.quantization().empty())
    layer.fail("is quantised to " + layer.quantization() +
               ", which only Dense supports: save the model before "
               "quantising it");
  EinsumEquation equation = parseEquation(layer);
  K::Tensor x = layer.input();
  K::Tensor kernel =
      layer.weight("kernel", einsumShape(layer, equation, x, equation.kernel));
  K::Tensor y =
      K::einsum(equation.input + "," + equation.kernel + "->" + equation.output,
                {x, kernel});
  std::string biasAxes = layer.config().text("bias_axes", "");
  for (char letter : biasAxes)
    if (equation.output.find(letter) == std::string::npos)
      layer.fail("has 'bias_axes': '" + biasAxes +
                 "', which are not all in the output '" + equation.output +
                 "'");
  if (!biasAxes.empty())
    y = y + einsumBias(layer, equation, x, biasAxes);
  return {activate(layer, y)};
}

//===----------------------------------------------------------------------===//
// Embedding, masks
//===----------------------------------------------------------------------===//

static K::Tensors embedding(LayerContext &layer) {
  const Config &config = layer.config();
  int64_t rows = config.integer("input_dim", 1);
  int64_t columns = config.integer("output_dim", 1);
  if (!layer.quantization().empty() && layer.quantization() != "float8")
    layer.fail("is quantised to " + layer.quantization() +
               ", which only Dense supports: save the model before "
               "quantising it");
  K::Tensor table = layer.weight("embeddings", {rows, columns});
  K::Tensor indices = layer.input();
  K::DType type = K::dtype(indices);
  if (type != K::DType::Int32 && type != K::DType::Int64)
    indices = K::cast(indices, K::DType::Int32);
  if (config.flag("mask_zero", false))
    layer.setMask(K::not_equal(indices, 0));
  return {K::gather(table, indices)};
}

/// Steps of which every feature is `mask_value` become zero.
static K::Tensors masking(LayerContext &layer) {
  K::Tensor x = layer.input();
  K::Tensor kept =
      K::any(K::not_equal(x, layer.config().number("mask_value", 0)), -1,
             /*keepdims=*/true);
  layer.setMask(K::squeeze(kept, -1));
  return {K::where(kept, x, K::zeros_like(x, K::dtype(x)))};
}

static K::Tensors identity(LayerContext &layer) {
  K::Tensors outputs;
  for (const Value &value : layer.inputs())
    outputs.push_back(value.tensor);
  return outputs;
}

std::span<const LayerEntry> model::coreLayers() {
  static const LayerEntry entries[] = {
      {"Dense", dense, Masking::Passes},
      {"EinsumDense", einsumDense, Masking::Passes},
      {"Embedding", embedding, Masking::Sets},
      {"Masking", masking, Masking::Sets},
      {"Identity", identity, Masking::Passes},
      // Of training only.
      {"Dropout", identity, Masking::Passes},
      {"SpatialDropout1D", identity, Masking::Passes},
      {"SpatialDropout2D", identity, Masking::Passes},
      {"SpatialDropout3D", identity, Masking::Passes},
      {"GaussianDropout", identity, Masking::Passes},
      {"GaussianNoise", identity, Masking::Passes},
      {"AlphaDropout", identity, Masking::Passes},
      {"ActivityRegularization", identity, Masking::Passes},
  };
  return entries;
}
