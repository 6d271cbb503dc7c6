//===- CtcDecode.cpp - label sequences from probabilities -----------------===//
//
// How long the sequences are depends on the values, so the program decodes, not
// compiled code; a saved function, which has no program to ask, has room for a
// label at each step. Results and order are those of TensorFlow's decoders,
// with the last class as the blank.
//
//===----------------------------------------------------------------------===//
#include "../Emit.h"
#include "keratin/backend.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace keratin::backend {

namespace {

using Labels = std::vector<int64_t>;
constexpr double logZero = -std::numeric_limits<double>::infinity();

double logAdd(double a, double b) {
  double larger = std::max(a, b);
  if (larger == logZero)
    return logZero;
  return larger + std::log1p(std::exp(std::min(a, b) - larger));
}

/// The logarithms of the classes at each step of one sample.
class Frames {
public:
  Frames(const Array &probabilities, int64_t sample, int64_t steps)
      : classes(probabilities.shape()[2]) {
    int64_t first = sample * probabilities.shape()[1] * classes;
    for (int64_t i = 0; i < steps * classes; ++i)
      logs.push_back(std::log(probabilities.at(first + i) + epsilon()));
  }

  int64_t steps() const { return static_cast<int64_t>(logs.size()) / classes; }
  int64_t blank() const { return classes - 1; }
  const double *step(int64_t t) const { return logs.data() + t * classes; }

  const int64_t classes;

private:
  std::vector<double> logs;
};

struct Path {
  Labels labels;
  double score;
};

/// The likeliest class of each step, without repetitions and blanks.
Path greedyPath(const Frames &frames) {
  Path path{{}, 0};
  int64_t before = -1;
  for (int64_t t = 0; t < frames.steps(); ++t) {
    const double *step = frames.step(t);
    int64_t best = std::max_element(step, step + frames.classes) - step;
    path.score -= step[best];
    if (best != frames.blank() && best != before)
      path.labels.push_back(best);
    before = best;
  }
  return path;
}

//===----------------------------------------------------------------------===//
// Beam search
//===----------------------------------------------------------------------===//

/// Logarithms of the probability that a prefix ends in a blank or its label.
struct Scores {
  double total = logZero, blank = logZero, label = logZero;
};

/// A prefix: that of the parent, and one label more.
struct Prefix {
  Prefix *parent = nullptr;
  int64_t label = -1;
  Scores old, now;
  std::map<int64_t, std::unique_ptr<Prefix>> children;

  bool isActive() const { return now.total != logZero; }
  Prefix &child(int64_t next) {
    std::unique_ptr<Prefix> &found = children[next];
    if (!found) {
      found = std::make_unique<Prefix>();
      found->parent = this;
      found->label = next;
    }
    return *found;
  }
};

/// A. Hannun et al., First-pass large vocabulary continuous speech recognition
/// using bi-directional recurrent DNNs, 2014.
class BeamSearch {
public:
  explicit BeamSearch(size_t width) : width(width) {
    root.now = {0, 0, logZero};
    beam.push_back(&root);
  }

  void advance(const double *logits, int64_t classes) {
    double norm = logZero;
    for (int64_t i = 0; i < classes; ++i)
      norm = logAdd(norm, logits[i]);
    auto log = [&](int64_t label) { return logits[label] - norm; };

    std::vector<Prefix *> before;
    before.swap(beam);
    for (Prefix *prefix : before)
      prefix->old = prefix->now;
    for (Prefix *prefix : before) {
      stay(*prefix, log, classes - 1);
      push(prefix);
    }
    for (Prefix *prefix : before) {
      if (!isCandidate(prefix->old))
        continue;
      for (int64_t label = 0; label < classes - 1; ++label)
        grow(*prefix, prefix->child(label), log(label));
    }
  }

  std::vector<Path> best(size_t count, bool mergeRepeated) const {
    std::vector<Path> paths;
    for (size_t i = 0; i < std::min(count, beam.size()); ++i)
      paths.push_back({labelsOf(*beam[i], mergeRepeated), beam[i]->now.total});
    return paths;
  }

private:
  /// The prefix goes on with a blank or with its last label.
  template <typename Log> void stay(Prefix &prefix, Log log, int64_t blank) {
    if (prefix.parent) {
      if (prefix.parent->isActive())
        prefix.now.label =
            logAdd(prefix.now.label, before(*prefix.parent, prefix.label));
      prefix.now.label += log(prefix.label);
    }
    prefix.now.blank = prefix.old.total + log(blank);
    prefix.now.total = logAdd(prefix.now.blank, prefix.now.label);
  }

  void grow(Prefix &prefix, Prefix &child, double log) {
    if (child.isActive())
      return;
    child.now.blank = logZero;
    child.now.label = log + before(prefix, child.label);
    child.now.total = child.now.label;
    if (!isCandidate(child.now)) {
      child.old = child.now = {};
      return;
    }
    if (beam.size() == width) {
      beam.back()->now = {};
      beam.pop_back();
    }
    push(&child);
  }

  /// What was before `label`: a repeated one needs a blank between.
  static double before(const Prefix &prefix, int64_t label) {
    return prefix.label == label ? prefix.old.blank : prefix.old.total;
  }

  bool isCandidate(const Scores &scores) const {
    return scores.total > logZero &&
           (beam.size() < width || scores.total > beam.back()->now.total);
  }

  /// The beam is in falling order.
  void push(Prefix *prefix) {
    auto place = std::upper_bound(beam.begin(), beam.end(), prefix,
                                  [](const Prefix *a, const Prefix *b) {
                                    return a->now.total > b->now.total;
                                  });
    beam.insert(place, prefix);
  }

  static Labels labelsOf(const Prefix &prefix, bool mergeRepeated) {
    Labels labels;
    int64_t next = -1;
    for (const Prefix *at = &prefix; at->parent; at = at->parent) {
      if (!mergeRepeated || at->label != next)
        labels.push_back(at->label);
      next = at->label;
    }
    std::reverse(labels.begin(), labels.end());
    return labels;
  }

  size_t width;
  Prefix root;
  std::vector<Prefix *> beam;
};

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

struct Decoder {
  bool greedy;
  int64_t beamWidth, topPaths;
  bool mergeRepeated;

  std::vector<Path> decode(const Frames &frames) const;
  std::vector<Array> operator()(const std::vector<Array> &values) const;
};

std::vector<Path> Decoder::decode(const Frames &frames) const {
  if (greedy)
    return {greedyPath(frames)};
  BeamSearch search(static_cast<size_t>(beamWidth));
  for (int64_t t = 0; t < frames.steps(); ++t)
    search.advance(frames.step(t), frames.classes);
  std::vector<Path> paths =
      search.best(static_cast<size_t>(topPaths), mergeRepeated);
  paths.resize(static_cast<size_t>(topPaths), {{}, logZero});
  return paths;
}

/// The labels of all samples, filled up with -1.
Array dense(const std::vector<std::vector<Path>> &samples, size_t rank) {
  size_t longest = 0;
  for (const std::vector<Path> &paths : samples)
    longest = std::max(longest, paths[rank].labels.size());
  Array array(DType::Int64, {static_cast<int64_t>(samples.size()),
                             static_cast<int64_t>(longest)});
  for (size_t sample = 0; sample < samples.size(); ++sample)
    for (size_t i = 0; i < longest; ++i) {
      const Labels &labels = samples[sample][rank].labels;
      array.set(static_cast<int64_t>(sample * longest + i),
                i < labels.size() ? static_cast<double>(labels[i]) : -1);
    }
  return array;
}

std::vector<Array> Decoder::operator()(const std::vector<Array> &values) const {
  const Array &probabilities = values[0], &lengths = values[1];
  int64_t count = probabilities.shape()[0], steps = probabilities.shape()[1];
  if (probabilities.shape()[2] < 1 || lengths.size() != count)
    throw Error("ctc_decode: y_pred has shape " +
                shapeName(probabilities.shape()) + " and input_length has " +
                std::to_string(lengths.size()) + " elements");
  std::vector<std::vector<Path>> samples;
  for (int64_t sample = 0; sample < count; ++sample) {
    auto length = static_cast<int64_t>(lengths.at(sample));
    if (length < 0 || length > steps)
      throw Error("ctc_decode: input_length of sample " +
                  std::to_string(sample) + " is " + std::to_string(length) +
                  " but there are " + std::to_string(steps) + " steps");
    samples.push_back(decode(Frames(probabilities, sample, length)));
  }
  std::vector<Array> results;
  int64_t paths = greedy ? 1 : topPaths;
  Array scores(probabilities.dtype(), {count, paths});
  for (int64_t path = 0; path < paths; ++path) {
    results.push_back(dense(samples, static_cast<size_t>(path)));
    for (int64_t sample = 0; sample < count; ++sample)
      scores.set(sample * paths + path,
                 samples[static_cast<size_t>(sample)][static_cast<size_t>(path)]
                     .score);
  }
  results.push_back(scores);
  return results;
}

//===----------------------------------------------------------------------===//
// In saved functions
//===----------------------------------------------------------------------===//

/// What greedyPath computes as a graph, of paths with room for a label at each
/// of the `steps`: the labels and the score. A label goes to the place that the
/// number of those before it says.
Tensors greedyGraph(const Tensor &y_pred, const Tensor &input_length,
                    int64_t steps) {
  Tensor best = argmax(y_pred, 2); // (samples, steps)
  DType labels = dtype(best);
  Tensor lengths = reshape(cast(input_length, labels), {-1, 1});
  Tensor isStep = less(expand_dims(arange(0, steps, 1, labels), 0), lengths);
  Tensor first = full_like(getitem(best, {Ellipsis{}, Slice{0, 1}}), -1);
  Tensor before =
      getitem(concatenate({first, best}, 1), {Ellipsis{}, Slice{0, steps}});
  int64_t blank = int_shape(y_pred)[2] - 1;
  Tensor isLabel = logical_and(
      isStep, logical_and(not_equal(best, blank), not_equal(best, before)));
  Tensor count = cast(isLabel, labels);
  Tensor place = cumsum(count, 1) - 1;
  Tensor placed = one_hot(place, steps, -1, labels) * expand_dims(count, 2);
  Tensor decoded = sum(placed * expand_dims(best + 1, 2), {1}) - 1;
  Tensor step = log(max(y_pred, {2}) + epsilon());
  Tensor score = -sum(where(isStep, step, full_like(step, 0)), {1},
                      /*keepdims=*/true);
  return {decoded, score};
}

} // namespace

CtcPaths ctc_decode(const Tensor &y_pred, const Tensor &input_length,
                    bool greedy, int64_t beam_width, int64_t top_paths,
                    bool merge_repeated) {
  CalledAs function("ctc_decode");
  requireTensor(y_pred, "ctc_decode", "y_pred");
  requireTensor(input_length, "ctc_decode", "input_length");
  if (ndim(y_pred) != 3 || !isFloat(dtype(y_pred)))
    throw Error("ctc_decode: y_pred has shape " + shapeName(int_shape(y_pred)) +
                " and dtype " + std::string(dtypeName(dtype(y_pred))) +
                " but must be floats (samples, time, classes)");
  if (ndim(input_length) != 1 && ndim(input_length) != 2)
    throw Error("ctc_decode: input_length has shape " +
                shapeName(int_shape(input_length)) + " but must be (samples,)");
  if (!greedy && (top_paths < 1 || beam_width < top_paths))
    throw Error("ctc_decode: top_paths is " + std::to_string(top_paths) +
                " but must be between 1 and beam_width, " +
                std::to_string(beam_width));
  int64_t samples = int_shape(y_pred)[0], paths = greedy ? 1 : top_paths;
  std::vector<std::pair<Shape, DType>> types(static_cast<size_t>(paths),
                                             {{samples, None}, DType::Int64});
  types.push_back({{samples, paths}, dtype(y_pred)});
  Tensors saved;
  int64_t steps = int_shape(y_pred)[1];
  if (greedy && steps > 0 && int_shape(y_pred)[2] > 0)
    saved = greedyGraph(y_pred, input_length, steps);
  Tensors made =
      emitHost(Decoder{greedy, beam_width, top_paths, merge_repeated},
               {y_pred, input_length}, types, saved);
  Tensor scores = made.back();
  made.pop_back();
  return {made, scores};
}

} // namespace keratin::backend
