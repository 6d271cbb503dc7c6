//===- Compare.h - arrays of files and of models ----------------*- C++ -*-===//
#ifndef KERATIN_TOOLS_COMPARE_H
#define KERATIN_TOOLS_COMPARE_H

#include "Npz.h"

#include "keratin/function.h"

#include <string>
#include <vector>

namespace keratin {

/// The arrays for `inputs`: called in_NAME or NAME, or the only array there is
/// beside out_…. Converted to the dtype of the input; floats are not made
/// integers. Throws Error, which names `path` and every input that is missing.
std::vector<Array> pickInputs(const Arrays &arrays,
                              const std::vector<backend::TensorInfo> &inputs,
                              const std::string &path);

/// The first `count` along axis 0. Throws Error, which names `what`, when there
/// are fewer.
Array firstRows(const Array &array, int64_t count, const std::string &what);

/// How outputs differ from a reference.
struct Comparison {
  /// Worst output's max |y - ref| / max |ref|; infinite where a value is not
  /// finite and its reference is.
  double maxRelError = 0;
  std::string worstOutput;
  bool isFinite = true;

  bool passes(double limit) const { return isFinite && maxRelError <= limit; }
  /// One line that says why it does not pass.
  std::string problem(double limit) const;
};

/// Compares outputs with the arrays out_INDEX or NAME, or the only array beside
/// in_…. Of a reference with more rows the first ones count. Outputs without a
/// reference are an Error, and so are other shapes.
Comparison compare(const std::vector<Array> &outputs,
                   const std::vector<backend::TensorInfo> &infos,
                   const Arrays &expected, const std::string &path);

/// "float32 (3, 10), min -1.2, max 3.4, mean 0.5".
std::string summarize(const Array &array);

} // namespace keratin

#endif // KERATIN_TOOLS_COMPARE_H
