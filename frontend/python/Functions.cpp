//===- Functions.cpp - compiled functions as Python objects ---------------===//
#include "Functions.h"

#include "Bind.h"
#include "Settings.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace keratin::python {

/// Whoever calls the sink may hold locks that must not wait for the GIL.
static thread_local std::vector<std::pair<std::string, Array>> printed;

void printPending() {
  if (printed.empty())
    return;
  auto lines = std::exchange(printed, {});
  for (auto &[message, value] : lines)
    nb::print(nb::str("{} {}").format(message, toNumpy(std::move(value))));
}

/// Feeds as Keras does: floats may go where integers are expected.
static Array toInput(nb::handle object, const K::TensorInfo &input) {
  if (unwrap(object))
    throw nb::type_error(("input '" + input.name +
                          "' is given a tensor of the graph, not a value")
                             .c_str());
  nb::object dense = nb::borrow(object);
  if (PyObject_HasAttrString(object.ptr(), "tocsr"))
    dense = object.attr("toarray")();
  Array array = [&] {
    try {
      return borrowArray(dense);
    } catch (const nb::builtin_exception &error) {
      throw nb::type_error(
          ("input '" + input.name + "': " + error.what()).c_str());
    }
  }();
  return isFloat(input.dtype) ? std::move(array) : array.to(input.dtype);
}

static nb::list callFunction(const K::Function &function, nb::handle inputs) {
  const std::vector<K::TensorInfo> &infos = function.inputs();
  if (!PyList_Check(inputs.ptr()) && !PyTuple_Check(inputs.ptr()))
    throw nb::type_error("a function is called with the list of its inputs");
  std::vector<Array> arguments;
  arguments.reserve(infos.size());
  size_t index = 0;
  for (nb::handle input : nb::borrow<nb::sequence>(inputs)) {
    // One too many is for the function to refuse.
    arguments.push_back(index < infos.size() ? toInput(input, infos[index])
                                             : borrowArray(input));
    ++index;
  }
  std::vector<Array> results;
  {
    nb::gil_scoped_release release;
    results = function(arguments);
  }
  printPending();
  nb::list list;
  for (Array &array : results)
    list.append(toNumpy(std::move(array)));
  return list;
}

//===----------------------------------------------------------------------===//
// Making
//===----------------------------------------------------------------------===//

/// `(variable, value)`, or a tensor that K.update gave.
static K::Update toUpdate(nb::handle object) {
  Place place{"function", "an update"};
  if (PyTuple_Check(object.ptr()) || PyList_Check(object.ptr())) {
    nb::sequence pair = nb::borrow<nb::sequence>(object);
    if (nb::len(pair) != 2)
      throw nb::value_error("function: an update has "
                            "the form (variable, new value)");
    nb::object variable = pair[0];
    Like like;
    like.join(variable);
    return {toTensor(variable, place, {}), toTensor(pair[1], place, like)};
  }
  return toTensor(object, place, {});
}

static K::Function make(nb::object inputs, nb::object outputs,
                        nb::object updates, const std::string &name,
                        std::vector<size_t> afterUpdates,
                        std::vector<std::string> outputNames) {
  Building building;
  auto ins = Convert<K::Tensors>::from(inputs, {"function", "inputs"}, {});
  auto outs = Convert<K::Tensors>::from(outputs, {"function", "outputs"}, {});
  std::vector<K::Update> changes;
  for (nb::handle update : nb::borrow<nb::sequence>(updates))
    changes.push_back(toUpdate(update));
  K::FunctionNames names;
  if (!name.empty())
    names.function = name;
  names.outputs = std::move(outputNames);
  // Values of variables change between calls of what Keras makes, and then a
  // function with them folded in would have to be compiled anew.
  return K::function(
      ins, outs, changes, names,
      {.afterUpdates = std::move(afterUpdates), .foldVariables = false});
}

//===----------------------------------------------------------------------===//
// Artefacts
//===----------------------------------------------------------------------===//

static nb::list describe(const std::vector<K::KernelInfo> &kernels) {
  nb::list list;
  for (const K::KernelInfo &kernel : kernels) {
    nb::dict row;
    row["name"] = kernel.name;
    row["op"] = kernel.op;
    row["shapes"] = kernel.shapes;
    row["flops"] = nb::make_tuple(kernel.flops[0], kernel.flops[1]);
    row["bytes"] = nb::make_tuple(kernel.bytes[0], kernel.bytes[1]);
    list.append(row);
  }
  return list;
}

static nb::list describe(const std::vector<K::TensorInfo> &tensors) {
  nb::list list;
  for (const K::TensorInfo &tensor : tensors)
    list.append(nb::make_tuple(tensor.name,
                               std::string(dtypeName(tensor.dtype)),
                               toTuple(tensor.shape)));
  return list;
}

/// `{name: function}` or `{name: (function, training)}`.
static std::vector<K::SavedFunction> savedFunctionsFrom(nb::handle functions) {
  if (!PyDict_Check(functions.ptr()))
    throw nb::type_error("save: functions is no dict of names and functions");
  std::vector<K::SavedFunction> saved;
  for (auto [key, value] : nb::borrow<nb::dict>(functions)) {
    auto name = Convert<std::string>::from(key, {"save", "a name"}, {});
    nb::handle function = value;
    bool training = false;
    if (PyTuple_Check(value.ptr()) && nb::len(value) == 2) {
      function = value[0];
      training = Convert<bool>::from(value[1], {"save", "training"}, {});
    }
    if (!nb::isinstance<K::Function>(function))
      throw nb::type_error(("save: '" + name +
                            "' is neither a Function nor a tuple of a "
                            "Function and whether it trains")
                               .c_str());
    saved.push_back({name, nb::cast<K::Function>(function), training});
  }
  return saved;
}

static nb::list saveTogether(const std::string &prefix, nb::object functions,
                             nb::kwargs given) {
  std::vector<K::SavedFunction> saved = savedFunctionsFrom(functions);
  K::SaveOptions options = saveOptionsFrom(given, "save");
  std::vector<K::KernelInfo> kernels;
  {
    nb::gil_scoped_release release;
    kernels = K::save(prefix, saved, options);
  }
  return describe(kernels);
}

void defineFunctions(nb::module_ &m) {
  using namespace nb::literals;
  K::set_print_sink([](const std::string &message, const Array &value) {
    printed.emplace_back(message, value);
  });
  nb::class_<K::Function> type(m, "Function", nb::dynamic_attr(),
                               "Computes tensors of a graph from values of "
                               "others. Compiled at the first "
                               "call for the shapes of the call, and kept.");
  type.def("__call__", &callFunction, "inputs"_a,
           nb::sig("def __call__(self, inputs: Sequence[ArrayLike]) -> "
                   "list[numpy.ndarray]"),
           "The values of the outputs, as NumPy arrays.");
  type.def_prop_ro(
      "inputs", [](const K::Function &self) { return describe(self.inputs()); },
      "(name, dtype, shape) of each input.");
  type.def_prop_ro(
      "outputs",
      [](const K::Function &self) { return describe(self.outputs()); },
      "(name, dtype, shape) of each output.");
  type.def(
      "configure",
      [](K::Function &self, nb::kwargs given) {
        K::CompileSettings settings;
        setFrom(given, "configure", settings);
        self.configure(settings);
      },
      nb::sig("def configure(self, *, " KERATIN_SETTINGS_SIGNATURE ") -> None"),
      "How later calls are compiled; forgets what was compiled before. The "
      "target is compile_target() unless it is given.");
  type.def(
      "save",
      [](const K::Function &self, const std::string &prefix, nb::kwargs given) {
        K::SaveOptions options = saveOptionsFrom(given, "save");
        std::vector<K::KernelInfo> kernels;
        {
          nb::gil_scoped_release release;
          kernels = self.save(prefix, options);
        }
        return describe(kernels);
      },
      "prefix"_a, "given"_a,
      nb::sig("def save(self, prefix: str, *, emit: str = 'obj', weights: str "
              "= 'embed', name: str = '', " KERATIN_SAVE_SIGNATURE
              ") -> list[dict[str, Any]]"),
      "Writes PREFIX.o (.a, .so, or the executable PREFIX), PREFIX.h and, with "
      "external weights, PREFIX.weights; variables are saved with their "
      "present values. Returns the kernels.");
  type.def(
      "lower",
      [](const K::Function &self, const std::string &stage, nb::kwargs given) {
        K::SaveOptions options = saveOptionsFrom(given, "lower");
        nb::gil_scoped_release release;
        return self.lower(stage, options);
      },
      "stage"_a, "given"_a,
      nb::sig("def lower(self, stage: str, *, " KERATIN_SAVE_SIGNATURE
              ") -> str"),
      "The IR after a stage: graph, core, layout, linalg, kernels, loops, llvm "
      "or asm. Weights are elided.");
  m.def("save", &saveTogether, "prefix"_a, "functions"_a, "given"_a,
        nb::sig("def save(prefix: str, functions: dict[str, Function | "
                "tuple[Function, bool]], *, emit: str = 'obj', weights: str = "
                "'embed', name: str = '', " KERATIN_SAVE_SIGNATURE
                ") -> list[dict[str, Any]]"),
        "Writes one artefact with several functions, such as `{\"predict\": f, "
        "\"step\": (g, True)}`, where True tells that g trains. The variables "
        "that any of them updates are its state: they live in the memory of "
        "each instance of the model, begin with their present values, and can "
        "be exported and imported as bytes. Returns the kernels.");
  m.def("make_function", &make, "inputs"_a, "outputs"_a, "updates"_a, "name"_a,
        "after_updates"_a, "output_names"_a,
        "A Function; `backend.function` is what users call.");
}

} // namespace keratin::python
