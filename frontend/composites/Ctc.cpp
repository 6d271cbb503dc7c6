//===- Ctc.cpp - connectionist temporal classification --------------------===//
//
// A. Graves et al., Connectionist temporal classification: labelling
// unsegmented sequence data with recurrent neural networks, ICML 2006. The
// blank is the last class, as in Keras.
//
//===----------------------------------------------------------------------===//
#include "../Emit.h"
#include "keratin/backend.h"

#include <limits>

namespace keratin::backend {

/// The logarithm of a probability of 0 that stays finite in sums, so that
/// gradients are numbers.
constexpr double impossible = -1e30;

/// (samples, 1) or (samples) to (samples).
static Tensor lengths(std::string_view function, const char *what,
                      const Tensor &given) {
  requireTensor(given, function, what);
  Shape shape = int_shape(given);
  if (shape.size() == 2 && (shape[1] == 1 || shape[1] == None))
    return cast(squeeze(given, 1), DType::Int32);
  if (shape.size() == 1)
    return cast(given, DType::Int32);
  throw Error(std::string(function) + ": " + what + " has shape " +
              shapeName(shape) + " but must be (samples, 1)");
}

static void requireRank(std::string_view function, const char *what,
                        const Tensor &x, int64_t rank) {
  requireTensor(x, function, what);
  if (ndim(x) != rank)
    throw Error(std::string(function) + ": " + what + " has shape " +
                shapeName(int_shape(x)) + " but must have " +
                std::to_string(rank) + " axes");
}

/// 0, 1 … along `axis` of x.
static Tensor positions(const Tensor &x, int64_t axis) {
  Dim count = extent(x, axis);
  return count.tensor ? arange(count.tensor) : arange(count.extent);
}

Tensor ctc_label_dense_to_sparse(const Tensor &labels,
                                 const Tensor &label_lengths) {
  constexpr std::string_view function = "ctc_label_dense_to_sparse";
  CalledAs called(function);
  requireRank(function, "labels", labels, 2);
  Tensor used =
      less(expand_dims(positions(labels, 1), 0),
           expand_dims(lengths(function, "label_lengths", label_lengths), 1));
  Shape shape = int_shape(labels);
  if (shape[0] == None || shape[1] == None)
    throw Error("ctc_label_dense_to_sparse: labels have shape " +
                shapeName(shape) + " but its extents must be known");
  Tensor rows = reshape(repeat_elements(arange(shape[0]), shape[1], 0), {-1});
  Tensor columns = tile(arange(shape[1]), {shape[0]});
  return emit("sparse", {flatten(where(used, labels, 0)), rows, columns},
              {{"target", shape}});
}

/// `x` moved `count` places along axis 1; `fill` comes in.
static Tensor shifted(const Tensor &x, int64_t count, double fill) {
  Tensor padded = pad(x, {{0, 0}, {count, 0}}, fill);
  return getitem(padded, {Slice{}, Slice{0, -count}});
}

/// blank, label, blank, label … blank: (samples, 2 labels + 1).
static Tensor withBlanks(const Tensor &labels, int64_t blank) {
  Tensor blanks = full_like(labels, static_cast<double>(blank));
  Dim count = extent(labels, 1);
  Dim doubled = count.tensor ? Dim(count.tensor * 2) : Dim(count.extent * 2);
  Tensor pairs =
      reshape(stack({blanks, labels}, 2), {extent(labels, 0), doubled});
  return concatenate({pairs, getitem(blanks, {Slice{}, Slice{0, 1}})}, 1);
}

/// log(e^a + e^b + e^c)
static Tensor logAdd(const Tensor &a, const Tensor &b, const Tensor &c) {
  Tensor largest = stop_gradient(maximum(maximum(a, b), c));
  return log(exp(a - largest) + exp(b - largest) + exp(c - largest)) + largest;
}

Tensor ctc_batch_cost(const Tensor &y_true, const Tensor &y_pred,
                      const Tensor &input_length, const Tensor &label_length) {
  constexpr std::string_view function = "ctc_batch_cost";
  CalledAs called(function);
  requireRank(function, "y_true", y_true, 2);
  requireRank(function, "y_pred", y_pred, 3);
  int64_t classes = int_shape(y_pred)[2];
  if (classes == None)
    throw Error("ctc_batch_cost: y_pred has shape " +
                shapeName(int_shape(y_pred)) +
                " but the number of classes, axis 2, must be known");
  Tensor steps = lengths(function, "input_length", input_length);
  Tensor counts = lengths(function, "label_length", label_length);

  // A path visits the places of `path` in order, stays at one or goes to the
  // next, or leaves out a blank between labels that differ.
  int64_t blank = classes - 1;
  Tensor path = withBlanks(cast(y_true, DType::Int32), blank);
  Tensor skips = logical_and(
      not_equal(path, blank),
      not_equal(path, shifted(path, 2, static_cast<double>(blank))));

  // TensorFlow takes the logarithms as logits, which normalises them.
  Tensor logs = log_softmax(log(y_pred + epsilon()));
  Tensor picked = one_hot(path, classes, -1, dtype(y_pred));
  Tensor emissions =
      permute_dimensions(batch_dot(logs, picked, {2, 2}), {1, 0, 2});

  // scores[place] is the logarithm of the probability of all ways to it.
  Tensor places = expand_dims(positions(path, 1), 0);
  Tensor none = full_like(cast(path, dtype(y_pred)), impossible);
  Tensor start = where(equal(places, 0), full_like(none, 0), none);
  Tensor times = positions(y_pred, 1);
  ScanStep scan = emitScan(
      {emissions, times}, {start}, /*reverse=*/false,
      [&](ScanTrace &, const Tensors &slices, const Tensors &states) {
        const Tensor &scores = states[0];
        Tensor jumped = where(skips, shifted(scores, 2, impossible), none);
        Tensor next =
            logAdd(scores, shifted(scores, 1, impossible), jumped) + slices[0];
        Tensor alive = expand_dims(less(slices[1], steps), 1);
        return ScanStep{{where(alive, next, scores)}, {}};
      });

  // It ends at the last label or at the blank after it.
  Tensor end = expand_dims(counts * 2, 1);
  Tensor ends = logical_or(equal(places, end), equal(places, end - 1));
  Tensor cost = negative(logsumexp(where(ends, scan.states[0], none), 1,
                                   /*keepdims=*/true));
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return where(less(cost, -0.1 * impossible), cost, full_like(cost, infinity));
}

} // namespace keratin::backend
