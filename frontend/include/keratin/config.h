//===- config.h - what a backend is configured with -------------*- C++ -*-===//
//
// The defaults come from the keys floatx, epsilon and image_data_format of
// keras.json in $KERAS_HOME, or in ~/.keras; without such a file they are
// "float32", 1e-7 and "channels_last". Its section "keratin" is Keratin's own:
//
//   "keratin": {"target": "native", "precision": "f32", "threads": 4,
//               "cache": "/tmp/cache"}
//
// which are compile_target, compute_precision, num_threads and what
// keratin/cache.h tells. The file is read at the first use; one that is not
// valid throws an Error that names the file, the key, the value and what is
// allowed. Any thread may call these functions.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CONFIG_H
#define KERATIN_CONFIG_H

#include "keratin/array.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace keratin::backend {

/// The name of this backend in configurations and saved models: $KERAS_BACKEND
/// or, where that is not set or empty, the key "backend", if it is a module of
/// Keratin such as "keratin.keras2"; else "keratin".
std::string backend();

/// The default float type: float16, bfloat16, float32 or float64.
DType floatx();
void set_floatx(DType dtype);
void set_floatx(std::string_view name);

/// The fuzz factor of divisions and logarithms.
double epsilon();
/// Throws Error unless 0 < e < 1.
void set_epsilon(double e);

/// "channels_last" or "channels_first".
std::string image_data_format();
/// Throws Error for another name.
void set_image_data_format(std::string_view data_format);

/// `name`, or image_data_format() when it is empty. Throws Error for a name
/// that is none.
std::string normalize_data_format(std::string_view name);

/// How many threads run one function at most: as many as the process may use
/// CPUs, unless keras.json, $KTN_NUM_THREADS or set_num_threads, which go
/// before each other in this order, say otherwise. Numbers computed do not
/// depend on it.
int64_t num_threads();
/// 0 gives back the default. Throws Error for a negative number.
void set_num_threads(int64_t number);

/// The machine that functions are compiled for when they are not told:
/// "native", unless keras.json or set_compile_target say otherwise. Functions
/// that are called need one that runs here.
std::string compile_target();
/// A target of `keratinc`; empty gives back the default. Functions that were
/// compiled stay as they are. Throws Error for a name that is none.
void set_compile_target(std::string_view target);

/// What the factors of products are rounded to in functions that are not told:
/// "f32", unless keras.json or set_compute_precision say otherwise.
std::string compute_precision();
/// "f32", "bf16" or "f16"; empty gives back the default. Functions that were
/// compiled stay as they are. Throws Error for another name.
void set_compute_precision(std::string_view precision);

/// Someone else who holds the configuration, such as Keras in whose process
/// Keratin is the backend: asked at each use, `nullopt` where it has none.
struct ConfigSource {
  std::function<std::optional<DType>()> floatx;
  std::function<std::optional<double>()> epsilon;
  std::function<std::optional<std::string>()> image_data_format;
};
/// Null restores what is set here and read from keras.json.
void set_config_source(std::shared_ptr<const ConfigSource> source);

/// Forgets what was set and reads keras.json again.
void reload_config();

} // namespace keratin::backend

#endif // KERATIN_CONFIG_H
