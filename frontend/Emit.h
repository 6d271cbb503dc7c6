//===- Emit.h - appending one op to the graph -------------------*- C++ -*-===//
//
// What the functions of the API that are one op are made of. Private; without
// MLIR, so that files of composites compile quickly.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_FRONTEND_EMIT_H
#define KERATIN_FRONTEND_EMIT_H

#include "keratin/tensor.h"

#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace keratin::backend {

/// The attribute `data_format`.
struct ChannelOrder {
  bool channelsFirst;
};
/// A scalar attribute of an element type.
struct Number {
  double value;
  DType dtype;
};
/// A list of extents, in which `None` is `?`.
struct Extents {
  std::vector<int64_t> list;
};
/// An attribute that says all by being there.
struct Flag {};
using AttributeValue = std::variant<int64_t, bool, double, std::vector<int64_t>,
                                    Extents, DType, ChannelOrder, Number, Flag>;
using Attributes = std::vector<std::pair<std::string_view, AttributeValue>>;

/// Appends `ktn.<mnemonic>` to the graph of its operands and returns its
/// result. Operands after the first `required` are optional ones: `None` is an
/// absent one. Throws Error with the op's diagnostic when it does not verify.
Tensor emit(std::string_view mnemonic, const Tensors &operands,
            const Attributes &attributes = {}, size_t required = SIZE_MAX);

/// The state of a random op, int64 {key, number of calls}: a variable that each
/// function which reads it advances by one call. Without a seed the key is of
/// draw_seed(). Each op has a state of its own.
Tensor randomState(std::optional<uint64_t> seed);

/// What the program makes of the values of a call, after it.
using HostTask =
    std::function<std::vector<Array>(const std::vector<Array> &values)>;
/// Tensors that `task` makes of the values of `operands`: their shapes may
/// depend on the values. They can only be outputs of functions, or events. A
/// saved function, which has no program to ask, gives `saved` instead, a tensor
/// for each of them; none where it cannot be saved.
Tensors emitHost(HostTask task, const Tensors &operands,
                 const std::vector<std::pair<Shape, DType>> &results,
                 const Tensors &saved = {});
/// `x`; a function that computes it does the tasks that `events` depend on.
Tensor emitAfter(const Tensor &x, const Tensors &events);

/// What the graph knows of the elements of an integer tensor of at most one
/// axis: extents of known shapes, and arithmetic on them. Empty where even
/// their number is not known.
std::vector<std::optional<int64_t>> knownElements(const Tensor &x);

/// The operands of the `ktn.<mnemonic>` that makes x; none when something else
/// makes it.
Tensors operandsOf(std::string_view mnemonic, const Tensor &x);
/// An integer attribute of that op.
std::optional<int64_t> attributeOf(std::string_view mnemonic, const Tensor &x,
                                   std::string_view name);

/// While it lives, errors about ops of this thread name the API's function
/// instead of the op; of nested ones the outermost.
class CalledAs {
public:
  explicit CalledAs(std::string_view function);
  ~CalledAs();
  CalledAs(const CalledAs &) = delete;
  CalledAs &operator=(const CalledAs &) = delete;
  /// The function that is called, `fallback` outside of any.
  static std::string_view current(std::string_view fallback);

private:
  bool outermost;
};

/// A `ktn.scan` while its body is traced.
class ScanTrace {
public:
  virtual ~ScanTrace() = default;
  /// Adds a state that starts as `initial`, a tensor from outside of the body;
  /// returns it as the body sees it.
  virtual Tensor addState(const Tensor &initial) = 0;
  /// Calls `make` with ops going before the loop.
  virtual Tensor outside(const std::function<Tensor()> &make) = 0;
};

struct ScanStep {
  Tensors states, outputs;
};
using ScanBody = std::function<ScanStep(ScanTrace &trace, const Tensors &slices,
                                        const Tensors &states)>;
/// Appends a `ktn.scan` of the time-major `xs`: the last states and the stacked
/// outputs. `body` is called once. The gradient keeps the states of each step,
/// or one in `checkpointEvery`.
ScanStep emitScan(const Tensors &xs, const Tensors &initial, bool reverse,
                  const ScanBody &body,
                  std::optional<int64_t> checkpointEvery = std::nullopt);

/// `axis` counted from the front. Throws Error when x has no such axis.
int64_t normalizeAxis(int64_t axis, int64_t rank, std::string_view function);
/// The axes sorted and counted from the front. Throws Error for one that is
/// not there or there twice.
std::vector<int64_t> normalizeAxes(const Axes &axes, int64_t rank,
                                   std::string_view function);
/// Throws Error for `None`, naming the function and the argument.
void requireTensor(const Tensor &x, std::string_view function,
                   std::string_view argument);

} // namespace keratin::backend

#endif // KERATIN_FRONTEND_EMIT_H
