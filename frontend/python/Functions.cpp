//===- Functions.cpp - compiled functions as Python objects ---------------===//
#include "Functions.h"

#include "Bind.h"

#include <nanobind/stl/optional.h>
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

static K::SaveOptions toOptions(std::optional<int64_t> batch,
                                nb::handle inputShapes, bool training,
                                const std::string &target, bool optimize) {
  K::SaveOptions options;
  options.batch = batch.value_or(K::None);
  options.training = training;
  options.target = target;
  options.optimize = optimize;
  if (!inputShapes.is_none())
    for (nb::handle shape : nb::borrow<nb::sequence>(inputShapes))
      options.inputShapes.push_back(
          Convert<K::Shape>::from(shape, {"Function", "input_shapes"}, {}));
  return options;
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
      [](K::Function &self, const std::string &target, bool optimize) {
        K::CompileSettings settings;
        settings.target = target;
        settings.optimize = optimize;
        self.configure(settings);
      },
      "target"_a = "native", "optimize"_a = true,
      "How later calls are compiled; forgets what was compiled before.");
  type.def(
      "save",
      [](const K::Function &self, const std::string &prefix,
         const std::string &emit, const std::string &weights,
         const std::string &name, std::optional<int64_t> batch,
         nb::object inputShapes, bool training, const std::string &target,
         bool optimize) {
        K::SaveOptions options =
            toOptions(batch, inputShapes, training, target, optimize);
        options.emit = emit;
        options.weights = weights;
        options.name = name;
        std::vector<K::KernelInfo> kernels;
        {
          nb::gil_scoped_release release;
          kernels = self.save(prefix, options);
        }
        return describe(kernels);
      },
      "prefix"_a, "emit"_a = "obj", "weights"_a = "embed", "name"_a = "",
      "batch"_a.none() = nb::none(), "input_shapes"_a.none() = nb::none(),
      "training"_a = false, "target"_a = "native", "optimize"_a = true,
      "Writes PREFIX.o (.a, .so, or the executable PREFIX), PREFIX.h and, with "
      "external weights, PREFIX.weights. Returns the kernels.");
  type.def(
      "lower",
      [](const K::Function &self, const std::string &stage,
         std::optional<int64_t> batch, nb::object inputShapes, bool training,
         const std::string &target, bool optimize) {
        K::SaveOptions options =
            toOptions(batch, inputShapes, training, target, optimize);
        nb::gil_scoped_release release;
        return self.lower(stage, options);
      },
      "stage"_a, "batch"_a.none() = nb::none(),
      "input_shapes"_a.none() = nb::none(), "training"_a = false,
      "target"_a = "native", "optimize"_a = true,
      "The IR after a stage: graph, core, layout, linalg, kernels, loops, llvm "
      "or asm. Weights are elided.");
  m.def("make_function", &make, "inputs"_a, "outputs"_a, "updates"_a, "name"_a,
        "after_updates"_a, "output_names"_a);
}

} // namespace keratin::python
