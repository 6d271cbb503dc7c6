//===- Rnn.cpp - loops over time and over elements ------------------------===//
#include "../Emit.h"
#include "keratin/backend.h"

#include <algorithm>

namespace keratin::backend {

namespace {

bool agree(int64_t a, int64_t b) { return a == None || b == None || a == b; }

/// A step must return states like those that it takes.
void checkStates(std::string_view function, const Tensors &before,
                 const Tensors &after) {
  for (size_t i = 0; i < before.size(); ++i) {
    std::string name = "state " + std::to_string(i);
    requireTensor(after[i], function, name + " that the step returns");
    if (!after[i].id())
      continue; // a number takes the shape that it needs
    Shape from = int_shape(before[i]), to = int_shape(after[i]);
    bool fits = from.size() == to.size() &&
                std::equal(from.begin(), from.end(), to.begin(), agree);
    if (!fits)
      throw Error(std::string(function) + ": " + name + " has shape " +
                  shapeName(from) + " but the step returns one of shape " +
                  shapeName(to));
    if (dtype(before[i]) != dtype(after[i]))
      throw Error(std::string(function) + ": " + name + " has dtype " +
                  std::string(dtypeName(dtype(before[i]))) +
                  " but the step returns one of dtype " +
                  std::string(dtypeName(dtype(after[i]))));
  }
}

/// One call of rnn: what it was given, and how the pieces of a step combine.
class Recurrence {
public:
  Recurrence(const StepFunction &step, const Tensors &initial,
             const RnnOptions &options)
      : step(step), initial(initial), options(options) {}

  RnnResult run(const Tensor &inputs) {
    requireTensor(inputs, "rnn", "inputs");
    if (ndim(inputs) < 2)
      throw Error("rnn: inputs has shape " + shapeName(int_shape(inputs)) +
                  " but must have samples and time");
    for (const Tensor &state : initial)
      if (!state.id())
        throw Error("rnn: initial_states holds a number or None but must hold "
                    "tensors");
    sequence = options.time_major ? inputs : swapaxes(inputs, 0, 1);
    if (options.mask)
      mask = timeMajorMask(inputs);
    RnnResult result = options.unroll ? unroll() : scan();
    if (!options.time_major)
      result.outputs = swapaxes(result.outputs, 0, 1);
    return result;
  }

private:
  Tensor timeMajorMask(const Tensor &inputs) const {
    Shape given = int_shape(options.mask), expected = int_shape(inputs);
    expected.resize(2);
    bool fits = given.size() == 2;
    for (size_t axis = 0; fits && axis < 2; ++axis)
      fits = agree(given[axis], expected[axis]);
    if (!fits)
      throw Error(
          "rnn: mask has shape " + shapeName(given) + " but inputs " +
          shapeName(int_shape(inputs)) + " needs " +
          (options.time_major ? "(time, samples) " : "(samples, time) ") +
          shapeName(expected));
    Tensor flags = cast(options.mask, DType::Bool);
    return options.time_major ? flags : swapaxes(flags, 0, 1);
  }

  /// The step function with the constants after the states, as Keras has it.
  std::pair<Tensor, Tensors> call(const Tensor &input,
                                  const Tensors &states) const {
    Tensors all = states;
    all.insert(all.end(), options.constants.begin(), options.constants.end());
    auto [output, next] = step(input, all);
    requireTensor(output, "rnn", "the output of the step function");
    if (next.size() != states.size())
      throw Error("rnn: the step function returns " +
                  std::to_string(next.size()) + " states but takes " +
                  std::to_string(states.size()));
    checkStates("rnn", states, next);
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
        },
        options.checkpoint_every);

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
    Tensor zeros = trace.outside([&] { return zeroOutput(output); });
    Tensor previous = trace.addState(zeros);
    Tensor masked = choose(flags, output, previous);
    result.states.push_back(masked);
    result.outputs = {masked};
    return result;
  }

  /// Zeros in the shape of `output`, a tensor of a step, for outside of the
  /// loop: what its type leaves open but the samples is that of a first step.
  Tensor zeroOutput(const Tensor &output) const {
    Shape shape = int_shape(output);
    bool knowsAll = std::count(shape.begin(), shape.end(), None) ==
                    (!shape.empty() && shape[0] == None);
    if (!knowsAll)
      return zeros_like(call(getitem(sequence, {0}), initial).first,
                        dtype(output));
    std::vector<Dim> dims(shape.begin(), shape.end());
    if (!shape.empty() && shape[0] == None)
      dims[0] = extent(sequence, 1);
    return full(dims, 0, dtype(output));
  }

  //===--------------------------------------------------------------------===//
  // Unrolled
  //===--------------------------------------------------------------------===//

  RnnResult unroll() {
    int64_t steps = int_shape(sequence)[0];
    if (steps == None)
      steps = options.input_length.value_or(None);
    if (steps == None)
      throw Error("rnn: unrolling requires a fixed number of timesteps but "
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

Tensors map_fn(const MapFunction &fn, const Tensors &elems) {
  if (elems.empty())
    throw Error("map_fn: elems has no tensor");
  for (const Tensor &each : elems)
    requireTensor(each, "map_fn", "elems");
  return emitScan(elems, {}, /*reverse=*/false,
                  [&](ScanTrace &, const Tensors &slices, const Tensors &) {
                    return ScanStep{{}, fn(slices)};
                  })
      .outputs;
}

Tensor map_fn(const UnaryFunction &fn, const Tensor &elems) {
  auto all = [&](const Tensors &elements) { return Tensors{fn(elements[0])}; };
  return map_fn(MapFunction(all), Tensors{elems})[0];
}

/// `start` in the shape and dtype of an element when it is a number.
static Tensor startOf(const Tensor &start, const Tensor &elems) {
  if (start.id())
    return start;
  Tensor element = getitem(elems, {0});
  return zeros_like(element, dtype(element)) + start;
}

static Tensors fold(std::string_view function, const FoldsFunction &fn,
                    Tensors elems, const Tensors &initializer, bool reverse) {
  if (elems.empty())
    throw Error(std::string(function) + ": elems has no tensor");
  for (const Tensor &each : elems)
    requireTensor(each, function, "elems");
  Tensors start;
  for (const Tensor &each : initializer)
    start.push_back(startOf(each, elems[0]));
  if (initializer.empty())
    for (Tensor &each : elems) {
      start.push_back(getitem(each, {reverse ? -1 : 0}));
      each = getitem(
          each, {reverse ? Slice{std::nullopt, -1} : Slice{1, std::nullopt}});
    }
  return emitScan(
             elems, start, reverse,
             [&](ScanTrace &, const Tensors &slices, const Tensors &states) {
               Tensors next = fn(states, slices);
               if (next.size() != states.size())
                 throw Error(std::string(function) + ": the step returns " +
                             std::to_string(next.size()) +
                             " accumulators but takes " +
                             std::to_string(states.size()));
               checkStates(function, states, next);
               return ScanStep{next, {}};
             })
      .states;
}

static Tensor foldOne(std::string_view function, const FoldFunction &fn,
                      const Tensor &elems, const Tensor &initializer,
                      bool reverse) {
  auto all = [&](const Tensors &accumulators, const Tensors &elements) {
    return Tensors{fn(accumulators[0], elements[0])};
  };
  Tensors start = initializer ? Tensors{initializer} : Tensors();
  return fold(function, all, {elems}, start, reverse)[0];
}

Tensor foldl(const FoldFunction &fn, const Tensor &elems,
             const Tensor &initializer) {
  return foldOne("foldl", fn, elems, initializer, /*reverse=*/false);
}

Tensors foldl(const FoldsFunction &fn, const Tensors &elems,
              const Tensors &initializer) {
  return fold("foldl", fn, elems, initializer, /*reverse=*/false);
}

Tensor foldr(const FoldFunction &fn, const Tensor &elems,
             const Tensor &initializer) {
  return foldOne("foldr", fn, elems, initializer, /*reverse=*/true);
}

Tensors foldr(const FoldsFunction &fn, const Tensors &elems,
              const Tensors &initializer) {
  return fold("foldr", fn, elems, initializer, /*reverse=*/true);
}

} // namespace keratin::backend
