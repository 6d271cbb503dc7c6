//===- Backend.cpp - the functions of the API -----------------------------===//
//
// Most are generated from the C++ headers (bindings.py). Here are those that
// are overloaded, take functions, or whose Python form has other arguments.
//
//===----------------------------------------------------------------------===//
#include "Backend.h"

#include "Bind.h"
#include "Functions.h"
#include "keratin/abi.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <memory>

namespace keratin::python {

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

static DType dtypeOr(nb::handle dtype, DType otherwise, const char *function) {
  return dtype.is_none() ? otherwise
                         : Convert<DType>::from(dtype, {function, "dtype"}, {});
}

static std::string nameFrom(nb::handle name, const char *function) {
  return Convert<std::string>::from(name, {function, "name"}, {});
}

/// Elements as NumPy has them, refused in the words of the function.
static Array valueFrom(nb::handle value, const char *function) {
  // The bytes of a text are numbers, and not what it says.
  if (unwrap(value) || PyBytes_Check(value.ptr()))
    throw nb::type_error((std::string(function) + ": value is " +
                          (unwrap(value) ? "a tensor of the graph" : "bytes") +
                          " but must be an array or list of numbers")
                             .c_str());
  try {
    return copyArray(value);
  } catch (const nb::builtin_exception &error) {
    throw nb::type_error(
        (std::string(function) + ": value: " + error.what()).c_str());
  }
}

static size_t rankFrom(nb::handle ndim) {
  int64_t rank = toInteger(ndim, {"placeholder", "ndim"});
  if (rank < 0 || rank > KTN_MAX_RANK)
    throw Error("placeholder: ndim is " + std::to_string(rank) +
                " but must be in 0.." + std::to_string(KTN_MAX_RANK));
  return static_cast<size_t>(rank);
}

static nb::object placeholder(const nb::object *given) {
  const nb::object &shape = given[0], &ndim = given[1];
  K::Shape extents;
  if (!shape.is_none())
    extents = Convert<K::Shape>::from(shape, {"placeholder", "shape"}, {});
  else if (!ndim.is_none())
    extents.assign(rankFrom(ndim), K::None);
  else
    extents = {K::None}; // every tensor has a rank
  return wrap(K::placeholder(extents,
                             dtypeOr(given[2], K::floatx(), "placeholder"),
                             nameFrom(given[4], "placeholder")));
}

/// A matrix of scipy.sparse, in any of its formats.
static K::CsrArray sparseFrom(const nb::object &matrix) {
  nb::object csr = matrix.attr("tocsr")();
  return {
      valueFrom(csr.attr("data"), "variable"),
      valueFrom(csr.attr("indices"), "variable"),
      valueFrom(csr.attr("indptr"), "variable"),
      Convert<K::Shape>::from(csr.attr("shape"), {"variable", "shape"}, {})};
}

static nb::object variable(const nb::object *given) {
  const nb::object &value = given[0];
  DType dtype = dtypeOr(given[1], K::floatx(), "variable");
  std::string name = nameFrom(given[2], "variable");
  K::Tensor made;
  if (const PyTensor *tensor = unwrap(value))
    made = K::variable(K::cast(tensor->tensor, dtype), name);
  else if (PyObject_HasAttrString(value.ptr(), "tocsr"))
    made = K::variable(sparseFrom(value), dtype, name);
  else
    made = K::variable(valueFrom(value, "variable"), dtype, name);
  nb::object object = wrap(made);
  object.attr("constraint") = given[3];
  // Layers count a variable that is their attribute among their weights by it.
  object.attr("trainable") = true;
  return object;
}

/// As TensorFlow has it: a shape of as many elements as there are reshapes.
static nb::object constant(const nb::object *given) {
  Array value = valueFrom(given[0], "constant")
                    .to(dtypeOr(given[1], K::floatx(), "constant"));
  std::string name = nameFrom(given[3], "constant");
  auto withShape = [](const K::Tensor &tensor) {
    nb::object object = wrap(tensor);
    object.attr("_keras_shape") = toTuple(K::int_shape(tensor));
    return object;
  };
  if (given[2].is_none())
    return withShape(K::constant(value, name));
  auto shape = Convert<K::Shape>::from(given[2], {"constant", "shape"}, {});
  // Modulo 2^64: the array refuses a shape that is too large, or negative.
  uint64_t count = 1;
  for (int64_t extent : shape)
    count *= static_cast<uint64_t>(extent);
  if (count == static_cast<uint64_t>(value.size()))
    return withShape(K::constant(value.reshaped(shape), name));
  return withShape(K::broadcast_to(K::constant(value, name), shape));
}

static nb::object setValue(const nb::object *given) {
  const PyTensor *variable = unwrap(given[0]);
  if (!variable)
    throw nb::type_error("set_value: x is no variable");
  K::set_value(variable->tensor, valueFrom(given[1], "set_value"));
  return nb::none();
}

static nb::object eval(const nb::object *given) {
  const PyTensor *tensor = unwrap(given[0]);
  if (!tensor)
    throw nb::type_error("eval: x is no tensor");
  Array value;
  {
    K::Tensor x = tensor->tensor;
    nb::gil_scoped_release release;
    value = K::eval(x);
  }
  printPending();
  return toNumpy(std::move(value));
}

static nb::object split(const nb::object *given) {
  K::Tensor x = toTensor(given[0], {"split", "x"}, {});
  Place place{"split", "indices_or_sections"};
  int64_t axis = toInteger(given[2], {"split", "axis"});
  if (PyIndex_Check(given[1].ptr()))
    return result(K::split(x, toInteger(given[1], place), axis));
  return result(K::split(
      x, Convert<std::vector<int64_t>>::from(given[1], place, {}), axis));
}

static nb::object arange(const nb::object *given) {
  Place start{"arange", "start"}, stop{"arange", "stop"};
  int64_t step = toInteger(given[2], {"arange", "step"});
  DType dtype = dtypeOr(given[3], DType::Int32, "arange");
  if (unwrap(given[0]) || unwrap(given[1])) {
    Like like;
    like.join(given[0]);
    like.join(given[1]);
    return wrap(K::arange(toTensor(given[0], start, like),
                          toTensor(given[1], stop, like), step, dtype));
  }
  std::optional<int64_t> end;
  if (!given[1].is_none())
    end = toInteger(given[1], stop);
  return wrap(K::arange(toInteger(given[0], start), end, step, dtype));
}

static nb::object intShape(const nb::object *given) {
  if (const PyTensor *tensor = unwrap(given[0]);
      tensor && tensor->kerasShape.is_valid())
    return tensor->kerasShape;
  return toTuple(K::int_shape(toTensor(given[0], {"int_shape", "x"}, {})));
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

static nb::callable callableFrom(nb::handle object, Place place) {
  if (!PyCallable_Check(object.ptr()))
    throw nb::type_error((std::string(place.function) + ": " + place.argument +
                          " cannot be called")
                             .c_str());
  return nb::borrow<nb::callable>(object);
}

static nb::list wrapAll(const K::Tensors &tensors) {
  nb::list list;
  for (const K::Tensor &tensor : tensors)
    list.append(wrap(tensor));
  return list;
}

static K::StepFunction stepFrom(nb::handle object) {
  nb::callable step = callableFrom(object, {"rnn", "step_function"});
  return [step](const K::Tensor &input,
                const K::Tensors &states) -> std::pair<K::Tensor, K::Tensors> {
    nb::object returned = step(wrap(input), wrapAll(states));
    Place place{"rnn", "what step_function returns"};
    bool isPair = (nb::isinstance<nb::tuple>(returned) ||
                   nb::isinstance<nb::list>(returned)) &&
                  nb::len(returned) == 2;
    if (!isPair)
      throw nb::type_error("rnn: step_function must return (output, states)");
    Like like;
    like.join(returned[0]);
    return {toTensor(returned[0], place, like),
            Convert<K::Tensors>::from(returned[1], place, like)};
  };
}

static K::Tensors tensorsOrNone(nb::handle object, Place place) {
  if (object.is_none())
    return {};
  Like like;
  like.join(object);
  return Convert<K::Tensors>::from(object, place, like);
}

static nb::object rnn(const nb::object *given) {
  K::RnnOptions options;
  options.go_backwards =
      Convert<bool>::from(given[3], {"rnn", "go_backwards"}, {});
  options.mask = toTensor(given[4], {"rnn", "mask"}, {});
  options.constants = tensorsOrNone(given[5], {"rnn", "constants"});
  options.unroll = Convert<bool>::from(given[6], {"rnn", "unroll"}, {});
  if (!given[7].is_none() && !unwrap(given[7]))
    options.input_length = toInteger(given[7], {"rnn", "input_length"});
  K::RnnResult result =
      K::rnn(stepFrom(given[0]), toTensor(given[1], {"rnn", "inputs"}, {}),
             tensorsOrNone(given[2], {"rnn", "initial_states"}), options);
  return nb::make_tuple(wrap(result.last_output), wrap(result.outputs),
                        wrapAll(result.states));
}

static nb::object mapFn(const nb::object *given) {
  nb::callable function = callableFrom(given[0], {"map_fn", "fn"});
  return wrap(K::map_fn(
      [&](const K::Tensor &element) {
        return toTensor(function(wrap(element)), {"map_fn", "what fn returns"},
                        {});
      },
      toTensor(given[1], {"map_fn", "elems"}, {})));
}

using Fold = K::Tensor(const K::FoldFunction &, const K::Tensor &,
                       const K::Tensor &);

static nb::object foldWith(const char *name, Fold *fold,
                           const nb::object *given) {
  nb::callable function = callableFrom(given[0], {name, "fn"});
  Like like;
  like.join(given[1]);
  return wrap(fold(
      [&](const K::Tensor &accumulator, const K::Tensor &element) {
        return toTensor(function(wrap(accumulator), wrap(element)),
                        {name, "what fn returns"}, {});
      },
      toTensor(given[1], {name, "elems"}, {}),
      toTensor(given[2], {name, "initializer"}, like)));
}

static nb::object foldl(const nb::object *given) {
  return foldWith("foldl", &K::foldl, given);
}

static nb::object foldr(const nb::object *given) {
  return foldWith("foldr", &K::foldr, given);
}

//===----------------------------------------------------------------------===//
// Scopes
//===----------------------------------------------------------------------===//

namespace {

/// A context manager around an object that lives as long as the scope.
template <typename Scope, typename Argument> class Context {
public:
  explicit Context(Argument argument) : argument(std::move(argument)) {}
  void enter() { scope = std::make_unique<Scope>(argument); }
  void exit() { scope = nullptr; }
  const Argument &get() const { return argument; }

private:
  Argument argument;
  std::unique_ptr<Scope> scope;
};

using NameContext = Context<K::NameScope, std::string>;
using DependencyContext = Context<K::ControlDependencies, K::Tensors>;

} // namespace

static void defineScopes(nb::module_ &m) {
  nb::class_<NameContext>(m, "NameScope", "What name_scope gives.")
      .def("__enter__",
           [](NameContext &self) {
             self.enter();
             return self.get();
           })
      .def("__exit__", [](NameContext &self, nb::args) { self.exit(); });
  nb::class_<DependencyContext>(m, "ControlDependencies",
                                "What control_dependencies gives.")
      .def("__enter__", [](DependencyContext &self) { self.enter(); })
      .def("__exit__", [](DependencyContext &self, nb::args) { self.exit(); });
}

static nb::object nameScope(const nb::object *given) {
  return nb::cast(NameContext(nameFrom(given[0], "name_scope")));
}

static nb::object controlDependencies(const nb::object *given) {
  K::Tensors tensors;
  if (!given[0].is_none())
    tensors = Convert<K::Tensors>::from(
        given[0], {"control_dependencies", "control_inputs"}, {});
  return nb::cast(DependencyContext(std::move(tensors)));
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

/// A function that takes the arguments as they come.
static void handDef(nb::module_ &m, const char *name,
                    std::vector<Argument> arguments, const char *signature,
                    const char *doc,
                    nb::object (*function)(const nb::object *)) {
  defObjects(m, name, std::move(arguments), signature, doc,
             [function](const nb::object *given) {
               Building building;
               return function(given);
             });
}

void defineBackend(nb::module_ &m) {
  defineScopes(m);
  // bindings.py leaves out the names that stand here.
  auto byHand = [&](const char *name, std::vector<Argument> arguments,
                    const char *signature, const char *doc,
                    nb::object (*function)(const nb::object *)) {
    handDef(m, name, std::move(arguments), signature, doc, function);
  };
  byHand(
      "placeholder",
      {{"shape", "None"},
       {"ndim", "None"},
       {"dtype", "None"},
       {"sparse", "False"},
       {"name", "None"}},
      "def placeholder(shape: Sequence[int | None] | None = None, ndim: int | "
      "None = None, dtype: DTypeLike = None, sparse: bool = False, name: str | "
      "None = None) -> Tensor",
      "A value given when a function is called; a vector where neither `shape` "
      "nor "
      "`ndim` is given.",
      &placeholder);
  byHand(
      "variable",
      {{"value", nullptr},
       {"dtype", "None"},
       {"name", "None"},
       {"constraint", "None"}},
      "def variable(value: ArrayLike | Tensor, dtype: DTypeLike = None, name: "
      "str | None = None, constraint: Callable | None = None) -> Tensor",
      "State with an initial value, of dtype floatx() unless one is given.",
      &variable);
  byHand("constant",
         {{"value", nullptr},
          {"dtype", "None"},
          {"shape", "None"},
          {"name", "None"}},
         "def constant(value: ArrayLike, dtype: DTypeLike = None, shape: "
         "Sequence[int] | None = None, name: str | None = None) -> Tensor",
         "A value that never changes, of dtype floatx() unless one is given.",
         &constant);
  byHand("set_value", {{"x", nullptr}, {"value", nullptr}},
         "def set_value(x: Tensor, value: ArrayLike) -> None",
         "Gives a variable another value.", &setValue);
  byHand("int_shape", {{"x", nullptr}},
         "def int_shape(x: Tensor) -> tuple[int | None, ...]",
         "The extents that are known, `None` for the others.", &intShape);
  byHand("identity", {{"x", nullptr}, {"name", "None"}},
         "def identity(x: TensorLike, name: str | None = None) -> Tensor",
         "The same value as another object.", [](const nb::object *given) {
           K::Tensor x = toTensor(given[0], {"identity", "x"}, {});
           return wrapAnew(
               K::identity(x.isNumber() ? K::cast(x, K::floatx()) : x));
         });
  byHand("eval", {{"x", nullptr}}, "def eval(x: Tensor) -> numpy.ndarray",
         "The value of a tensor that depends on no placeholder.", &eval);
  byHand("arange",
         {{"start", nullptr},
          {"stop", "None"},
          {"step", "1"},
          {"dtype", "'int32'"}},
         "def arange(start: int | Tensor, stop: int | Tensor | None = None, "
         "step: int | Tensor = 1, dtype: DTypeLike = 'int32') -> Tensor",
         "start, start + step ... below stop; counts from 0 to start without "
         "`stop`.",
         &arange);
  byHand("split",
         {{"x", nullptr}, {"indices_or_sections", nullptr}, {"axis", "0"}},
         "def split(x: TensorLike, indices_or_sections: int | Sequence[int], "
         "axis: int = 0) -> list[Tensor]",
         "Equal parts along an axis, or those that end at indices.", &split);
  byHand(
      "rnn",
      {{"step_function", nullptr},
       {"inputs", nullptr},
       {"initial_states", nullptr},
       {"go_backwards", "False"},
       {"mask", "None"},
       {"constants", "None"},
       {"unroll", "False"},
       {"input_length", "None"}},
      "def rnn(step_function: Callable[[Tensor, list[Tensor]], tuple[Tensor, "
      "list[Tensor]]], inputs: TensorLike, initial_states: "
      "Sequence[TensorLike], go_backwards: bool = False, mask: TensorLike | "
      "None = None, constants: Sequence[TensorLike] | None = None, unroll: "
      "bool = False, input_length: int | None = None) -> tuple[Tensor, Tensor, "
      "list[Tensor]]",
      "Applies a step to each time step of (samples, time, ...): the last "
      "output, all outputs, and the last states.",
      &rnn);
  byHand(
      "map_fn",
      {{"fn", nullptr},
       {"elems", nullptr},
       {"name", "None"},
       {"dtype", "None"}},
      "def map_fn(fn: Callable[[Tensor], Tensor], elems: TensorLike, name: str "
      "| None = None, dtype: DTypeLike = None) -> Tensor",
      "`fn` of each element along the first axis, stacked.", &mapFn);
  const std::vector<Argument> fold = {{"fn", nullptr},
                                      {"elems", nullptr},
                                      {"initializer", "None"},
                                      {"name", "None"}};
  byHand("foldl", fold,
         "def foldl(fn: Callable[[Tensor, Tensor], Tensor], elems: TensorLike, "
         "initializer: TensorLike | None = None, name: str | None = None) -> "
         "Tensor",
         "fn(...fn(fn(initializer, x[0]), x[1])..., x[n-1]).", &foldl);
  byHand("foldr", fold,
         "def foldr(fn: Callable[[Tensor, Tensor], Tensor], elems: TensorLike, "
         "initializer: TensorLike | None = None, name: str | None = None) -> "
         "Tensor",
         "fn(...fn(fn(initializer, x[n-1]), x[n-2])..., x[0]).", &foldr);
  byHand("name_scope", {{"name", nullptr}},
         "def name_scope(name: str) -> NameScope",
         "A context in which names begin with `name/`.", &nameScope);
  byHand("control_dependencies", {{"control_inputs", nullptr}},
         "def control_dependencies(control_inputs: Sequence[Tensor]) -> "
         "ControlDependencies",
         "A context whose tensors wait for the updates that others depend on.",
         &controlDependencies);
  byHand("set_floatx", {{"floatx", nullptr}},
         "def set_floatx(floatx: str) -> None",
         "The default float type: float16, bfloat16, float32 or float64.",
         [](const nb::object *given) -> nb::object {
           K::set_floatx(Convert<std::string>::from(
               given[0], {"set_floatx", "floatx"}, {}));
           return nb::none();
         });

  defineGenerated(m);
}

} // namespace keratin::python
