//===- Losses.cpp - cross entropies ---------------------------------------===//
#include "../Emit.h"
#include "keratin/backend.h"

namespace keratin::backend {

/// Probabilities away from 0 and 1, where logarithms are not finite.
static Tensor clipProbabilities(const Tensor &output) {
  return clip(output, epsilon(), 1 - epsilon());
}

Tensor categorical_crossentropy(const Tensor &target, const Tensor &output,
                                bool from_logits, int64_t axis) {
  CalledAs function("categorical_crossentropy");
  requireTensor(target, "categorical_crossentropy", "target");
  requireTensor(output, "categorical_crossentropy", "output");
  Tensor logs;
  if (from_logits)
    logs = log_softmax(output, axis);
  else
    logs = log(clipProbabilities(output / sum(output, axis, true)));
  return negative(sum(target * logs, axis));
}

Tensor sparse_categorical_crossentropy(const Tensor &target,
                                       const Tensor &output, bool from_logits,
                                       int64_t axis) {
  CalledAs function("sparse_categorical_crossentropy");
  requireTensor(target, "sparse_categorical_crossentropy", "target");
  requireTensor(output, "sparse_categorical_crossentropy", "output");
  axis = normalizeAxis(axis, ndim(output), "sparse_categorical_crossentropy");
  int64_t classes = int_shape(output)[axis];
  if (classes == None)
    throw Error(
        "sparse_categorical_crossentropy: the number of classes, axis " +
        std::to_string(axis) + " of a tensor of shape " +
        shapeName(int_shape(output)) + ", must be known");
  Tensor labels = ndim(target) == ndim(output) ? squeeze(target, axis) : target;
  Tensor logs =
      from_logits ? log_softmax(output, axis) : log(clipProbabilities(output));
  return negative(
      sum(one_hot(labels, classes, axis, dtype(output)) * logs, axis));
}

Tensor binary_crossentropy(const Tensor &target, const Tensor &output,
                           bool from_logits) {
  CalledAs function("binary_crossentropy");
  requireTensor(target, "binary_crossentropy", "target");
  requireTensor(output, "binary_crossentropy", "output");
  if (from_logits)
    return relu(output) - output * target + log1p(exp(negative(abs(output))));
  Tensor p = clipProbabilities(output);
  return negative(target * log(p + epsilon()) +
                  (1 - target) * log(1 - p + epsilon()));
}

} // namespace keratin::backend
