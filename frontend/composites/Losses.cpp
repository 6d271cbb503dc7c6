//===- Losses.cpp - cross entropies ---------------------------------------===//
//
// As TensorFlow's, they look at what makes the probabilities: the entropy of a
// softmax or sigmoid is computed from its operand, which is exact where the
// probability has no more bits to tell.
//
//===----------------------------------------------------------------------===//
#include "../Emit.h"
#include "keratin/backend.h"

namespace keratin::backend {

/// Probabilities away from 0 and 1, where logarithms are not finite.
static Tensor clipProbabilities(const Tensor &output) {
  return clip(output, epsilon(), 1 - epsilon());
}

/// The operand of the softmax along `axis` that makes `output`, or `None`.
static Tensor logitsOfSoftmax(const Tensor &output, int64_t axis) {
  Tensors operands = operandsOf("softmax", output);
  bool same = attributeOf("softmax", output, "axis") == axis;
  return operands.empty() || !same ? Tensor() : operands[0];
}

Tensor categorical_crossentropy(const Tensor &target, const Tensor &output,
                                bool from_logits, int64_t axis) {
  constexpr std::string_view function = "categorical_crossentropy";
  CalledAs called(function);
  requireTensor(target, function, "target");
  requireTensor(output, function, "output");
  axis = normalizeAxis(axis, ndim(output), function);
  Tensor logits = from_logits ? output : logitsOfSoftmax(output, axis);
  Tensor logs = logits
                    ? log_softmax(logits, axis)
                    : log(clipProbabilities(output / sum(output, axis, true)));
  return negative(sum(target * logs, axis));
}

Tensor sparse_categorical_crossentropy(const Tensor &target,
                                       const Tensor &output, bool from_logits,
                                       int64_t axis) {
  constexpr std::string_view function = "sparse_categorical_crossentropy";
  CalledAs called(function);
  requireTensor(target, function, "target");
  requireTensor(output, function, "output");
  axis = normalizeAxis(axis, ndim(output), function);
  Tensor logits = from_logits ? output : logitsOfSoftmax(output, axis);
  // Probabilities need not sum to 1: Keras divides them by their sum.
  Tensor logs =
      log_softmax(logits ? logits : log(clipProbabilities(output)), axis);
  Tensor labels = target;
  if (ndim(target) == ndim(output) && int_shape(target)[axis] == 1)
    labels = squeeze(target, axis);
  if (ndim(labels) != ndim(output) - 1) {
    // Keras takes labels of any shape: one for each row of classes.
    Tensor flat = moveaxis(logs, axis, -1);
    std::vector<Dim> rows;
    for (int64_t i = 0; i + 1 < ndim(flat); ++i)
      rows.push_back(extent(flat, i));
    labels = reshape(labels, rows);
  }
  // A class at `axis` is the label's where its number is.
  std::vector<int64_t> others;
  for (int64_t i = 0; i < ndim(output); ++i)
    if (i != axis)
      others.push_back(i);
  Dim classes = extent(output, axis);
  Tensor numbers =
      classes.tensor ? arange(classes.tensor) : arange(classes.extent);
  Tensor at = others.empty() ? numbers : expand_dims(numbers, others);
  Tensor chosen = equal(at, expand_dims(cast(labels, DType::Int32), axis));
  return negative(sum(cast(chosen, dtype(output)) * logs, axis));
}

Tensor binary_crossentropy(const Tensor &target, const Tensor &output,
                           bool from_logits) {
  constexpr std::string_view function = "binary_crossentropy";
  CalledAs called(function);
  requireTensor(target, function, "target");
  requireTensor(output, function, "output");
  Tensor logits = output;
  if (!from_logits) {
    Tensors operands = operandsOf("sigmoid", output);
    logits = operands.empty() ? Tensor() : operands[0];
  }
  if (logits)
    return relu(logits) - logits * target + log1p(exp(negative(abs(logits))));
  Tensor p = clipProbabilities(output);
  return negative(target * log(p + epsilon()) +
                  (1 - target) * log(1 - p + epsilon()));
}

} // namespace keratin::backend
