//===- Compare.cpp - arrays of files and of models ------------------------===//
#include "Compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace keratin {

/// The array called `prefix + key` or `name`; else, for the only tensor, the
/// only array that does not begin with `otherPrefix`.
static const Array *findArray(const Arrays &arrays, const std::string &prefixed,
                              const std::string &name, bool isOnly,
                              std::string_view otherPrefix) {
  for (const std::string &key : {prefixed, name})
    if (auto found = arrays.find(key); found != arrays.end())
      return &found->second;
  const Array *only = nullptr;
  for (const auto &[key, array] : arrays) {
    if (key.starts_with(otherPrefix))
      continue;
    if (!isOnly || only)
      return nullptr;
    only = &array;
  }
  return only;
}

static std::string namesOf(const Arrays &arrays) {
  std::string names;
  for (const auto &[name, array] : arrays)
    names += (names.empty() ? "" : ", ") + name;
  return names;
}

std::vector<Array> pickInputs(const Arrays &arrays,
                              const std::vector<backend::TensorInfo> &inputs,
                              const std::string &path) {
  std::vector<Array> picked;
  std::string problems;
  for (const backend::TensorInfo &input : inputs) {
    const Array *found = findArray(arrays, "in_" + input.name, input.name,
                                   inputs.size() == 1, "out_");
    if (!found) {
      problems += (problems.empty() ? "" : "\n") + path +
                  ": no array for the input '" + input.name +
                  "': expected 'in_" + input.name + "' or '" + input.name +
                  "', has " + namesOf(arrays);
      continue;
    }
    if (isFloat(found->dtype()) && !isFloat(input.dtype))
      throw Error(path + ": the array for the input '" + input.name + "' is " +
                  std::string(dtypeName(found->dtype())) + ", expected " +
                  std::string(dtypeName(input.dtype)));
    picked.push_back(found->to(input.dtype));
  }
  if (!problems.empty())
    throw Error(problems);
  return picked;
}

Array firstRows(const Array &array, int64_t count, const std::string &what) {
  std::vector<int64_t> shape = array.shape();
  if (shape.empty() || shape[0] < count)
    throw Error(what + " has shape " + shapeName(shape) + ", fewer than the " +
                std::to_string(count) + " rows of the batch");
  shape[0] = count;
  return Array(array.dtype(), shape, array.data(), array.owner());
}

/// The rows of a reference that an output with fewer rows is compared with.
static Array matchRows(const Array &reference, const Array &output) {
  const std::vector<int64_t> &shape = output.shape();
  if (!shape.empty() && !reference.shape().empty() &&
      reference.shape()[0] > shape[0])
    return firstRows(reference, shape[0], "");
  return reference;
}

std::string Comparison::problem(double limit) const {
  char text[64];
  if (!isFinite)
    return "output '" + worstOutput +
           "' and the reference are not finite in the same places";
  std::snprintf(text, sizeof text, "%g is more than %g", maxRelError, limit);
  return "output '" + worstOutput + "': max_rel_error " + text;
}

/// max |y - ref| / max |ref|. What is not finite must be the same in both, or
/// the error is infinite.
static double relativeError(const Array &values, const Array &reference) {
  double difference = 0, scale = 0;
  for (int64_t index = 0; index < values.size(); ++index) {
    double expected = reference.at(index), value = values.at(index);
    if (!std::isfinite(expected) || !std::isfinite(value)) {
      bool same = std::isnan(expected) ? std::isnan(value) : value == expected;
      if (!same)
        return std::numeric_limits<double>::infinity();
      continue;
    }
    difference = std::max(difference, std::abs(value - expected));
    scale = std::max(scale, std::abs(expected));
  }
  // Against zeros there is no relative error; the absolute one then.
  return scale > 0 ? difference / scale : difference;
}

Comparison compare(const std::vector<Array> &outputs,
                   const std::vector<backend::TensorInfo> &infos,
                   const Arrays &expected, const std::string &path) {
  Comparison comparison;
  for (size_t index = 0; index < outputs.size(); ++index) {
    const std::string &name = infos[index].name;
    std::string key = "out_" + std::to_string(index);
    const Array *reference =
        findArray(expected, key, name, outputs.size() == 1, "in_");
    if (!reference)
      throw Error(path + ": no array for the output '" + name +
                  "': expected '" + key + "' or '" + name + "', has " +
                  namesOf(expected));
    Array rows = matchRows(*reference, outputs[index]);
    if (rows.shape() != outputs[index].shape())
      throw Error(path + ": output '" + name + "' has shape " +
                  shapeName(outputs[index].shape()) + ", expected " +
                  shapeName(reference->shape()));
    double error = relativeError(outputs[index], rows);
    if (error > comparison.maxRelError || comparison.worstOutput.empty()) {
      comparison.maxRelError = error;
      comparison.worstOutput = name;
    }
  }
  comparison.isFinite = std::isfinite(comparison.maxRelError);
  return comparison;
}

std::string summarize(const Array &array) {
  // Of the numbers among them; the mean tells that there are others.
  double least = std::numeric_limits<double>::quiet_NaN(), most = least;
  double sum = 0;
  for (int64_t index = 0; index < array.size(); ++index) {
    double value = array.at(index);
    least = std::fmin(least, value);
    most = std::fmax(most, value);
    sum += value;
  }
  std::string text(dtypeName(array.dtype()));
  text += " " + shapeName(array.shape());
  if (array.size() == 0)
    return text;
  char numbers[128];
  std::snprintf(numbers, sizeof numbers, ", min %g, max %g, mean %g", least,
                most, sum / static_cast<double>(array.size()));
  return text + numbers;
}

} // namespace keratin
