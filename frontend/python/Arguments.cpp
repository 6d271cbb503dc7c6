//===- Arguments.cpp - arguments of the API from Python objects -----------===//
#include "Arguments.h"

#include "Arrays.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <cmath>

namespace keratin::python {

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

static std::recursive_mutex buildingMutex;

Building::Building() {
  while (!buildingMutex.try_lock()) {
    nb::gil_scoped_release release;
    buildingMutex.lock();
    buildingMutex.unlock();
  }
}

Building::~Building() { buildingMutex.unlock(); }

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

/// `object` for people: its value where that is short, and its type.
static std::string describe(nb::handle object) {
  std::string text;
  try {
    text = nb::cast<std::string>(nb::repr(object));
  } catch (const nb::python_error &) {
    text = "an object";
  }
  if (text.size() > 60)
    text = text.substr(0, 57) + "...";
  return text + " (" + nb::cast<std::string>(object.type().attr("__name__")) +
         ")";
}

[[noreturn]] static void refuse(nb::handle object, Place place,
                                const char *expected) {
  throw nb::type_error((std::string(place.function) + ": " + place.argument +
                        " is " + describe(object) + " but must be " + expected)
                           .c_str());
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

int64_t toInteger(nb::handle object, Place place) {
  // float has no __index__; a float that is whole is no integer either.
  nb::object index = nb::steal(PyNumber_Index(object.ptr()));
  if (!index.is_valid()) {
    PyErr_Clear();
    refuse(object, place, "an integer");
  }
  int overflow = 0;
  int64_t value = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow)
    throw nb::value_error((std::string(place.function) + ": " + place.argument +
                           " is " + describe(object) +
                           " but must be less than 2^63")
                              .c_str());
  return value;
}

int64_t Convert<int64_t>::from(nb::handle object, Place place,
                               const Like &like) {
  // Keras' layers give the strides of a single axis as a list of one.
  if ((PyTuple_Check(object.ptr()) || PyList_Check(object.ptr())) &&
      PySequence_Size(object.ptr()) == 1)
    return from(nb::borrow<nb::sequence>(object)[0], place, like);
  return toInteger(object, place);
}

int Convert<int>::from(nb::handle object, Place place, const Like &) {
  int64_t value = toInteger(object, place);
  if (value != static_cast<int>(value))
    refuse(object, place, "an integer of 32 bits");
  return static_cast<int>(value);
}

/// A seed: a negative one is as good as another.
uint64_t Convert<uint64_t>::from(nb::handle object, Place place, const Like &) {
  return static_cast<uint64_t>(toInteger(object, place));
}

double Convert<double>::from(nb::handle object, Place place, const Like &) {
  double value = PyFloat_AsDouble(object.ptr());
  if (value == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    refuse(object, place, "a number");
  }
  return value;
}

bool Convert<bool>::from(nb::handle object, Place place, const Like &) {
  int value = PyObject_IsTrue(object.ptr());
  if (value < 0) {
    PyErr_Clear();
    refuse(object, place, "true or false");
  }
  return value == 1;
}

std::string Convert<std::string>::from(nb::handle object, Place place,
                                       const Like &) {
  if (object.is_none())
    return "";
  if (!nb::isinstance<nb::str>(object))
    refuse(object, place, "a string");
  try {
    return nb::cast<std::string>(object);
  } catch (const nb::cast_error &) { // half of a pair of surrogates
    refuse(object, place, "a string of characters");
  }
}

DType Convert<DType>::from(nb::handle object, Place place, const Like &) {
  if (object.is_none())
    return K::floatx();
  try {
    return toDType(object);
  } catch (const nb::python_error &) {
    refuse(object, place, "the name of a dtype");
  } catch (const nb::cast_error &) {
    refuse(object, place, "the name of a dtype");
  }
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

static bool isNumpy(nb::handle object) {
  return PyObject_HasAttrString(object.ptr(), "__array__") ||
         PyObject_CheckBuffer(object.ptr());
}

static bool isSequence(nb::handle object) {
  return PyList_Check(object.ptr()) || PyTuple_Check(object.ptr());
}

static bool isText(nb::handle object) {
  return PyUnicode_Check(object.ptr()) || PyBytes_Check(object.ptr());
}

static bool isNumber(nb::handle object) {
  return PyBool_Check(object.ptr()) || PyLong_Check(object.ptr()) ||
         PyFloat_Check(object.ptr());
}

bool isTensorLike(nb::handle object) {
  return unwrap(object) || isNumber(object) || isSequence(object) ||
         (!isText(object) && isNumpy(object));
}

/// Whether a list holds a tensor, at any depth.
static bool holdsTensor(nb::handle object) {
  if (unwrap(object))
    return true;
  if (isSequence(object))
    for (nb::handle element : nb::borrow<nb::sequence>(object))
      if (holdsTensor(element))
        return true;
  return false;
}

void Like::join(nb::handle operand) {
  if (const PyTensor *tensor = unwrap(operand)) {
    DType dtype = K::dtype(tensor->tensor);
    if (!type || *type == DType::Bool)
      type = dtype;
  } else if (isSequence(operand)) {
    for (nb::handle element : nb::borrow<nb::sequence>(operand))
      join(element);
  }
}

static K::Tensor numberOf(nb::handle object, Place place) {
  if (PyBool_Check(object.ptr()))
    return object.is(Py_True);
  if (PyLong_Check(object.ptr()))
    return toInteger(object, place);
  return PyFloat_AsDouble(object.ptr());
}

/// An array among tensors has their dtype; one among none its own, where lists
/// of Python floats are floatx().
static K::Tensor arrayTensor(nb::handle object, Place place, const Like &like) {
  constexpr const char *expected =
      "a tensor, a number, or an array or list of numbers";
  Array array = [&] {
    try {
      return copyArray(object);
    } catch (const nb::python_error &) {
      refuse(object, place, expected);
    } catch (const nb::builtin_exception &) {
      refuse(object, place, expected);
    }
  }();
  // A number is a number, whatever holds it.
  if (array.shape().empty()) {
    if (array.dtype() == DType::Bool)
      return array.at(0) != 0;
    if (!isFloat(array.dtype()) && array.dtype() != DType::Int64)
      return static_cast<int64_t>(array.at(0));
    if (array.dtype() == DType::Int64)
      return *array.as<int64_t>();
    return array.at(0);
  }
  bool isList = isSequence(object);
  DType dtype = array.dtype();
  if (like.dtype()) {
    dtype = *like.dtype();
    if (isFloat(array.dtype()) && !isFloat(dtype))
      throw nb::type_error(
          (std::string(place.function) + ": " + place.argument +
           " is an array of dtype " + std::string(dtypeName(array.dtype())) +
           " where tensors have dtype " + std::string(dtypeName(dtype)))
              .c_str());
  } else if (isList && dtype == DType::Float64) {
    dtype = K::floatx();
  } else if (isList && dtype == DType::Int64) {
    dtype = DType::Int32;
  }
  return K::constant(array.to(dtype), "");
}

/// An element of a list of tensors: a number among them has their dtype.
static K::Tensor elementTensor(nb::handle object, Place place,
                               const Like &like) {
  K::Tensor element = toTensor(object, place, like);
  if (!element.isNumber() || !like.dtype())
    return element;
  DType dtype = *like.dtype();
  if (!isFloat(dtype) && element.number() != std::trunc(element.number()))
    refuse(object, place, "an integer, as the tensors beside it are");
  return K::constant(Array::full({}, element.number(), dtype), "");
}

K::Tensor toTensor(nb::handle object, Place place, const Like &like) {
  if (const PyTensor *tensor = unwrap(object))
    return tensor->tensor;
  if (object.is_none())
    return {};
  if (isNumber(object))
    return numberOf(object, place);
  if (isSequence(object) && holdsTensor(object)) {
    Like elements = like;
    elements.join(object);
    K::Tensors parts;
    for (nb::handle element : nb::borrow<nb::sequence>(object))
      parts.push_back(elementTensor(element, place, elements));
    return K::stack(parts, 0);
  }
  if (isText(object))
    refuse(object, place, "a tensor, a number, or an array or list of numbers");
  return arrayTensor(object, place, like);
}

K::Tensor Convert<K::Tensor>::from(nb::handle object, Place place,
                                   const Like &like) {
  return toTensor(object, place, like);
}

K::Tensors Convert<K::Tensors>::from(nb::handle object, Place place,
                                     const Like &like) {
  K::Tensors tensors;
  if (!isSequence(object))
    refuse(object, place, "a list of tensors");
  for (nb::handle element : nb::borrow<nb::sequence>(object))
    tensors.push_back(elementTensor(element, place, like));
  return tensors;
}

K::Branch Convert<K::Branch>::from(nb::handle object, Place place,
                                   const Like &like) {
  if (unwrap(object) || !PyCallable_Check(object.ptr()))
    return toTensor(object, place, like);
  return [function = nb::borrow<nb::callable>(object), place, like] {
    return toTensor(function(), place, like);
  };
}

//===----------------------------------------------------------------------===//
// Shapes and axes
//===----------------------------------------------------------------------===//

nb::tuple toTuple(const K::Shape &shape) {
  nb::object result =
      nb::steal(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    nb::object extent = shape[axis] == K::None
                            ? nb::object(nb::none())
                            : nb::object(nb::int_(shape[axis]));
    PyTuple_SET_ITEM(result.ptr(), axis, extent.release().ptr());
  }
  return nb::borrow<nb::tuple>(result);
}

/// The elements of a list, tuple, or array with one axis.
static nb::object elementsOf(nb::handle object, Place place,
                             const char *expected) {
  nb::object list;
  if (!isText(object) && !unwrap(object))
    list = nb::steal(PySequence_List(object.ptr()));
  if (!list.is_valid()) {
    PyErr_Clear();
    refuse(object, place, expected);
  }
  return list;
}

static bool isInteger(nb::handle object) {
  return PyIndex_Check(object.ptr()) && !PySequence_Check(object.ptr());
}

std::vector<int64_t> Convert<std::vector<int64_t>>::from(nb::handle object,
                                                         Place place,
                                                         const Like &) {
  if (object.is_none())
    return {};
  if (isInteger(object))
    return {toInteger(object, place)};
  std::vector<int64_t> result;
  for (nb::handle element : elementsOf(object, place, "a list of integers"))
    result.push_back(element.is_none() ? K::None : toInteger(element, place));
  return result;
}

K::Axes Convert<K::Axes>::from(nb::handle object, Place place,
                               const Like &like) {
  if (object.is_none())
    return {};
  return Convert<std::vector<int64_t>>::from(object, place, like);
}

K::Dim Convert<K::Dim>::from(nb::handle object, Place place, const Like &) {
  if (object.is_none())
    return K::None;
  if (const PyTensor *tensor = unwrap(object))
    return tensor->tensor;
  return toInteger(object, place);
}

K::Dims Convert<K::Dims>::from(nb::handle object, Place place,
                               const Like &like) {
  std::vector<K::Dim> dims;
  if (const PyTensor *shape = unwrap(object)) {
    K::Shape extents = K::int_shape(shape->tensor);
    if (extents.size() != 1 || extents[0] == K::None)
      throw Error(std::string(place.function) + ": " + place.argument +
                  " is a tensor of shape " + shapeName(extents) +
                  " but a shape has one axis of known extent");
    for (int64_t axis = 0; axis < extents[0]; ++axis)
      dims.push_back(K::getitem(shape->tensor, {axis}));
    return dims;
  }
  if (isInteger(object))
    return {toInteger(object, place)};
  for (nb::handle element :
       elementsOf(object, place, "a shape: integers, None and scalar tensors"))
    dims.push_back(Convert<K::Dim>::from(element, place, like));
  return dims;
}

std::pair<int64_t, int64_t>
Convert<std::pair<int64_t, int64_t>>::from(nb::handle object, Place place,
                                           const Like &like) {
  auto pair = Convert<std::vector<int64_t>>::from(object, place, like);
  if (pair.size() != 2)
    refuse(object, place, "a pair of integers");
  return {pair[0], pair[1]};
}

std::vector<std::pair<int64_t, int64_t>>
Convert<std::vector<std::pair<int64_t, int64_t>>>::from(nb::handle object,
                                                        Place place,
                                                        const Like &like) {
  std::vector<std::pair<int64_t, int64_t>> result;
  for (nb::handle element :
       elementsOf(object, place, "a list of pairs of integers"))
    result.push_back(
        Convert<std::pair<int64_t, int64_t>>::from(element, place, like));
  return result;
}

K::Padding Convert<K::Padding>::from(nb::handle object, Place place,
                                     const Like &like) {
  if (nb::isinstance<nb::str>(object))
    return nb::cast<std::string>(object);
  return Convert<std::vector<std::pair<int64_t, int64_t>>>::from(object, place,
                                                                 like);
}

Array Convert<Array>::from(nb::handle object, Place place, const Like &) {
  if (unwrap(object))
    refuse(object, place, "an array, not a tensor of the graph");
  return copyArray(object);
}

} // namespace keratin::python
