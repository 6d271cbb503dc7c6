//===- Rnn.cpp - loops over time and over elements ------------------------===//
#include "../Emit.h"
#include "keratin/backend.h"

#include <algorithm>

namespace keratin::backend {

namespace {

/// One call of rnn: what it was given, and how the pieces of a step combine.
class Recurrence {
public:
  Recurrence(const StepFunction &step, const Tensors &initial,
             const RnnOptions &options)
      : step(step), initial(initial), options(options) {}

  RnnResult run(const Tensor &inputs) {
    requireTensor(inputs, "rnn", "inputs");
    if (ndim(inputs) < 3 - int64_t(options.time_major))
      checkRank(inputs);
    sequence = options.time_major ? inputs : swapaxes(inputs, 0, 1);
    if (options.mask)
      mask = timeMajorMask(options.mask);
    RnnResult result = options.unroll ? unroll() : scan();
    if (!options.time_major)
      result.outputs = swapaxes(result.outputs, 0, 1);
    return result;
  }

private:
  static void checkRank(const Tensor &inputs) {
    if (ndim(inputs) < 2)
      throw Error("rnn: inputs has shape " + shapeName(int_shape(inputs)) +
                  " but must have samples and time");
  }

  Tensor timeMajorMask(const Tensor &given) const {
    if (ndim(given) < 2)
      throw Error("rnn: mask has shape " + shapeName(int_shape(given)) +
                  " but must be (samples, time)");
    Tensor flags = cast(given, DType::Bool);
    return options.time_major ? flags : swapaxes(flags, 0, 1);
  }

  /// The step function with the constants after the states, as Keras has it.
  std::pair<Tensor, Tensors> call(const Tensor &input,
                                  const Tensors &states) const {
    Tensors all = states;
    all.insert(all.end(), options.constants.begin(), options.constants.end());
    auto [output, next] = step(input, all);
    if (next.size() != states.size())
      throw Error("rnn: the step function returns " +
                  std::to_string(next.size()) + " states but takes " +
                  std::to_string(states.size()));
    return {output, next};
  }

  /// Where the mask of a step, one flag a sample, is set: `a`, else `b`.
  static Tensor choose(const Tensor &flags, const Tensor &a, const Tensor &b) {
    Tensor condition = flags;
    while (ndim(condition) < ndim(a))
      condition = expand_dims(condition, -1);
    return where(condition, a, b);
  }

  //===--------------------------------------------------------------------===//
  // As a loop
  //===--------------------------------------------------------------------===//

  RnnResult scan() {
    Tensors sequences{sequence};
    if (mask)
      sequences.push_back(mask);
    // States that are also the output need no slot of their own at the end.
    size_t outputState = initial.size();
    bool hasPrevious = mask && !options.zero_output_for_mask;
    ScanStep loop = emitScan(
        sequences, initial, options.go_backwards,
        [&](ScanTrace &trace, const Tensors &slices, const Tensors &states) {
          auto [output, next] = call(slices[0], states);
          if (!mask) {
            for (size_t i = 0; i < next.size(); ++i)
              if (next[i].is(output))
                outputState = i;
            return ScanStep{next, {output}};
          }
          return maskedStep(trace, slices[1], states, output, next);
        });

    RnnResult result;
    result.outputs = loop.outputs[0];
    result.states = {loop.states.begin(),
                     loop.states.begin() +
                         static_cast<int64_t>(initial.size())};
    if (hasPrevious)
      result.last_output = loop.states.back();
    else if (outputState < initial.size())
      result.last_output = loop.states[outputState];
    else
      // Outputs are stacked where their inputs were.
      result.last_output =
          getitem(result.outputs, {options.go_backwards ? 0 : -1});
    if (options.go_backwards)
      result.outputs = reverse(result.outputs, 0);
    return result;
  }

  /// States stay where the mask is false; the output is the previous one, a
  /// state that starts as zeros, or zeros.
  ScanStep maskedStep(ScanTrace &trace, const Tensor &flags,
                      const Tensors &states, const Tensor &output,
                      const Tensors &next) {
    ScanStep result;
    for (size_t i = 0; i < next.size(); ++i)
      result.states.push_back(choose(flags, next[i], states[i]));
    if (options.zero_output_for_mask) {
      result.outputs = {choose(flags, output, 0)};
      return result;
    }
    Shape shape = int_shape(output);
    DType type = dtype(output);
    Tensor zeros = trace.outside([&] { return zeroOutput(shape, type); });
    Tensor previous = trace.addState(zeros);
    Tensor masked = choose(flags, output, previous);
    result.states.push_back(masked);
    result.outputs = {masked};
    return result;
  }

  /// Zeros in the shape of an output, whose batch is that of the inputs.
  Tensor zeroOutput(const Shape &shape, DType type) const {
    std::vector<Dim> dims;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] == None && axis > 0)
        throw Error("rnn: the step's output has shape " + shapeName(shape) +
                    " but with a mask only its first extent may be unknown");
      dims.push_back(shape[axis] == None ? extent(sequence, 1)
                                         : Dim(shape[axis]));
    }
    return full(dims, 0, type);
  }

  //===--------------------------------------------------------------------===//
  // Unrolled
  //===--------------------------------------------------------------------===//

  RnnResult unroll() {
    int64_t steps = int_shape(sequence)[0];
    if (steps == None)
      throw Error("rnn: unrolling requires a fixed number of time steps but "
                  "inputs has shape " +
                  shapeName(int_shape(sequence)) + " (time first)");
    Tensors states = initial, outputs;
    for (int64_t i = 0; i < steps; ++i) {
      int64_t time = options.go_backwards ? steps - 1 - i : i;
      auto [output, next] = call(getitem(sequence, {time}), states);
      if (mask) {
        Tensor flags = getitem(mask, {time});
        for (size_t s = 0; s < next.size(); ++s)
          next[s] = choose(flags, next[s], states[s]);
        bool repeats = !options.zero_output_for_mask && !outputs.empty();
        output = choose(flags, output, repeats ? outputs.back() : Tensor(0));
      }
      outputs.push_back(output);
      states = next;
    }
    if (outputs.empty())
      throw Error("rnn: unrolling requires 1 or more time steps");
    return {outputs.back(), stack(outputs, 0), states};
  }

  const StepFunction &step;
  const Tensors &initial;
  const RnnOptions &options;
  Tensor sequence, mask; // time-major
};

} // namespace

RnnResult rnn(const StepFunction &step_function, const Tensor &inputs,
              const Tensors &initial_states, const RnnOptions &options) {
  return Recurrence(step_function, initial_states, options).run(inputs);
}

//===----------------------------------------------------------------------===//
// Loops over elements
//===----------------------------------------------------------------------===//

Tensor map_fn(const UnaryFunction &fn, const Tensor &elems) {
  ScanStep loop =
      emitScan({elems}, {}, /*reverse=*/false,
               [&](ScanTrace &, const Tensors &slices, const Tensors &) {
                 return ScanStep{{}, {fn(slices[0])}};
               });
  return loop.outputs[0];
}

static Tensor fold(const FoldFunction &fn, const Tensor &elems,
                   const Tensor &initializer, bool reverse) {
  Tensor rest = elems, start = initializer;
  if (!start) {
    start = getitem(elems, {reverse ? -1 : 0});
    rest = getitem(
        elems, {reverse ? Slice{std::nullopt, -1} : Slice{1, std::nullopt}});
  } else if (!start.id()) {
    Tensor element = getitem(elems, {0});
    start = zeros_like(element, dtype(element)) + start;
  }
  ScanStep loop =
      emitScan({rest}, {start}, reverse,
               [&](ScanTrace &, const Tensors &slices, const Tensors &states) {
                 return ScanStep{{fn(states[0], slices[0])}, {}};
               });
  return loop.states[0];
}

Tensor foldl(const FoldFunction &fn, const Tensor &elems,
             const Tensor &initializer) {
  return fold(fn, elems, initializer, /*reverse=*/false);
}

Tensor foldr(const FoldFunction &fn, const Tensor &elems,
             const Tensor &initializer) {
  return fold(fn, elems, initializer, /*reverse=*/true);
}

} // namespace keratin::backend
