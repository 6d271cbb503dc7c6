//===- Arrays.cpp - NumPy arrays in and out -------------------------------===//
#include "Arrays.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace keratin::python {

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

static nb::object &numpy() {
  // Never destroyed: the interpreter is gone when statics are.
  static auto *module = new nb::object(nb::module_::import_("numpy"));
  return *module;
}

nb::object asNumpy(nb::handle object) {
  static auto *asarray = new nb::object(numpy().attr("asarray"));
  try {
    return (*asarray)(object);
  } catch (const nb::python_error &error) {
    // Lists of different lengths: an array of objects before NumPy 1.24.
    if (!error.matches(PyExc_ValueError))
      throw;
    throw nb::value_error(nb::str(error.value()).c_str());
  }
}

/// The dtype of a buffer whose elements are of this machine, by the character
/// of Python's struct module.
static std::optional<DType> dtypeOfFormat(const char *format, Py_ssize_t size) {
  if (!format)
    return DType::UInt8;
  if (*format == '@' || *format == '=' ||
      (*format == '<' && std::endian::native == std::endian::little))
    ++format;
  if (*format == 0 || format[1] != 0)
    return std::nullopt;
  switch (*format) {
  case '?':
    return DType::Bool;
  case 'B':
    return DType::UInt8;
  case 'b':
  case 'h':
  case 'i':
  case 'l':
  case 'q':
    return size == 1   ? DType::Int8
           : size == 2 ? DType::Int16
           : size == 4 ? DType::Int32
                       : DType::Int64;
  case 'e':
    return DType::Float16;
  case 'f':
    return DType::Float32;
  case 'd':
    return DType::Float64;
  default:
    return std::nullopt;
  }
}

DType toDType(nb::handle object) {
  nb::object name;
  if (nb::isinstance<nb::str>(object)) {
    name = nb::borrow(object);
  } else {
    nb::object dtype = numpy().attr("dtype")(object);
    name = dtype.attr("name");
  }
  try {
    return parseDType(nb::cast<std::string_view>(name));
  } catch (const Error &error) {
    throw nb::type_error(error.what());
  }
}

//===----------------------------------------------------------------------===//
// In
//===----------------------------------------------------------------------===//

namespace {

/// A view of a Python buffer. Whoever calls compiled code keeps its arguments
/// until the GIL is held again, so waiting for it here holds up nobody.
struct View {
  Py_buffer buffer = {};
  ~View() {
    nb::gil_scoped_acquire gil;
    PyBuffer_Release(&buffer); // nothing for one that was not filled
  }
};

} // namespace

/// What NumPy holds that we have no type for, as the next wider one.
static nb::object withKnownType(const nb::object &array) {
  nb::object dtype = array.attr("dtype");
  auto kind = nb::cast<std::string>(dtype.attr("kind"));
  auto size = nb::cast<int64_t>(dtype.attr("itemsize"));
  auto name = nb::cast<std::string>(dtype.attr("name"));
  const char *known = nullptr;
  if (kind == "u")
    known = size == 1 ? "uint8" : size == 2 ? "int32" : "int64";
  else if (kind == "i")
    known = size == 1   ? "int8"
            : size == 2 ? "int16"
            : size == 4 ? "int32"
                        : "int64";
  else if (kind == "f")
    known = size == 2 ? "float16" : size == 4 ? "float32" : "float64";
  else if (kind == "b")
    known = "bool";
  else if (name == "bfloat16")
    known = "float32";
  if (!known)
    throw nb::type_error(
        ("an array of dtype " + name + " holds no numbers").c_str());
  return array.attr("astype")(known);
}

/// Empty when the buffer is not dense or of an unknown type.
static std::optional<Array> borrowBuffer(nb::handle object) {
  auto view = std::make_unique<View>();
  if (PyObject_GetBuffer(object.ptr(), &view->buffer,
                         PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  const Py_buffer &buffer = view->buffer;
  std::optional<DType> dtype = dtypeOfFormat(buffer.format, buffer.itemsize);
  if (!dtype)
    return std::nullopt;
  std::vector<int64_t> shape(buffer.shape, buffer.shape + buffer.ndim);
  const void *data = buffer.buf;
  return Array(*dtype, std::move(shape), data,
               std::shared_ptr<const void>(std::move(view)));
}

Array borrowArray(nb::handle object) {
  if (std::optional<Array> array = borrowBuffer(object))
    return *std::move(array);
  nb::object array = asNumpy(object);
  if (std::optional<Array> dense = borrowBuffer(array))
    return *std::move(dense);
  array = numpy().attr("ascontiguousarray")(withKnownType(array));
  // An array without axes has got one by that.
  array = array.attr("reshape")(asNumpy(object).attr("shape"));
  if (std::optional<Array> dense = borrowBuffer(array))
    return *std::move(dense);
  throw nb::type_error("this array cannot be read");
}

Array copyArray(nb::handle object) {
  Array array = borrowArray(object);
  array.mutableData(); // copies, as its owner is not us
  return array;
}

//===----------------------------------------------------------------------===//
// Out
//===----------------------------------------------------------------------===//

static nb::dlpack::dtype dlpackType(DType dtype) {
  auto bits = static_cast<uint8_t>(dtypeSize(dtype) * 8);
  nb::dlpack::dtype_code code = nb::dlpack::dtype_code::Int;
  if (dtype == DType::Bool)
    code = nb::dlpack::dtype_code::Bool;
  else if (dtype == DType::UInt8)
    code = nb::dlpack::dtype_code::UInt;
  else if (isFloat(dtype))
    code = nb::dlpack::dtype_code::Float;
  return {static_cast<uint8_t>(code), bits, 1};
}

nb::object toNumpy(Array array) {
  // NumPy has no bfloat16 of its own.
  if (array.dtype() == DType::BFloat16)
    array = array.to(DType::Float32);
  auto kept = std::make_unique<Array>(std::move(array));
  void *data = kept->mutableData();
  std::vector<size_t> shape(kept->shape().begin(), kept->shape().end());
  nb::dlpack::dtype type = dlpackType(kept->dtype());
  nb::capsule owner(kept.release(),
                    [](void *p) noexcept { delete static_cast<Array *>(p); });
  nb::ndarray<nb::numpy> view(data, shape.size(), shape.data(), owner, nullptr,
                              type);
  nb::object result = nb::cast(view, nb::rv_policy::reference);
  return shape.empty() ? nb::object(result[nb::tuple()]) : result;
}

} // namespace keratin::python
