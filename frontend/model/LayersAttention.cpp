//===- LayersAttention.cpp - attention layers -----------------------------===//
#include "Layer.h"

#include <algorithm>
#include <cmath>

using namespace keratin;
using namespace keratin::model;

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

static K::Tensor both(const K::Tensor &a, const K::Tensor &b) {
  if (!a || !b)
    return a ? a : b;
  return K::logical_and(a, b);
}

static K::Tensor asBool(const K::Tensor &mask) {
  return mask ? K::cast(mask, K::DType::Bool) : mask;
}

/// 0, 1, … along `axis` of a tensor of rank 3 and extents 1 elsewhere; as many
/// as `x` has on its axis 1.
static K::Tensor positions(const K::Tensor &x, int64_t axis) {
  int64_t extent = K::int_shape(x)[1];
  K::Shape shape(3, 1);
  shape[size_t(axis)] = extent;
  if (extent >= 0)
    return K::reshape(K::arange(0, extent), shape);
  std::vector<K::Dim> dims(shape.begin(), shape.end());
  dims[size_t(axis)] = K::extent(x, 1);
  return K::cumsum(K::full(dims, 1, K::DType::Int32), axis) - 1;
}

/// (1, queries, values): a query sees values up to its own position.
static K::Tensor causalMask(const K::Tensor &query, const K::Tensor &value) {
  return K::greater_equal(positions(query, 1), positions(value, 2));
}

static K::Tensor windowMask(const K::Tensor &query, const K::Tensor &value,
                            int64_t width) {
  return K::less(K::abs(positions(query, 1) - positions(value, 2)), width);
}

static bool flagArgument(LayerContext &layer, const std::string &name) {
  const Argument *given = layer.argument(SIZE_MAX, name);
  return given && given->kind == Argument::Kind::Constant &&
         given->constant->is_boolean() && given->constant->get<bool>();
}

/// The mask that is given as `name`, or the one that travels with the tensor.
static K::Tensor maskArgument(LayerContext &layer, const std::string &name,
                              const Argument *tensor) {
  if (K::Tensor given = layer.tensor(SIZE_MAX, name))
    return given;
  return tensor && tensor->isTensor() ? tensor->value.mask : K::Tensor();
}

/// -0.7 of the largest number: far below all scores, yet finite.
static double farBelow(K::DType dtype) {
  if (dtype == K::DType::Float16)
    return -0.7 * 65504;
  return dtype == K::DType::Float64 ? -1.2e308 : -0.7 * 3.38e38;
}

//===----------------------------------------------------------------------===//
// MultiHeadAttention
//===----------------------------------------------------------------------===//

namespace {

/// What MultiHeadAttention and GroupedQueryAttention are called with.
struct AttentionCall {
  explicit AttentionCall(LayerContext &layer);

  K::Tensor query, value, key;
  K::Tensor queryMask;
  /// (samples or 1, queries, values), or None.
  K::Tensor mask;
  bool returnsScores;
  /// Whether a query that may see nothing gets nothing. Keras has two ways to
  /// compute attention; in the other, it gets the mean of all values.
  bool zeroesMasked;
};

/// Extents of the heads.
struct Heads {
  int64_t count, keyWidth, valueWidth;
};

} // namespace

AttentionCall::AttentionCall(LayerContext &layer) {
  query = layer.tensor(0, "query");
  value = layer.tensor(1, "value");
  key = layer.tensor(2, "key");
  if (!query || !value)
    layer.fail("is called without a query and a value");
  key = key ? key : value;
  queryMask =
      asBool(maskArgument(layer, "query_mask", layer.argument(0, "query")));
  K::Tensor valueMask =
      asBool(maskArgument(layer, "value_mask", layer.argument(1, "value")));
  K::Tensor keyMask =
      asBool(maskArgument(layer, "key_mask", layer.argument(2, "key")));
  if (queryMask)
    mask = K::expand_dims(queryMask, -1);
  if (valueMask)
    mask = both(mask, K::expand_dims(valueMask, -2));
  if (keyMask)
    mask = both(mask, K::expand_dims(keyMask, -2));
  if (flagArgument(layer, "use_causal_mask"))
    mask = both(mask, causalMask(query, value));
  if (layer.config().has("sliding_window"))
    mask = both(mask, windowMask(query, value,
                                 layer.config().integer("sliding_window", 1)));
  mask = both(asBool(layer.tensor(SIZE_MAX, "attention_mask")), mask);
  returnsScores = flagArgument(layer, "return_attention_scores");
  zeroesMasked = !layer.isKeras2() &&
                 (returnsScores || layer.config().number("dropout", 0) > 0);
}

/// x times a kernel (features, heads, width), plus a bias (heads, width).
static K::Tensor project(LayerContext &layer, const std::string &attribute,
                         const K::Tensor &x, int64_t heads, int64_t width) {
  return layer.inside(attribute, [&] {
    K::Tensor kernel = layer.weight(attribute + "/kernel",
                                    {layer.channels(x, -1), heads, width});
    K::Tensor y = K::tensordot(x, kernel, {K::ndim(x) - 1}, {0});
    if (layer.config().flag("use_bias", true))
      y = y + layer.weight(attribute + "/bias", {heads, width});
    return y;
  });
}

/// y (…, heads, width) times a kernel (heads, width, features…).
static K::Tensor projectBack(LayerContext &layer, const K::Tensor &y,
                             int64_t heads, int64_t width,
                             const K::Shape &features) {
  return layer.inside("output_dense", [&] {
    K::Shape shape = {heads, width};
    shape.insert(shape.end(), features.begin(), features.end());
    K::Tensor kernel = layer.weight("output_dense/kernel", shape);
    int64_t rank = K::ndim(y);
    K::Tensor z = K::tensordot(y, kernel, {rank - 2, rank - 1}, {0, 1});
    if (layer.config().flag("use_bias", true))
      z = z + layer.weight("output_dense/bias", features);
    return z;
  });
}

static K::Shape outputFeatures(LayerContext &layer, const K::Tensor &query) {
  const Config &config = layer.config();
  if (config.has("output_shape"))
    return config.integers("output_shape", 0, 1);
  return {layer.channels(query, -1)};
}

/// Scores of pairs that the mask excludes become weights of (nearly) 0.
static K::Tensor maskedSoftmax(const K::Tensor &scores, const K::Tensor &mask,
                               bool zeroesMasked) {
  if (!mask)
    return K::softmax(scores);
  K::Tensor perHead = K::ndim(mask) == 3 ? K::expand_dims(mask, -3) : mask;
  K::Tensor weights = K::softmax(
      K::where(perHead, scores, K::Tensor(farBelow(K::dtype(scores)))));
  if (!zeroesMasked)
    return weights;
  return K::where(perHead, weights, K::Tensor(0.));
}

/// softmax(q k^T scale) v over heads; query and the rest are (samples, steps,
/// heads, width). Also gives the weights of the values. Scores of 16 bits are
/// made in float32, and rounded as weights.
static std::pair<K::Tensor, K::Tensor>
attend(const K::Tensor &query, const K::Tensor &key, const K::Tensor &value,
       const K::Tensor &mask, double scale, bool zeroesMasked,
       const K::Tensor &bias = {}) {
  K::DType given = K::dtype(query), wide = wideType(given);
  K::Tensor scores;
  if (given == wide)
    scores = K::einsum("abcd,aecd->acbe", {query * K::Tensor(scale), key});
  else
    scores = K::einsum("abcd,aecd->acbe",
                       {K::cast(query, wide), K::cast(key, wide)}) *
             K::Tensor(scale);
  if (bias)
    scores = scores + K::cast(bias, wide);
  K::Tensor weights = maskedSoftmax(scores, mask, zeroesMasked);
  if (given != wide)
    weights = K::cast(weights, given);
  return {K::einsum("acbe,aecd->abcd", {weights, value}), weights};
}

static K::Tensors attentionOutputs(LayerContext &layer,
                                   const AttentionCall &call,
                                   const K::Tensor &output,
                                   const K::Tensor &weights) {
  layer.setMask(call.queryMask);
  if (call.returnsScores)
    return {output, weights};
  return {output};
}

namespace {
/// The axes of inputs of more than three, (samples, a, b.., features), in the
/// order in which those that attention goes along are in front of the features.
/// Those before them are samples.
struct AxesOrder {
  std::vector<int64_t> axes;
  size_t samples = 1;
};
} // namespace

static AxesOrder orderOf(LayerContext &layer, int64_t rank) {
  const Config &config = layer.config();
  std::vector<int64_t> along;
  if (rank >= 3 && config.has("attention_axes"))
    along = config.integers("attention_axes", 0, -maxExtent);
  for (int64_t &axis : along)
    axis += axis < 0 ? rank : 0;
  std::sort(along.begin(), along.end());
  if (std::adjacent_find(along.begin(), along.end()) != along.end() ||
      (!along.empty() && (along.front() < 1 || along.back() > rank - 2)))
    config.wrong("attention_axes", "axes between the samples and the features");
  AxesOrder order = {{0}};
  for (int64_t axis = 1; !along.empty() && axis + 1 < rank; ++axis)
    if (!std::binary_search(along.begin(), along.end(), axis))
      order.axes.push_back(axis);
  order.samples = order.axes.size();
  for (int64_t axis = 1; axis + 1 < rank; ++axis)
    if (along.empty() || std::binary_search(along.begin(), along.end(), axis))
      order.axes.push_back(axis);
  order.axes.push_back(rank - 1);
  return order;
}

static K::Tensor permuted(const K::Tensor &x,
                          const std::vector<int64_t> &axes) {
  return std::is_sorted(axes.begin(), axes.end())
             ? x
             : K::permute_dimensions(x, axes);
}

/// x with the axes that attention goes along as one, and those in front of them
/// as another one; of either there may be one of unknown extent.
static K::Tensor withJoinedAxes(LayerContext &layer, K::Tensor x,
                                const AxesOrder &order) {
  x = permuted(x, order.axes);
  K::Shape shape = K::int_shape(x);
  int64_t places = 1;
  for (size_t axis = order.samples; axis + 1 < shape.size(); ++axis)
    if (shape[axis] < 1 || __builtin_mul_overflow(places, shape[axis], &places))
      places = -1;
  if (places > 0)
    return K::reshape(x, {-1, places, layer.channels(x, -1)});
  if (order.samples == 1)
    return K::reshape(x, {K::extent(x, 0), -1, layer.channels(x, -1)});
  for (size_t axis = order.samples; axis + 1 < shape.size(); ++axis)
    layer.channels(x, int64_t(axis)); // says which is not known
  layer.fail("goes along more places than there can be");
}

/// Attention goes along some of the axes of inputs that have more. Only without
/// a mask.
static void joinAxes(LayerContext &layer, AttentionCall &call,
                     const AxesOrder &order) {
  int64_t rank = K::ndim(call.query);
  if (rank == 3)
    return;
  if (call.mask || call.returnsScores)
    layer.fail("is called with a tensor of shape " +
               shapeName(K::int_shape(call.query)) +
               " and a mask or return_attention_scores, which is supported "
               "for (samples, steps, features)");
  for (K::Tensor *x : {&call.query, &call.key, &call.value}) {
    if (K::ndim(*x) != rank)
      layer.fail("is called with tensors of different ranks");
    *x = withJoinedAxes(layer, *x, order);
  }
}

/// y with the axes of `like`, but for the features.
static K::Tensor partAxes(const K::Tensor &y, const K::Tensor &like,
                          const AxesOrder &order) {
  size_t rank = order.axes.size();
  if (rank == 3)
    return y;
  std::vector<K::Dim> dims;
  std::vector<int64_t> back(rank - 1);
  for (size_t axis = 0; axis + 1 < rank; ++axis) {
    dims.push_back(K::extent(like, order.axes[axis]));
    back[size_t(order.axes[axis])] = int64_t(axis);
  }
  for (int64_t axis = 2; axis < K::ndim(y); ++axis) {
    back.push_back(int64_t(dims.size()));
    dims.push_back(K::extent(y, axis));
  }
  return permuted(K::reshape(y, dims), back);
}

static void requireRank3(LayerContext &layer, const AttentionCall &call) {
  for (const K::Tensor &x : {call.query, call.key, call.value})
    if (K::ndim(x) != 3)
      layer.fail("is called with a tensor of shape " +
                 shapeName(K::int_shape(x)) +
                 ", but (samples, steps, features) is expected");
}

static K::Tensors multiHeadAttention(LayerContext &layer) {
  const Config &config = layer.config();
  int64_t heads = config.integer("num_heads", 1);
  int64_t keyWidth = config.integer("key_dim", 1);
  int64_t valueWidth = config.integer("value_dim", 1, keyWidth);
  AttentionCall call(layer);
  K::Tensor given = call.query;
  AxesOrder order = orderOf(layer, K::ndim(given));
  joinAxes(layer, call, order);
  requireRank3(layer, call);
  K::Tensor query = project(layer, "query_dense", call.query, heads, keyWidth);
  K::Tensor key = project(layer, "key_dense", call.key, heads, keyWidth);
  K::Tensor gate;
  if (config.flag("use_gate", false))
    gate =
        K::sigmoid(project(layer, "gate_dense", call.query, heads, valueWidth));
  K::Tensor value =
      project(layer, "value_dense", call.value, heads, valueWidth);
  auto [output, weights] =
      attend(query, key, value, call.mask, 1 / std::sqrt(double(keyWidth)),
             call.zeroesMasked);
  if (gate)
    output = output * gate;
  output = projectBack(layer, output, heads, valueWidth,
                       outputFeatures(layer, call.query));
  return attentionOutputs(layer, call, partAxes(output, given, order), weights);
}

/// Fewer heads of keys and values than of queries: each serves several.
static K::Tensors groupedQueryAttention(LayerContext &layer) {
  const Config &config = layer.config();
  int64_t width = config.integer("head_dim", 1);
  int64_t heads = config.integer("num_query_heads", 1);
  int64_t groups = config.integer("num_key_value_heads", 1);
  if (heads % groups)
    layer.fail("has " + std::to_string(heads) + " query heads, which its " +
               std::to_string(groups) + " key heads must divide");
  AttentionCall call(layer);
  requireRank3(layer, call);
  K::Tensor query = project(layer, "query_dense", call.query, heads, width);
  K::Tensor key = project(layer, "key_dense", call.key, groups, width);
  K::Tensor gate;
  if (config.flag("use_gate", false))
    gate = K::sigmoid(project(layer, "gate_dense", call.query, heads, width));
  K::Tensor value = project(layer, "value_dense", call.value, groups, width);
  key = K::repeat_elements(key, heads / groups, 2);
  value = K::repeat_elements(value, heads / groups, 2);
  auto [output, weights] =
      attend(query, key, value, call.mask, 1 / std::sqrt(double(width)),
             call.zeroesMasked);
  if (gate)
    output = output * gate;
  output = projectBack(layer, output, heads, width,
                       {layer.channels(call.query, -1)});
  return attentionOutputs(layer, call, output, weights);
}

//===----------------------------------------------------------------------===//
// Attention and AdditiveAttention
//===----------------------------------------------------------------------===//

/// The mask of input `index`: from the list given as `mask`, or its own.
static K::Tensor listedMask(LayerContext &layer,
                            const std::vector<Value> &inputs, size_t index) {
  const Argument *given = layer.argument(1, "mask");
  if (given && index < given->items.size() && given->items[index].isTensor())
    return asBool(given->items[index].value.tensor);
  return asBool(inputs[index].mask);
}

/// sum(tanh(scale (q + k))) over the features, for all pairs.
static K::Tensor additiveScores(const K::Tensor &query, const K::Tensor &key,
                                const K::Tensor &inner,
                                const K::Tensor &outer) {
  K::Tensor sums = K::expand_dims(query, -2) + K::expand_dims(key, -3);
  K::Tensor bent = K::tanh(inner ? inner * sums : sums);
  return K::sum(outer ? outer * bent : bent, -1);
}

static K::Tensors applyScores(LayerContext &layer,
                              const std::vector<Value> &inputs,
                              K::Tensor scores) {
  const K::Tensor &query = inputs[0].tensor, &value = inputs[1].tensor;
  K::Tensor queryMask = listedMask(layer, inputs, 0);
  K::Tensor mask = listedMask(layer, inputs, 1);
  if (mask)
    mask = K::expand_dims(mask, -2);
  if (flagArgument(layer, "use_causal_mask"))
    mask = both(mask, causalMask(query, value));
  if (mask) {
    double shift = K::dtype(scores) == K::DType::Float16 ? 65504 : 1e9;
    scores = K::where(mask, scores, scores - K::Tensor(shift));
  }
  K::Tensor weights = K::softmax(scores);
  K::Tensor output = K::matmul(weights, value);
  if (queryMask) {
    output = K::where(K::expand_dims(queryMask, -1), output,
                      K::zeros_like(output, K::dtype(output)));
    layer.setMask(queryMask);
  }
  if (flagArgument(layer, "return_attention_scores"))
    return {output, weights};
  return {output};
}

static std::vector<Value> queryValueKey(LayerContext &layer) {
  std::vector<Value> inputs = layer.inputs();
  if (inputs.size() < 2 || inputs.size() > 3)
    layer.fail("is called with " + std::to_string(inputs.size()) +
               " inputs, but a list of query, value and perhaps key is "
               "expected");
  for (const Value &input : inputs)
    if (K::ndim(input.tensor) != 3)
      layer.fail("is called with a tensor of shape " +
                 shapeName(K::int_shape(input.tensor)) +
                 ", but (samples, steps, features) is expected");
  return inputs;
}

static K::Tensors attention(LayerContext &layer) {
  const Config &config = layer.config();
  std::vector<Value> inputs = queryValueKey(layer);
  const K::Tensor &query = inputs[0].tensor, &key = inputs.back().tensor;
  K::Tensor scale, concatWeight;
  if (config.flag("use_scale", false))
    scale = layer.weight("scale", {});
  std::string mode = config.choice("score_mode", {"dot", "concat"}, "dot");
  if (mode == "concat") {
    concatWeight = layer.weight("concat_score_weight", {});
    return applyScores(layer, inputs,
                       concatWeight *
                           additiveScores(query, key, scale, K::Tensor()));
  }
  K::Tensor scores = K::matmul(query, K::permute_dimensions(key, {0, 2, 1}));
  return applyScores(layer, inputs, scale ? scores * scale : scores);
}

static K::Tensors additiveAttention(LayerContext &layer) {
  std::vector<Value> inputs = queryValueKey(layer);
  const K::Tensor &query = inputs[0].tensor, &key = inputs.back().tensor;
  K::Tensor scale;
  if (layer.config().flag("use_scale", true))
    scale = layer.weight("scale", {layer.channels(query, -1)});
  return applyScores(layer, inputs,
                     additiveScores(query, key, K::Tensor(), scale));
}

//===----------------------------------------------------------------------===//
// keras.ops.dot_product_attention
//===----------------------------------------------------------------------===//

static K::Tensors dotProductAttention(LayerContext &op) {
  K::Tensor query = op.tensor(0, "query"), key = op.tensor(1, "key"),
            value = op.tensor(2, "value");
  if (!query || !key || !value || K::ndim(query) != 4 || K::ndim(key) != 4 ||
      K::ndim(value) != 4)
    op.fail("is not called with a query, key and value of (samples, steps, "
            "heads, features)");
  if (op.config().has("attn_logits_soft_cap"))
    op.config().wrong("attn_logits_soft_cap", "null");
  double scale = 1 / std::sqrt(double(op.channels(query, 3)));
  const Argument *given = op.argument(5, "scale");
  if (given && given->kind == Argument::Kind::Constant &&
      given->constant->is_number())
    scale = given->constant->get<double>();
  int64_t heads = op.channels(query, 2), groups = op.channels(key, 2);
  if (heads % groups)
    op.fail("has " + std::to_string(heads) + " query heads, which its " +
            std::to_string(groups) + " key heads must divide");
  if (heads != groups) {
    key = K::repeat_elements(key, heads / groups, 2);
    value = K::repeat_elements(value, heads / groups, 2);
  }
  K::Tensor mask = asBool(op.tensor(4, "mask"));
  if (op.config().flag("is_causal", false))
    mask = both(mask, K::expand_dims(causalMask(query, value), 0));
  return {attend(query, key, value, mask, scale, /*zeroesMasked=*/false,
                 op.tensor(3, "bias"))
              .first};
}

std::span<const LayerEntry> model::attentionOperators() {
  static const LayerEntry entries[] = {
      {"DotProductAttention", dotProductAttention},
  };
  return entries;
}

std::span<const LayerEntry> model::attentionLayers() {
  static const LayerEntry entries[] = {
      {"MultiHeadAttention", multiHeadAttention, Masking::Takes},
      {"GroupQueryAttention", groupedQueryAttention, Masking::Sets},
      {"GroupedQueryAttention", groupedQueryAttention, Masking::Sets},
      {"Attention", attention, Masking::Sets},
      {"AdditiveAttention", additiveAttention, Masking::Sets},
  };
  return entries;
}
