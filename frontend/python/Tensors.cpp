//===- Tensors.cpp - tensors as Python objects ----------------------------===//
#include "Tensors.h"

#include "Arguments.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <unordered_map>

namespace keratin::python {

//===----------------------------------------------------------------------===//
// Identity
//===----------------------------------------------------------------------===//

/// The object of each value, not owned: it takes itself out. The GIL guards it.
static std::unordered_map<const void *, PyObject *> &registry() {
  static auto *objects = new std::unordered_map<const void *, PyObject *>();
  return *objects;
}

/// The object of `id`, null when there is none or it is being deallocated.
static PyObject *find(const void *id) {
  auto found = registry().find(id);
  if (found == registry().end() || Py_REFCNT(found->second) == 0)
    return nullptr;
  return found->second;
}

PyTensor::~PyTensor() {
  // One of several objects of a value (K.identity) is registered.
  auto found = registry().find(tensor.id());
  if (found != registry().end() &&
      nb::inst_ptr<PyTensor>(nb::handle(found->second)) == this)
    registry().erase(found);
}

nb::object wrapAnew(const K::Tensor &tensor) {
  nb::object object =
      nb::cast(new PyTensor(tensor), nb::rv_policy::take_ownership);
  if (!find(tensor.id()))
    registry()[tensor.id()] = object.ptr();
  return object;
}

nb::object wrap(const K::Tensor &tensor) {
  if (!tensor)
    return nb::none();
  if (tensor.isNumber()) {
    double number = tensor.number();
    bool whole = number == static_cast<double>(static_cast<int64_t>(number));
    return whole ? nb::object(nb::int_(static_cast<int64_t>(number)))
                 : nb::object(nb::float_(number));
  }
  if (PyObject *object = find(tensor.id()))
    return nb::borrow(object);
  return wrapAnew(tensor);
}

const PyTensor *unwrap(nb::handle object) {
  static const nb::handle type = nb::type<PyTensor>();
  // Python code may derive from Tensor, so the type need not be the same.
  if (!PyObject_TypeCheck(object.ptr(),
                          reinterpret_cast<PyTypeObject *>(type.ptr())))
    return nullptr;
  return nb::inst_ptr<PyTensor>(object);
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

using Binary = K::Tensor (*)(const K::Tensor &, const K::Tensor &);

/// `function(a, b)` where one is a tensor and the other what goes with it;
/// NotImplemented, with which Python asks the other, for anything else.
static nb::object apply(const char *name, Binary function, nb::handle a,
                        nb::handle b) {
  if (!isTensorLike(a) || !isTensorLike(b))
    return nb::borrow(Py_NotImplemented);
  Building building;
  Like like;
  like.join(a);
  like.join(b);
  return wrap(
      function(toTensor(a, {name, "x"}, like), toTensor(b, {name, "y"}, like)));
}

template <typename Class>
static void defineBinary(Class &type, const char *method, const char *reflected,
                         const char *name, Binary function) {
  type.def(
      method,
      [=](nb::handle self, nb::handle other) {
        return apply(name, function, self, other);
      },
      nb::is_operator(), nb::arg("other").none());
  if (reflected)
    type.def(
        reflected,
        [=](nb::handle self, nb::handle other) {
          return apply(name, function, other, self);
        },
        nb::is_operator(), nb::arg("other").none());
}

static nb::object unary(const char *name,
                        K::Tensor (*function)(const K::Tensor &),
                        nb::handle self) {
  Building building;
  return wrap(function(toTensor(self, {name, "x"}, {})));
}

[[noreturn]] static void refuse(const char *what) {
  throw nb::type_error(what);
}

//===----------------------------------------------------------------------===//
// Indexing
//===----------------------------------------------------------------------===//

static std::optional<int64_t> bound(nb::handle value) {
  if (value.is_none())
    return std::nullopt;
  return toInteger(value, {"getitem", "a bound of a slice"});
}

static K::Index toIndex(nb::handle item) {
  if (item.is_none())
    return K::NewAxis{};
  if (item.is(Py_Ellipsis))
    return K::Ellipsis{};
  if (PySlice_Check(item.ptr())) {
    nb::object step = item.attr("step");
    return K::Slice{bound(item.attr("start")), bound(item.attr("stop")),
                    step.is_none() ? 1 : *bound(step)};
  }
  if (PyBool_Check(item.ptr()) || !PyIndex_Check(item.ptr()))
    refuse(("getitem: an index is a " +
            std::string(Py_TYPE(item.ptr())->tp_name) +
            " but must be an int, a slice, None, ... or an integer tensor")
               .c_str());
  return toInteger(item, {"getitem", "an index"});
}

/// `x[key]`.
static K::Tensor getItem(const K::Tensor &x, nb::handle key) {
  nb::tuple items = nb::isinstance<nb::tuple>(key) ? nb::borrow<nb::tuple>(key)
                                                   : nb::make_tuple(key);
  std::vector<K::Index> indices;
  // A tensor gathers along the axis that it stands at, counted in the result
  // of the other indices: those before it that are numbers take an axis away.
  std::vector<std::pair<int64_t, K::Tensor>> gathered;
  int64_t resultAxis = 0, consumed = 0;
  for (nb::handle item : items)
    consumed += !item.is_none() && !item.is(Py_Ellipsis);
  for (nb::handle item : items) {
    if (const PyTensor *index = unwrap(item)) {
      if (isFloat(K::dtype(index->tensor)) ||
          K::dtype(index->tensor) == DType::Bool)
        throw nb::type_error(("getitem: an index has dtype " +
                              std::string(dtypeName(K::dtype(index->tensor))) +
                              " but must be an integer")
                                 .c_str());
      gathered.emplace_back(resultAxis, index->tensor);
      indices.push_back(K::Slice{});
      ++resultAxis;
      continue;
    }
    indices.push_back(toIndex(item));
    if (std::holds_alternative<K::Ellipsis>(indices.back())) {
      resultAxis += std::max<int64_t>(K::ndim(x) - consumed, 0);
    } else if (std::holds_alternative<K::NewAxis>(indices.back())) {
      ++resultAxis;
    } else {
      resultAxis += std::holds_alternative<K::Slice>(indices.back());
    }
  }
  K::Tensor result = K::getitem(x, indices);
  int64_t shift = 0;
  for (const auto &[axis, index] : gathered) {
    result = K::gather(result, index, axis + shift);
    shift += K::ndim(index) - 1;
  }
  return result;
}

//===----------------------------------------------------------------------===//
// The class
//===----------------------------------------------------------------------===//

static std::string describe(const PyTensor &self) {
  std::string name = K::name(self.tensor);
  return "<" +
         std::string(K::is_variable(self.tensor) ? "variable" : "tensor") +
         (name.empty() ? "" : " '" + name + "'") +
         " shape=" + shapeName(K::int_shape(self.tensor)) +
         " dtype=" + std::string(dtypeName(K::dtype(self.tensor))) + ">";
}

/// A value that no op computes.
static bool isGiven(const K::Tensor &tensor) {
  return K::is_placeholder(tensor) || K::is_variable(tensor);
}

void defineTensor(nb::module_ &m) {
  nb::class_<PyTensor> type(m, "Tensor", nb::dynamic_attr(),
                            nb::is_weak_referenceable(),
                            "A value of the graph. Hashed and compared by "
                            "identity; `K.equal` compares elements.");
  type.def_prop_ro(
      "dtype",
      [](const PyTensor &self) {
        return std::string(dtypeName(K::dtype(self.tensor)));
      },
      "The name of the element type.");
  type.def_prop_ro(
      "shape",
      [](const PyTensor &self) { return toTuple(K::int_shape(self.tensor)); },
      "Extents, `None` where not known.");
  type.def_prop_ro(
      "ndim", [](const PyTensor &self) { return K::ndim(self.tensor); },
      "Number of axes.");
  type.def_prop_ro(
      "name",
      [](const PyTensor &self) -> std::optional<std::string> {
        std::string name = K::name(self.tensor);
        return name.empty() ? std::nullopt : std::optional(name);
      },
      "Of a variable or placeholder; else `None`.");
  // Keras asks with hasattr whether there is anything to tell: there is where
  // it or its own backends set these, and where the learning phase matters.
  type.def_prop_rw(
      "_uses_learning_phase",
      [](const PyTensor &self) {
        bool uses = self.usesLearningPhase.value_or(false) ||
                    K::uses_learning_phase(self.tensor);
        if (!uses && !self.usesLearningPhase && !isGiven(self.tensor))
          throw nb::attribute_error("_uses_learning_phase");
        return uses;
      },
      [](PyTensor &self, nb::object value) {
        self.usesLearningPhase = PyObject_IsTrue(value.ptr()) == 1;
      });
  type.def_prop_rw(
      "_keras_shape",
      [](const PyTensor &self) -> nb::object {
        if (self.kerasShape.is_valid())
          return self.kerasShape;
        if (!isGiven(self.tensor))
          throw nb::attribute_error("_keras_shape");
        return toTuple(K::int_shape(self.tensor));
      },
      [](PyTensor &self, nb::object value) {
        self.kerasShape = std::move(value);
      });
  type.def("__repr__", &describe);

  defineBinary(type, "__add__", "__radd__", "add", &K::add);
  defineBinary(type, "__sub__", "__rsub__", "subtract", &K::subtract);
  defineBinary(type, "__mul__", "__rmul__", "multiply", &K::multiply);
  defineBinary(type, "__truediv__", "__rtruediv__", "divide", &K::divide);
  defineBinary(type, "__floordiv__", "__rfloordiv__", "floor_divide",
               &K::floor_divide);
  defineBinary(type, "__mod__", "__rmod__", "mod", &K::mod);
  defineBinary(type, "__pow__", "__rpow__", "pow", &K::pow);
  defineBinary(type, "__matmul__", "__rmatmul__", "matmul", &K::matmul);
  defineBinary(type, "__and__", "__rand__", "logical_and", &K::logical_and);
  defineBinary(type, "__or__", "__ror__", "logical_or", &K::logical_or);
  defineBinary(type, "__lt__", nullptr, "less", &K::less);
  defineBinary(type, "__le__", nullptr, "less_equal", &K::less_equal);
  defineBinary(type, "__gt__", nullptr, "greater", &K::greater);
  defineBinary(type, "__ge__", nullptr, "greater_equal", &K::greater_equal);
  type.def("__neg__", [](nb::handle self) {
    return unary("negative", &K::negative, self);
  });
  type.def("__abs__",
           [](nb::handle self) { return unary("abs", &K::abs, self); });
  type.def("__invert__", [](nb::handle self) {
    return unary("logical_not", &K::logical_not, self);
  });
  type.def(
      "__getitem__",
      [](const PyTensor &self, nb::handle key) {
        Building building;
        return wrap(getItem(self.tensor, key));
      },
      nb::arg("key").none());

  // Python would take them from __getitem__, and loop or answer without end.
  type.def("__bool__", [](nb::handle) -> bool {
    refuse("a tensor of the graph has no truth value: compute with it, or "
           "evaluate it with K.eval");
  });
  type.def("__len__", [](nb::handle) -> size_t {
    refuse("a tensor of the graph has no length: see K.shape and K.int_shape");
  });
  type.def("__iter__", [](nb::handle) -> nb::object {
    refuse("a tensor of the graph cannot be iterated over: see K.map_fn");
  });
  type.def(
      "__contains__",
      [](nb::handle, nb::handle) -> bool {
        refuse("`in` does not look into a tensor of the graph");
      },
      nb::arg("element").none());
  type.def("__array__", [](nb::handle, nb::args, nb::kwargs) -> nb::object {
    refuse("a tensor of the graph is no array: evaluate it with K.eval");
  });
  // With these an array on the left leaves an operator to us.
  type.attr("__array_ufunc__") = nb::none();
  type.attr("__array_priority__") = 1000;
}

} // namespace keratin::python
