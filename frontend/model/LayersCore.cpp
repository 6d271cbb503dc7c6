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
  K::Shape outputShape; // without the batch and what an ellipsis stands for
  for (const Json &item : stated.is_array() ? stated : Json::array({stated}))
    outputShape.push_back(asInteger(item).value_or(-1));
  // Letters before an ellipsis count from the start, others from the end.
  auto extentIn = [](const std::string &part, char letter,
                     const K::Shape &shape, size_t first) -> int64_t {
    size_t found = part.find(letter);
    if (found == part.npos)
      return -1;
    size_t place = part.ends_with("...") ? found - first
                                         : shape.size() - (part.size() - found);
    return place < shape.size() ? shape[place] : -1;
  };
  K::Shape shape;
  for (char letter : letters) {
    int64_t extent = -1;
    if (equation.kernel.find(letter) != std::string::npos)
      extent = extentIn(equation.input, letter, inputShape, 0);
    if (extent < 0)
      extent = extentIn(equation.output, letter, outputShape, 1);
    shape.push_back(extent);
  }
  return shape;
}

/// The bias, from the first of `axes` on: it has an extent of 1 along those
/// axes of the output that are not among them.
static K::Tensor einsumBias(LayerContext &layer, const EinsumEquation &equation,
                            const K::Tensor &x, const std::string &axes) {
  std::string letters =
      equation.output.substr(equation.output.find_first_of(axes));
  bool elidesLast = letters.ends_with("...");
  if (elidesLast)
    letters.resize(letters.size() - 3);
  K::Shape shape = einsumShape(layer, equation, x, letters);
  for (size_t axis = 0; axis < letters.size(); ++axis)
    if (axes.find(letters[axis]) == axes.npos)
      shape[axis] = 1;
  size_t named = equation.input.size() - 3; // in front of the ellipsis
  if (elidesLast && K::int_shape(x).size() > named)
    shape.resize(shape.size() + K::int_shape(x).size() - named, 1);
  return layer.weight("bias", shape);
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
