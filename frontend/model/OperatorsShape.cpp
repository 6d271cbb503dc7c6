//===- OperatorsShape.cpp - keras.ops of shapes and products ------------===//
#include "Operators.h"

#include <algorithm>

using namespace keratin;
using namespace keratin::model;

//===----------------------------------------------------------------------===//
// Shapes and indices
//===----------------------------------------------------------------------===//

static K::Tensors reshape(LayerContext &op) {
  K::Tensor x = firstOperand(op);
  std::vector<int64_t> shape;
  const Json &target = option(op, "newshape");
  if (!target.is_array())
    op.fail("has 'newshape': " + describeJson(target) +
            ", but a list of extents is expected");
  for (const Json &extent : target)
    shape.push_back(extent.is_null() ? -1 : asInteger(extent).value_or(-2));
  if (std::any_of(shape.begin(), shape.end(),
                  [](int64_t extent) { return extent < -1; }))
    op.fail("has 'newshape': " + describeJson(target) +
            ", but a list of extents is expected");
  return {K::reshape(x, K::Dims(shape))};
}

static K::Tensors transpose(LayerContext &op) {
  K::Tensor x = firstOperand(op);
  K::Axes order = axesOption(op, "axes");
  if (order.all())
    return {K::transpose(x)};
  return {K::permute_dimensions(x, order.values())};
}

static K::Tensors expandDims(LayerContext &op) {
  return {K::expand_dims(firstOperand(op), axesOption(op))};
}

static K::Tensors squeeze(LayerContext &op) {
  K::Tensor x = firstOperand(op);
  K::Axes axis = axesOption(op);
  if (axis.all()) {
    std::vector<int64_t> ones;
    K::Shape shape = K::int_shape(x);
    for (size_t i = 0; i < shape.size(); ++i)
      if (shape[i] == 1)
        ones.push_back(int64_t(i));
    axis = ones;
  }
  return {K::squeeze(x, axis)};
}

static K::Tensors concatenate(LayerContext &op) {
  return {K::concatenate(listOperand(op), integerOption(op, "axis", 0))};
}

static K::Tensors stack(LayerContext &op) {
  return {K::stack(listOperand(op), integerOption(op, "axis", 0))};
}

static K::Tensors unstack(LayerContext &op) {
  return K::unstack(firstOperand(op), integerOption(op, "axis", 0));
}

static K::Tensors split(LayerContext &op) {
  K::Tensor x = firstOperand(op);
  int64_t axis = integerOption(op, "axis", 0);
  if (option(op, "indices_or_sections").is_array())
    return K::split(x, integersOption(op, "indices_or_sections"), axis);
  return K::split(x, integerOption(op, "indices_or_sections"), axis);
}

static K::Tensors ravel(LayerContext &op) {
  return {K::flatten(firstOperand(op))};
}

static K::Tensors repeat(LayerContext &op) {
  K::Tensor x = firstOperand(op);
  K::Axes axis = axesOption(op);
  if (axis.all()) {
    x = K::flatten(x);
    axis = 0;
  }
  return {
      K::repeat_elements(x, integerOption(op, "repeats"), axis.values().at(0))};
}

static K::Tensors tile(LayerContext &op) {
  return {K::tile(firstOperand(op), integersOption(op, "repeats"))};
}

static K::Tensors flip(LayerContext &op) {
  K::Tensor x = firstOperand(op);
  K::Axes axis = axesOption(op);
  if (axis.all()) {
    std::vector<int64_t> every(size_t(K::ndim(x)));
    for (size_t i = 0; i < every.size(); ++i)
      every[i] = int64_t(i);
    axis = every;
  }
  return {K::reverse(x, axis)};
}

/// By one shift along each axis, or by one along all; without axes the elements
/// in a row.
static K::Tensors roll(LayerContext &op) {
  K::Tensor x = firstOperand(op);
  std::vector<int64_t> shifts = integersOption(op, "shift");
  K::Axes stated = axesOption(op);
  if (stated.all() && shifts.size() == 1) {
    K::Tensor row = K::roll(K::flatten(x), shifts[0], 0);
    return {K::reshape(row, K::shape(x))};
  }
  std::vector<int64_t> axes = integersOption(op, "axis");
  if (shifts.size() == 1)
    shifts.resize(axes.size(), shifts[0]);
  if (shifts.size() != axes.size())
    op.fail("has 'shift' for " + std::to_string(shifts.size()) + " axes, but " +
            std::to_string(axes.size()) + " are stated");
  for (size_t index = 0; index < axes.size(); ++index)
    x = K::roll(x, shifts[index], axes[index]);
  return {x};
}

static K::Tensors swapaxes(LayerContext &op) {
  return {K::swapaxes(firstOperand(op), integerOption(op, "axis1"),
                      integerOption(op, "axis2"))};
}

static K::Tensors moveaxis(LayerContext &op) {
  return {K::moveaxis(firstOperand(op), integerOption(op, "source"),
                      integerOption(op, "destination"))};
}

static K::Tensors broadcastTo(LayerContext &op) {
  K::Tensor x = firstOperand(op);
  const Json &target = option(op, "shape");
  K::Shape shape;
  for (const Json &extent : target)
    shape.push_back(asInteger(extent).value_or(-1));
  return {K::broadcast_to(x, K::Dims(shape))};
}

/// x with `widths` more elements before and behind those of an axis: its own,
/// seen in a mirror that lies on the first and the last one (reflect), or
/// beyond them (symmetric).
static K::Tensor padMirrored(LayerContext &op, const K::Tensor &x, int64_t axis,
                             K::PadPair widths, bool symmetric) {
  auto [before, after] = widths;
  int64_t extent = K::int_shape(x)[axis], first = symmetric ? 0 : 1;
  if (before == 0 && after == 0)
    return x;
  if (std::min(before, after) < 0 || extent < 0 ||
      std::max(before, after) > extent - first)
    op.fail("has 'pad_width' " + std::to_string(std::max(before, after)) +
            " of axis " + std::to_string(axis) + " of a tensor of shape " +
            shapeName(K::int_shape(x)) + ": what is mirrored must be in it");
  auto mirrored = [&](int64_t start, int64_t count) {
    K::Shape starts(size_t(K::ndim(x)), 0), sizes(size_t(K::ndim(x)), -1);
    starts[size_t(axis)] = start;
    sizes[size_t(axis)] = count;
    return K::reverse(K::slice(x, starts, sizes), axis);
  };
  K::Tensors parts;
  if (before != 0)
    parts.push_back(mirrored(first, before));
  parts.push_back(x);
  if (after != 0)
    parts.push_back(mirrored(extent - first - after, after));
  return K::concatenate(parts, axis);
}

static K::Tensors pad(LayerContext &op) {
  K::Tensor x = firstOperand(op);
  const Json &mode = option(op, "mode");
  bool mirrors = mode == "reflect" || mode == "symmetric";
  if (mode.is_string() && mode != "constant" && !mirrors)
    op.fail("has 'mode': " + describeJson(mode) +
            ", but 'constant', 'reflect' and 'symmetric' are supported");
  std::optional<Array> widths =
      numbersOf(option(op, "pad_width"), K::DType::Int64);
  int64_t rank = K::ndim(x);
  std::vector<K::PadPair> pairs;
  for (int64_t axis = 0; widths && axis < rank; ++axis) {
    const int64_t *values = widths->as<int64_t>();
    const K::Shape &shape = widths->shape();
    if (shape == K::Shape{rank, 2})
      pairs.emplace_back(values[2 * axis], values[2 * axis + 1]);
    else if (widths->size() == 2)
      pairs.emplace_back(values[0], values[1]);
    else if (widths->size() == 1)
      pairs.emplace_back(values[0], values[0]);
  }
  if (int64_t(pairs.size()) != rank)
    op.fail("has 'pad_width': " + describeJson(option(op, "pad_width")) +
            ", but a pair for each of " + std::to_string(rank) +
            " axes is expected");
  for (int64_t axis = 0; mirrors && axis < rank; ++axis)
    x = padMirrored(op, x, axis, pairs[size_t(axis)], mode == "symmetric");
  if (mirrors)
    return {x};
  const Json &value = option(op, "constant_values", 1);
  return {K::pad(x, pairs, value.is_number() ? value.get<double>() : 0)};
}

/// One part of `x[key]`: an index, a slice, a new axis or an ellipsis.
static K::Index indexOf(LayerContext &op, const Json &part) {
  if (part.is_null())
    return K::NewAxis();
  if (std::optional<int64_t> index = asInteger(part))
    return *index;
  std::string className = part.is_object() && part.contains("class_name") &&
                                  part["class_name"].is_string()
                              ? part["class_name"].get<std::string>()
                              : "";
  if (className == "__ellipsis__")
    return K::Ellipsis();
  if (className != "__slice__" || !part.contains("config") ||
      !part["config"].is_object())
    op.fail("is indexed by " + describeJson(part) +
            ", but integers, slices, None and ... are supported");
  Config config(part["config"], [&](const std::string &m) { op.problem(m); });
  auto bound = [&](const char *key) -> std::optional<int64_t> {
    if (!config.has(key))
      return std::nullopt;
    return config.integer(key, -maxExtent);
  };
  return K::Slice{bound("start"), bound("stop"), bound("step").value_or(1)};
}

static K::Tensors getItem(LayerContext &op) {
  K::Tensor x = firstOperand(op);
  const Argument *key = op.argument(1, "key");
  static const Json null;
  const Json &value =
      key && key->kind == Argument::Kind::Constant ? *key->constant : null;
  if (key && (key->isTensor() || !key->items.empty()))
    op.fail("is indexed by a tensor: use keras.ops.take");
  std::vector<K::Index> indices;
  if (value.is_array())
    for (const Json &part : value)
      indices.push_back(indexOf(op, part));
  else
    indices.push_back(indexOf(op, value));
  return {K::getitem(x, indices)};
}

/// `indices` of elements of `axis`, where those below 0 count from its end.
static K::Tensor fromEither(const K::Tensor &indices, const K::Tensor &x,
                            int64_t axis) {
  K::DType type = K::dtype(indices);
  if (type == K::DType::Bool || type == K::DType::UInt8 || isFloat(type))
    return indices;
  K::Tensor extent = K::getitem(K::shape(x), {axis});
  K::Tensor wide = K::cast(indices, K::DType::Int64);
  return K::where(wide < 0, wide + K::cast(extent, K::DType::Int64), wide);
}

static K::Tensors take(LayerContext &op) {
  K::Tensor x = operand(op, 0, "x"), indices = operand(op, 1, "indices");
  if (!x || !indices)
    op.fail("is called without a tensor and indices");
  if (isNumber(op, 1, "indices")) {
    K::Axes axis = axesOption(op);
    int64_t at = axis.all() ? 0 : axis.values().at(0);
    if (axis.all())
      x = K::flatten(x);
    int64_t rank = K::ndim(x), place = at < 0 ? at + rank : at;
    if (place < 0 || place >= rank)
      op.fail("has 'axis': " + std::to_string(at) + ", but its tensor has " +
              std::to_string(rank) + " axes");
    std::vector<K::Index> parts(static_cast<size_t>(rank), K::Slice());
    parts[size_t(place)] = op.argument(1, "indices")->constant->get<int64_t>();
    return {K::getitem(x, parts)};
  }
  K::Axes axis = axesOption(op);
  if (axis.all()) {
    x = K::flatten(x);
    axis = 0;
  }
  int64_t at = axis.values().at(0);
  return {K::gather(x, fromEither(indices, x, at), at)};
}

static K::Tensors oneHot(LayerContext &op) {
  return {K::one_hot(firstOperand(op), integerOption(op, "num_classes"),
                     integerOption(op, "axis", -1),
                     typeOption(op).value_or(K::DType::Float32))};
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static K::Tensors einsum(LayerContext &op) {
  K::Tensors list;
  for (size_t i = 0; i < op.argumentCount(); ++i)
    list.push_back(operand(op, i, ""));
  const Json &subscripts = option(op, "subscripts");
  if (!subscripts.is_string())
    op.fail("has no 'subscripts'");
  return {K::einsum(subscripts.get<std::string>(), list)};
}

static K::Tensors tensordot(LayerContext &op) {
  auto [a, b] = twoOperands(op);
  const Json &stated = option(op, "axes");
  std::vector<int64_t> left, right;
  if (std::optional<int64_t> count = asInteger(stated)) {
    for (int64_t i = 0; i < *count; ++i) {
      left.push_back(K::ndim(a) - *count + i);
      right.push_back(i);
    }
    return {K::tensordot(a, b, left, right)};
  }
  auto listOf = [&](const Json &value) {
    std::vector<int64_t> list;
    for (const Json &item : value.is_array() ? value : Json::array({value}))
      list.push_back(asInteger(item).value_or(0));
    return list;
  };
  if (!stated.is_array() || stated.size() != 2)
    op.fail("has 'axes': " + describeJson(stated) +
            ", but two lists of axes are expected");
  return {K::tensordot(a, b, listOf(stated[0]), listOf(stated[1]))};
}

std::span<const LayerEntry> model::shapeOperators() {
  static const LayerEntry entries[] = {
      {"Reshape", reshape},
      {"Transpose", transpose},
      {"ExpandDims", expandDims},
      {"Squeeze", squeeze},
      {"Concatenate", concatenate},
      {"Stack", stack},
      {"Unstack", unstack},
      {"Split", split},
      {"Ravel", ravel},
      {"Repeat", repeat},
      {"Tile", tile},
      {"Flip", flip},
      {"Roll", roll},
      {"Swapaxes", swapaxes},
      {"Moveaxis", moveaxis},
      {"BroadcastTo", broadcastTo},
      {"Pad", pad},
      {"GetItem", getItem},
      {"Take", take},
      {"OneHot", oneHot},
      {"Matmul", binary<K::matmul>},
      {"Einsum", einsum},
      {"Tensordot", tensordot},
  };
  return entries;
}
