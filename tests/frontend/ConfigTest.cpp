#include "keratin/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

namespace K = keratin::backend;
using keratin::Array;
using keratin::DType;
using keratin::Error;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

namespace {

/// A KERAS_HOME of its own for each test.
class Config : public testing::Test {
protected:
  void SetUp() override {
    directory = std::filesystem::path(testing::TempDir()) / "keratin-config";
    std::filesystem::create_directories(directory);
    setenv("KERAS_HOME", directory.c_str(), /*overwrite=*/1);
  }
  void TearDown() override {
    std::filesystem::remove_all(directory);
    K::reload_config();
    unsetenv("KERAS_HOME");
  }
  void write(const char *json) {
    std::ofstream(directory / "keras.json") << json;
  }
  void expectRefusal(const char *json, const char *key, const char *value) {
    write(json);
    EXPECT_THAT(
        [] { K::reload_config(); },
        ThrowsMessage<Error>(AllOf(HasSubstr("keras.json: "), HasSubstr(key),
                                   HasSubstr(value), HasSubstr("must be"))));
  }

  std::filesystem::path directory;
};

/// A variable of the environment, which it puts back.
class Environment {
public:
  Environment(const char *name, const char *value) : name(name) {
    if (const char *now = std::getenv(name))
      before = now;
    set(value);
  }
  ~Environment() { set(before ? before->c_str() : nullptr); }
  void set(const char *value) {
    if (value)
      setenv(name, value, /*overwrite=*/1);
    else
      unsetenv(name);
  }

private:
  const char *name;
  std::optional<std::string> before;
};

TEST_F(Config, IsKerasDefaultWithoutAFile) {
  K::reload_config();
  EXPECT_EQ(K::floatx(), DType::Float32);
  EXPECT_EQ(K::epsilon(), 1e-7);
  EXPECT_EQ(K::image_data_format(), "channels_last");
}

TEST_F(Config, ReadsTheFile) {
  write(R"({"floatx": "float64", "epsilon": 1e-5, "backend": "jax",
            "image_data_format": "channels_first"})");
  K::reload_config();
  EXPECT_EQ(K::floatx(), DType::Float64);
  EXPECT_EQ(K::epsilon(), 1e-5);
  EXPECT_EQ(K::image_data_format(), "channels_first");
  EXPECT_EQ(K::normalize_data_format(""), "channels_first");
}

TEST_F(Config, NamesFileKeyValueAndWhatIsAllowed) {
  expectRefusal(R"({"floatx": "float8"})", "floatx", "'float8'");
  expectRefusal(R"({"floatx": 32})", "floatx", "32");
  expectRefusal(R"({"epsilon": "small"})", "epsilon", "\"small\"");
  expectRefusal(R"({"epsilon": 0})", "epsilon", "between 0 and 1");
  expectRefusal(R"({"image_data_format": "nchw"})", "image_data_format",
                "'nchw'");
  expectRefusal(R"({"keratin": 3})", "keratin", "3");
  expectRefusal(R"({"keratin": {"cache": "here"}})", "keratin.cache", "here");
}

TEST_F(Config, SetsTheNumberOfThreads) {
  write(R"({"keratin": {"threads": 3}})");
  K::reload_config();
  EXPECT_EQ(K::num_threads(), 3);
  K::set_num_threads(2);
  EXPECT_EQ(K::num_threads(), 2);
  EXPECT_THAT([] { K::set_num_threads(-1); },
              ThrowsMessage<Error>(HasSubstr("num_threads is -1")));
  K::reload_config();
  EXPECT_EQ(K::num_threads(), 3);
  // What a user says for a run goes before what the file says for all.
  setenv("KTN_NUM_THREADS", "1", /*overwrite=*/1);
  K::reload_config();
  EXPECT_NE(K::num_threads(), 3);
  unsetenv("KTN_NUM_THREADS");
  write("{}");
  K::reload_config();
  EXPECT_GE(K::num_threads(), 1);
  for (const char *number : {"0", "-2", "1.5", "\"all\"", "1000"})
    expectRefusal(
        (R"({"keratin": {"threads": )" + std::string(number) + "}}").c_str(),
        "keratin.threads", number);
}

TEST_F(Config, SetsTheTarget) {
  write("{}");
  K::reload_config();
  EXPECT_EQ(K::compile_target(), "native");
  write(R"({"keratin": {"target": "x86-64-v2"}})");
  K::reload_config();
  EXPECT_EQ(K::compile_target(), "x86-64-v2");
  K::set_compile_target("aarch64-linux-gnu");
  EXPECT_EQ(K::compile_target(), "aarch64-linux-gnu");
  EXPECT_THAT([] { K::set_compile_target("z80"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("unknown target 'z80'"),
                                         HasSubstr("expected native"))));
  EXPECT_EQ(K::compile_target(), "aarch64-linux-gnu");
  K::set_compile_target("");
  EXPECT_EQ(K::compile_target(), "x86-64-v2");
  write(R"({"keratin": {"target": "vax"}})");
  EXPECT_THAT([] { K::reload_config(); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("keras.json: keratin.target is \"vax\""),
                        HasSubstr("expected native, x86-64"))));
  expectRefusal(R"({"keratin": {"target": 64}})", "keratin.target", "64");
}

TEST_F(Config, SetsThePrecision) {
  write("{}");
  K::reload_config();
  EXPECT_EQ(K::compute_precision(), "f32");
  write(R"({"keratin": {"precision": "bf16"}})");
  K::reload_config();
  EXPECT_EQ(K::compute_precision(), "bf16");
  K::set_compute_precision("f32");
  EXPECT_EQ(K::compute_precision(), "f32");
  EXPECT_THAT([] { K::set_compute_precision("fp8"); },
              ThrowsMessage<Error>(
                  HasSubstr("compute_precision is 'fp8' but must be 'f32'")));
  K::set_compute_precision("");
  EXPECT_EQ(K::compute_precision(), "bf16");
  K::GraphScope scope;
  K::Tensor x = K::placeholder({4, 8});
  K::Function function = K::function({x}, {K::dot(x, K::ones({8, 8}))});
  EXPECT_THAT(function.lower("linalg"), HasSubstr("bf16"));
  K::SaveOptions options;
  options.precision = "f32";
  EXPECT_THAT(function.lower("linalg", options), Not(HasSubstr("bf16")));
  options.precision = "f16";
  EXPECT_THAT(function.lower("linalg", options), HasSubstr("x8xf16>"));
  for (const char *value : {R"("half")", "16"})
    expectRefusal(
        (R"({"keratin": {"precision": )" + std::string(value) + "}}").c_str(),
        "keratin.precision is", "bf16");
}

// What the configuration says is what is compiled for, unless it is told.
TEST_F(Config, CompilesForTheTarget) {
  write(R"({"keratin": {"target": "aarch64-linux-gnu"}})");
  K::reload_config();
  K::GraphScope scope;
  K::Tensor x = K::placeholder({4});
  K::Function function = K::function({x}, {x + 1});
  EXPECT_THAT(function.lower("asm"), HasSubstr("fadd"));
  EXPECT_THAT([&] { function({keratin::Array::full({4}, 1)}); },
              ThrowsMessage<Error>(HasSubstr("cannot run")));
  K::SaveOptions options;
  options.target = "x86-64";
  EXPECT_THAT(function.lower("asm", options), HasSubstr("addps"));
}

TEST_F(Config, RefusesAKeyThatIsNone) {
  write(R"({"keratin": {"thread": 2}})");
  EXPECT_THAT([] { K::reload_config(); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("keras.json: "), HasSubstr("'thread'"),
                        HasSubstr("'precision', 'threads' and 'cache'"))));
}

TEST_F(Config, NamesTheBackendAsKerasDoes) {
  Environment chosen("KERAS_BACKEND", nullptr);
  K::reload_config();
  EXPECT_EQ(K::backend(), "keratin");
  write(R"({"backend": "keratin.keras2"})");
  K::reload_config();
  EXPECT_EQ(K::backend(), "keratin.keras2");
  chosen.set("keratin");
  EXPECT_EQ(K::backend(), "keratin");
  chosen.set(""); // as if it was not set
  EXPECT_EQ(K::backend(), "keratin.keras2");
  // Who asks is this backend, whatever others are configured for Keras.
  chosen.set("tensorflow");
  EXPECT_EQ(K::backend(), "keratin");
  expectRefusal(R"({"backend": 2})", "backend", "2");
}

TEST_F(Config, RefusesWhatIsNoJson) {
  write("{floatx: float32}");
  EXPECT_THAT([] { K::reload_config(); },
              ThrowsMessage<Error>(HasSubstr("keras.json: not valid JSON")));
  write("[1]");
  EXPECT_THAT([] { K::reload_config(); },
              ThrowsMessage<Error>(HasSubstr("holds no JSON object")));
}

TEST_F(Config, FindsTheDirectoryOfTheCache) {
  Environment home("HOME", "/home/me"), xdg("XDG_CACHE_HOME", nullptr),
      own("KERATIN_CACHE_DIR", nullptr);
  K::reload_config();
  EXPECT_EQ(K::cache_directory(), "/home/me/.cache/keratin");
  xdg.set("relative");
  EXPECT_EQ(K::cache_directory(), "/home/me/.cache/keratin");
  xdg.set("/xdg");
  EXPECT_EQ(K::cache_directory(), "/xdg/keratin");
  write(R"({"keratin": {"cache": "/file"}})");
  K::reload_config();
  EXPECT_EQ(K::cache_directory(), "/file");
  own.set("/own");
  EXPECT_EQ(K::cache_directory(), "/own");
  K::set_cache_directory("/set");
  EXPECT_EQ(K::cache_directory(), "/set");
  K::set_cache_directory(std::nullopt);
  EXPECT_EQ(K::cache_directory(), std::nullopt);
  K::reload_config();
  EXPECT_EQ(K::cache_directory(), "/own");
}

TEST_F(Config, NeedsNoDirectoryOfTheCache) {
  Environment home("HOME", nullptr), xdg("XDG_CACHE_HOME", nullptr),
      own("KERATIN_CACHE_DIR", nullptr);
  K::reload_config();
  EXPECT_EQ(K::cache_directory(), std::nullopt);
  own.set("");
  write(R"({"keratin": {"cache": "/file"}})");
  K::reload_config();
  EXPECT_EQ(K::cache_directory(), std::nullopt);
  own.set(nullptr);
  home.set("/home/me");
  write(R"({"keratin": {"cache": null}})");
  K::reload_config();
  EXPECT_EQ(K::cache_directory(), std::nullopt);
}

TEST_F(Config, KeepsTheOldValueWhenANewOneIsRefused) {
  K::reload_config();
  EXPECT_THROW(K::set_floatx("int32"), Error);
  EXPECT_THROW(K::set_epsilon(2), Error);
  EXPECT_THROW(K::set_image_data_format("last"), Error);
  EXPECT_EQ(K::floatx(), DType::Float32);
  EXPECT_EQ(K::epsilon(), 1e-7);
  EXPECT_EQ(K::image_data_format(), "channels_last");
}

TEST_F(Config, SaysWhatFloatsBecome) {
  K::reload_config();
  Array numbers = Array::of<int32_t>({2}, {-3, 4});
  EXPECT_EQ(K::cast_to_floatx(numbers).dtype(), DType::Float32);
  K::set_floatx("float64");
  Array cast = K::cast_to_floatx(numbers);
  EXPECT_EQ(cast.dtype(), DType::Float64);
  EXPECT_EQ(cast.at(0), -3);
  EXPECT_EQ(K::dtype(K::cast_to_floatx(K::constant(numbers))), DType::Float64);
  EXPECT_THROW(K::cast_to_floatx(K::Tensor()), Error);
}

TEST(Decorators, GiveTheFunctionItself) {
  auto twice = [](const K::Tensor &x) { return x * 2.0; };
  K::Tensor x = K::constant(3);
  EXPECT_EQ(K::eval(K::symbolic(twice)(x)).at(0), 6);
  EXPECT_EQ(K::eval(K::eager(twice)(x)).at(0), 6);
}

TEST_F(Config, IsAskedOfWhoeverHoldsIt) {
  auto source = std::make_shared<K::ConfigSource>();
  source->floatx = [] { return std::optional(DType::Float64); };
  source->epsilon = [] { return std::optional<double>(); };
  source->image_data_format = [] {
    return std::optional<std::string>("channels_first");
  };
  K::set_config_source(source);
  EXPECT_EQ(K::floatx(), DType::Float64);
  EXPECT_EQ(K::image_data_format(), "channels_first");
  EXPECT_EQ(K::epsilon(), 1e-7) << "which the source does not know";
  K::set_config_source(nullptr);
  EXPECT_EQ(K::floatx(), DType::Float32);
  EXPECT_EQ(K::image_data_format(), "channels_last");
}

} // namespace
