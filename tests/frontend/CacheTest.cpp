//===- CacheTest.cpp - what is compiled once, and what is not -------------===//
#include "Arrays.h"

#include "keratin/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

namespace K = keratin::backend;
namespace fs = std::filesystem;
using keratin::Array;
using keratin::DType;
using keratin::Error;
using keratin::test::floats;
using keratin::test::valuesOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

namespace {

/// x * factor + 1, of two numbers.
std::vector<double> scaled(double factor, const K::CompileSettings &how = {}) {
  K::Tensor x = K::placeholder({2});
  K::Function f = K::function(
      {x},
      {x * K::constant(floats({2}, {float(factor), float(factor)})) + 1.0});
  f.configure(how);
  return valuesOf(f({floats({2}, {1, 2})})[0]);
}

/// A directory for the files of a test alone.
class Cache : public testing::Test {
protected:
  void SetUp() override {
    std::string model = fs::path(testing::TempDir()) / "keratin-cache-XXXXXX";
    directory = mkdtemp(model.data());
    useDirectory();
    forget();
  }
  void TearDown() override {
    K::set_cache_directory(std::nullopt);
    K::clear_compile_cache();
    fs::remove_all(directory);
  }

  void useDirectory(uint64_t limit = 1 << 30) {
    K::set_cache_directory(directory / "files", limit);
  }
  /// As at the start of a process.
  void forget() {
    K::clear_compile_cache();
    K::reset_compile_cache_statistics();
  }
  std::vector<fs::path> files() {
    std::vector<fs::path> result;
    for (const auto &file : fs::directory_iterator(directory / "files"))
      result.push_back(file.path());
    return result;
  }

  fs::path directory;
};

/// memory hits, disk hits, misses
std::vector<uint64_t> counts() {
  K::CompileCacheStatistics statistics = K::compile_cache_statistics();
  return {statistics.memoryHits, statistics.diskHits, statistics.misses};
}

TEST_F(Cache, CompilesOneStructureOnce) {
  EXPECT_THAT(scaled(3), ElementsAre(4, 7));
  EXPECT_THAT(counts(), ElementsAre(0, 0, 1));
  EXPECT_THAT(scaled(3), ElementsAre(4, 7));
  EXPECT_THAT(counts(), ElementsAre(1, 0, 1));
  forget();
  EXPECT_THAT(scaled(3), ElementsAre(4, 7));
  EXPECT_THAT(counts(), ElementsAre(0, 1, 0));
}

TEST_F(Cache, TakesNoNoticeOfNames) {
  for (std::string name : {"one", "two"}) {
    K::GraphScope scope;
    K::Tensor x = K::placeholder({2}, DType::Float32, name + "_x");
    K::Tensor w = K::variable(floats({2}, {1, 2}), name + "_w");
    K::FunctionNames names;
    names.function = name;
    names.inputs = {name};
    names.outputs = {name + "_y"};
    K::Function f = K::function({x}, {x * w}, {}, names);
    EXPECT_THAT(valuesOf(f({floats({2}, {5, 7})})[0]), ElementsAre(5, 14));
  }
  EXPECT_THAT(counts(), ElementsAre(1, 0, 1));
}

TEST_F(Cache, CompilesForEachShape) {
  K::Tensor x = K::placeholder({K::None});
  K::Function f = K::function({x}, {x * 2.0});
  EXPECT_THAT(valuesOf(f({floats({1}, {1})})[0]), ElementsAre(2));
  EXPECT_THAT(valuesOf(f({floats({2}, {1, 2})})[0]), ElementsAre(2, 4));
  EXPECT_THAT(counts(), ElementsAre(0, 0, 2));
}

TEST_F(Cache, TellsConstantsOptionsTypesAndAttributesApart) {
  scaled(3);
  EXPECT_THAT(scaled(4), ElementsAre(5, 9));
  EXPECT_THAT(counts(), ElementsAre(0, 0, 2)) << "another constant";

  forget();
  K::CompileSettings reference;
  reference.optimize = false;
  EXPECT_THAT(scaled(3, reference), ElementsAre(4, 7));
  EXPECT_THAT(counts(), ElementsAre(0, 0, 1)) << "another option";

  forget();
  for (DType dtype : {DType::Float32, DType::Float64}) {
    K::Tensor x = K::placeholder({2}, dtype);
    EXPECT_EQ(K::function({x}, {x + x})({Array(dtype, {2})})[0].dtype(), dtype);
  }
  EXPECT_THAT(counts(), ElementsAre(0, 0, 2)) << "another dtype";

  forget();
  for (int64_t axis : {0, 1}) {
    K::Tensor x = K::placeholder({2, 2});
    K::Function f = K::function({x}, {K::cumsum(x, axis)});
    EXPECT_EQ(f({floats({2, 2}, {1, 2, 3, 4})})[0].at(1), axis == 0 ? 2 : 3);
  }
  EXPECT_THAT(counts(), ElementsAre(0, 0, 2)) << "another attribute";
}

TEST_F(Cache, TellsLargeConstantsApart) {
  std::vector<float> values(5000, 1);
  for (float last : {1.0f, 2.0f, 1.0f}) {
    values.back() = last;
    K::Tensor x = K::placeholder({1});
    K::Function f =
        K::function({x}, {K::sum(x * K::constant(floats({5000}, values)))});
    EXPECT_EQ(f({floats({1}, {1})})[0].at(0), 4999 + last);
  }
  EXPECT_THAT(counts(), ElementsAre(1, 0, 2));
}

TEST_F(Cache, NeverGivesCodeOfAnOldValue) {
  K::Tensor x = K::placeholder({1}), w = K::variable(floats({1}, {2}));
  auto product = [&] {
    return K::function({x}, {x * w})({floats({1}, {10})})[0].at(0);
  };
  EXPECT_EQ(product(), 20);
  K::set_value(w, floats({1}, {3}));
  EXPECT_EQ(product(), 30);
  K::set_value(w, floats({1}, {2}));
  EXPECT_EQ(product(), 20);
}

TEST_F(Cache, SharesTheCodeOfTrainingLoops) {
  for (float start : {1.0f, 5.0f}) {
    K::Tensor w = K::variable(floats({1}, {start}));
    K::Function step = K::function({}, {}, {K::update_add(w, 1.0)});
    step({});
    step({});
    EXPECT_EQ(K::get_value(w).at(0), start + 2);
  }
  EXPECT_THAT(counts(), ElementsAre(1, 0, 1));
}

TEST_F(Cache, DoesNotKeepFailures) {
  K::CompileSettings wrong;
  wrong.target = "pdp11";
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT([&] { scaled(3, wrong); },
                ThrowsMessage<Error>(HasSubstr("pdp11")));
  EXPECT_THAT(counts(), ElementsAre(0, 0, 0));
  EXPECT_FALSE(fs::exists(directory / "files"));
}

TEST_F(Cache, CompilesAnewForProfiles) {
  K::CompileSettings profile;
  profile.profile = true;
  scaled(3, profile);
  scaled(3, profile);
  EXPECT_THAT(counts(), ElementsAre(0, 0, 0));
  EXPECT_EQ(K::compile_cache_statistics().bypassed, 2u);
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

TEST_F(Cache, ReplacesDamagedFiles) {
  scaled(3);
  ASSERT_EQ(files().size(), 1u);
  fs::path file = files()[0];
  uint64_t size = fs::file_size(file);
  auto overwrite = [&](uint64_t offset, const std::string &bytes) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(offset);
    stream << bytes;
  };
  std::vector<std::function<void()>> damages = {
      [&] { fs::resize_file(file, 0); },
      [&] { fs::resize_file(file, 10); },
      [&] { fs::resize_file(file, size - 1); },
      [&] { fs::resize_file(file, size + 1); },
      [&] { overwrite(0, "XXXXXXXX"); },                    // magic
      [&] { overwrite(8, std::string(8, '\xff')); },        // version
      [&] { overwrite(48, std::string(8, '\xff')); },       // bytes of weights
      [&] { overwrite(56, std::string(8, '\xff')); },       // bytes of code
      [&] { overwrite(size / 2, std::string(1, '\x5a')); }, // code
  };
  for (size_t index = 0; index < damages.size(); ++index) {
    damages[index]();
    forget();
    EXPECT_THAT(scaled(3), ElementsAre(4, 7)) << "damage " << index;
    EXPECT_THAT(counts(), ElementsAre(0, 0, 1)) << "damage " << index;
    forget();
    EXPECT_THAT(scaled(3), ElementsAre(4, 7));
    EXPECT_THAT(counts(), ElementsAre(0, 1, 0))
        << "not written anew, damage " << index;
  }
}

TEST_F(Cache, TakesNoFileOfAnotherFunction) {
  scaled(3);
  fs::path first = files()[0];
  scaled(4);
  for (const fs::path &file : files())
    if (file != first)
      fs::copy_file(file, first, fs::copy_options::overwrite_existing);
  forget();
  EXPECT_THAT(scaled(3), ElementsAre(4, 7));
  EXPECT_THAT(counts(), ElementsAre(0, 0, 1));
}

TEST_F(Cache, KeepsToItsLimit) {
  scaled(0);
  uint64_t limit = 6 * fs::file_size(files()[0]);
  useDirectory(limit);
  for (int factor = 1; factor < 12; ++factor)
    scaled(factor);
  uint64_t total = 0;
  for (const fs::path &file : files())
    total += fs::file_size(file);
  EXPECT_LE(total, limit);
  EXPECT_GE(files().size(), 3u);
  forget();
  scaled(11);
  EXPECT_THAT(counts(), ElementsAre(0, 1, 0)) << "the last one stays";
  scaled(0);
  EXPECT_THAT(counts(), ElementsAre(0, 1, 1)) << "the first one is gone";
}

TEST_F(Cache, DoesNotUseADirectoryThatOthersCanWriteTo) {
  scaled(3);
  fs::permissions(directory / "files", fs::perms::all);
  forget();
  EXPECT_THAT(scaled(3), ElementsAre(4, 7));
  EXPECT_THAT(counts(), ElementsAre(0, 0, 1));
}

TEST_F(Cache, DoesWithoutADirectory) {
  std::ofstream(directory / "file") << "not a directory";
  K::set_cache_directory(directory / "file");
  EXPECT_THAT(scaled(3), ElementsAre(4, 7));
  K::set_cache_directory(std::nullopt);
  EXPECT_THAT(scaled(3), ElementsAre(4, 7));
  EXPECT_THAT(counts(), ElementsAre(1, 0, 1));
}

//===----------------------------------------------------------------------===//
// Pieces of code
//===----------------------------------------------------------------------===//

Array patterned(const K::Shape &shape, float value) {
  Array array(DType::Float32, shape);
  for (int64_t index = 0; index < array.size(); ++index)
    array.set(index, value * float(index % 7 + 1));
  return array;
}

/// The object of three convolutions, of `channels` in the middle, whose weights
/// are multiples of `value`.
std::string saved(const fs::path &prefix, float value, int64_t channels = 24,
                  const K::SaveOptions &how = {}) {
  K::GraphScope scope;
  K::Tensor x = K::placeholder({1, 12, 12, 16}, DType::Float32, "x");
  auto layer = [&](const K::Tensor &input, int64_t window, int64_t from,
                   int64_t to) {
    K::Shape shape = {window, window, from, to};
    return K::relu(
        K::conv2d(input, K::constant(patterned(shape, value)), {1, 1}, "same"));
  };
  K::Tensor y = layer(x, 5, 16, 32);
  y = layer(y, 5, 32, channels);
  y = layer(y, 1, channels, 8);
  K::function({x}, {y}).save(prefix, how);
  std::ifstream file(prefix.string() + ".o", std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// unit hits, unit misses, since the last time
std::vector<uint64_t> unitCounts() {
  K::CompileCacheStatistics statistics = K::compile_cache_statistics();
  K::reset_compile_cache_statistics();
  return {statistics.unitHits, statistics.unitMisses};
}

TEST_F(Cache, CompilesOnlyWhatHasChanged) {
  fs::path prefix = directory / "model";
  std::string first = saved(prefix, 1);
  uint64_t all = unitCounts()[1];
  EXPECT_GT(all, 2u);
  std::string scaled = saved(prefix, 2);
  EXPECT_THAT(unitCounts(), ElementsAre(all, 0)) << "other weights";
  EXPECT_NE(scaled, first);
  saved(prefix, 2, 20);
  std::vector<uint64_t> counts = unitCounts();
  EXPECT_GT(counts[0], 0u) << "the first layer is the same";
  EXPECT_GT(counts[1], 0u) << "another size";

  K::SaveOptions how;
  how.target = "x86-64-v2";
  saved(prefix, 1, 24, how);
  EXPECT_EQ(unitCounts()[0], 0u) << "another machine";
}

TEST_F(Cache, WritesTheSameObjectWithoutIt) {
  fs::path prefix = directory / "model";
  std::string made = saved(prefix, 1);
  EXPECT_EQ(saved(prefix, 1), made);
  EXPECT_EQ(K::compile_cache_statistics().unitHits, files().size());
  K::set_cache_directory(std::nullopt);
  EXPECT_EQ(saved(prefix, 1), made);
  std::ofstream(directory / "file") << "not a directory";
  K::set_cache_directory(directory / "file");
  EXPECT_EQ(saved(prefix, 1), made);
}

TEST_F(Cache, MakesDamagedPiecesAnew) {
  fs::path prefix = directory / "model";
  std::string made = saved(prefix, 1);
  uint64_t all = unitCounts()[1];
  for (const fs::path &path : files()) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(fs::file_size(path) / 2);
    file.put('\x5a').put('\x5b');
  }
  EXPECT_EQ(saved(prefix, 1), made);
  EXPECT_THAT(unitCounts(), ElementsAre(0, all));
  EXPECT_EQ(saved(prefix, 1), made);
  EXPECT_THAT(unitCounts(), ElementsAre(all, 0));
}

//===----------------------------------------------------------------------===//
// Processes
//===----------------------------------------------------------------------===//

/// What a child process of the tests below does: it compiles three functions
/// and exits with the number of hits, or fails.
TEST(CacheChild, DISABLED_Runs) {
  ASSERT_THAT(scaled(3), ElementsAre(4, 7));
  ASSERT_THAT(scaled(4), ElementsAre(5, 9));
  ASSERT_THAT(scaled(5), ElementsAre(6, 11));
  _exit(static_cast<int>(K::compile_cache_statistics().diskHits));
}

pid_t startChild(const fs::path &directory,
                 const std::string &test = "CacheChild.*Runs") {
  pid_t child = fork();
  if (child == 0) {
    setenv("KERATIN_CACHE_DIR", directory.c_str(), /*overwrite=*/1);
    std::string filter = "--gtest_filter=" + test;
    execl("/proc/self/exe", "child", filter.c_str(),
          "--gtest_also_run_disabled_tests", "--gtest_brief=1", nullptr);
    _exit(100);
  }
  return child;
}

int exitStatus(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
    return -1;
  return WEXITSTATUS(status);
}

TEST_F(Cache, ServesOtherProcesses) {
  EXPECT_EQ(exitStatus(startChild(directory / "files")), 0);
  EXPECT_EQ(exitStatus(startChild(directory / "files")), 3);
  forget();
  EXPECT_THAT(scaled(4), ElementsAre(5, 9));
  EXPECT_THAT(counts(), ElementsAre(0, 1, 0));
}

TEST_F(Cache, StandsProcessesThatWriteAtTheSameTime) {
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i)
    children.push_back(startChild(directory / "files"));
  for (pid_t child : children) {
    int hits = exitStatus(child);
    EXPECT_GE(hits, 0);
    EXPECT_LE(hits, 3);
  }
  EXPECT_EQ(files().size(), 3u) << "and no temporary ones";
  EXPECT_EQ(exitStatus(startChild(directory / "files")), 3);
}

/// What a child process of the test below does: it exits with 0 when it has
/// written what its parent has.
TEST(CacheChild, DISABLED_Saves) {
  fs::path directory = std::getenv("KERATIN_CACHE_DIR");
  fs::path prefix = directory.string() + std::to_string(getpid()) + "/model";
  fs::create_directory(prefix.parent_path());
  std::ifstream file(directory.string() + ".o", std::ios::binary);
  std::string expected(std::istreambuf_iterator<char>(file), {});
  _exit(saved(prefix, 1) == expected ? 0 : 1);
}

TEST_F(Cache, KeepsPiecesOfProcessesThatWriteAtTheSameTime) {
  K::set_cache_directory(std::nullopt);
  std::string made = saved(directory / "model", 1);
  std::ofstream(directory / "files.o", std::ios::binary) << made;
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i)
    children.push_back(startChild(directory / "files", "CacheChild.*Saves"));
  for (pid_t child : children)
    EXPECT_EQ(exitStatus(child), 0);
  useDirectory();
  EXPECT_EQ(saved(directory / "model", 1), made);
  EXPECT_EQ(unitCounts()[1], 0u);
}

} // namespace
