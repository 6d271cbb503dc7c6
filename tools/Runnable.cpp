//===- Runnable.cpp - a model that can be run -----------------------------===//
#include "Runnable.h"

#include "keratin/model.h"
#include "keratin/runtime.h"

#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <link.h>
#include <optional>

namespace K = keratin::backend;

namespace keratin {

//===----------------------------------------------------------------------===//
// Models of Keras
//===----------------------------------------------------------------------===//

namespace {
class KerasModel final : public Runnable {
public:
  KerasModel(const std::string &path, const K::CompileSettings &settings)
      : path(path), settings(settings) {
    // The time of a compilation is reported, and not that of reading its
    // result.
    K::set_cache_directory(std::nullopt);
    inputList = readModelInputs(path);
    bool known = true;
    for (const K::TensorInfo &input : inputList)
      for (size_t axis = 1; axis < input.shape.size(); ++axis)
        known &= input.shape[axis] >= 0;
    if (known)
      load({});
  }

  const ktn_model_info_t &
  prepare(const std::vector<K::Shape> &inputShapes) override {
    shapes = inputShapes;
    // With open axes beside the batch, the graph follows from the shapes.
    if (!model) {
      ModelOptions options;
      for (size_t i = 0; i < inputList.size() && i < shapes.size(); ++i)
        options.inputShapes[inputList[i].name] = shapes[i];
      load(options);
    }
    return *function->compiled(shapes);
  }

  std::string setProfileHook(ktn_profile_fn_t hook, void *user) override {
    function->setProfileHook(shapes, hook, user);
    return "";
  }

private:
  void load(const ModelOptions &options) {
    model = loadModel(path, options);
    function =
        K::function(model->inputs, model->outputs, /*updates=*/{},
                    {model->name, model->inputNames, model->outputNames});
    function->configure(settings);
    inputList = function->inputs();
    outputList = function->outputs();
  }

  std::string path;
  K::CompileSettings settings;
  std::optional<Model> model;
  std::optional<K::Function> function;
  std::vector<K::Shape> shapes;
};
} // namespace

std::unique_ptr<Runnable> openModel(const std::string &path,
                                    const K::CompileSettings &settings) {
  return std::make_unique<KerasModel>(path, settings);
}

//===----------------------------------------------------------------------===//
// Shared libraries
//===----------------------------------------------------------------------===//

static std::vector<K::TensorInfo> readTensors(const ktn_tensor_info_t *tensors,
                                              int32_t count) {
  std::vector<K::TensorInfo> list;
  for (int32_t index = 0; index < count; ++index) {
    const ktn_tensor_info_t &tensor = tensors[index];
    K::Shape shape(tensor.shape, tensor.shape + tensor.rank);
    list.push_back({tensor.name, static_cast<DType>(tensor.dtype), shape});
  }
  return list;
}

namespace {
class LibraryModel final : public Runnable {
public:
  LibraryModel(const std::string &path, const std::string &weights);
  ~LibraryModel() override {
    ktn_weights_close(mapped, &info);
    if (library)
      dlclose(library);
  }

  const ktn_model_info_t &
  prepare(const std::vector<K::Shape> &inputShapes) override;

  std::string setProfileHook(ktn_profile_fn_t hook, void *user) override {
    if (!info.set_profile)
      return "was compiled without --profile";
    info.set_profile(hook, user);
    return "";
  }

private:
  void mapWeights(const std::string &path);

  void *library = nullptr;
  ktn_model_info_t info = {};
  const void *mapped = nullptr;
};
} // namespace

/// The header of this program.
extern "C" const ElfW(Ehdr) programHeader asm("__ehdr_start");

/// dlopen maps what the headers state: of a file that was cut short, pages
/// whose use is a bus error. Of one for another machine it says that there is
/// none.
static void checkFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  ElfW(Ehdr) header;
  if (!file.read(reinterpret_cast<char *>(&header), sizeof header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return; // dlopen says what it is not
  if (header.e_machine != programHeader.e_machine)
    throw Error(path + ": is for another machine: compile the model without "
                       "--target, or run it there");
  std::error_code ignored;
  uint64_t size = std::filesystem::file_size(path, ignored);
  for (unsigned index = 0; index < header.e_phnum; ++index) {
    ElfW(Phdr) segment;
    file.seekg(static_cast<std::streamoff>(
        header.e_phoff + uint64_t(index) * header.e_phentsize));
    bool isRead =
        bool(file.read(reinterpret_cast<char *>(&segment), sizeof segment));
    if (isRead && (segment.p_type != PT_LOAD ||
                   (segment.p_offset <= size &&
                    segment.p_filesz <= size - segment.p_offset)))
      continue;
    throw Error(path + ": is truncated (" + std::to_string(size) +
                " bytes): compile the model again, or copy the file again");
  }
}

LibraryModel::LibraryModel(const std::string &path,
                           const std::string &weights) {
  // A name without a slash would be looked for in the system's directories.
  std::string file = std::filesystem::absolute(path).string();
  checkFile(file);
  library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw Error(path + ": cannot be loaded: " + dlerror());
  auto *found =
      static_cast<const ktn_model_info_t *>(dlsym(library, "keratin_model"));
  if (!found)
    throw Error(path + ": has no symbol 'keratin_model': not a library made "
                       "by keratinc --emit=so");
  if (found->abi_version != KTN_ABI_VERSION ||
      found->struct_size != sizeof(ktn_model_info_t))
    throw Error(path + ": was made for version " +
                std::to_string(found->abi_version) +
                " of the model interface, this program has version " +
                std::to_string(KTN_ABI_VERSION));
  info = *found;
  inputList = readTensors(info.inputs, info.num_inputs);
  outputList = readTensors(info.outputs, info.num_outputs);
  if (info.weights_bytes > 0 && !info.weights)
    mapWeights(
        weights.empty()
            ? std::filesystem::path(path).replace_extension(".weights").string()
            : weights);
}

void LibraryModel::mapWeights(const std::string &path) {
  ktn_status_t status = ktn_weights_open(path.c_str(), &info, &mapped);
  if (status != KTN_OK)
    throw Error(path + ": " + ktn_status_name(status));
  info.weights = mapped;
}

const ktn_model_info_t &
LibraryModel::prepare(const std::vector<K::Shape> &inputShapes) {
  int64_t batch = info.batch;
  for (size_t index = 0; index < inputShapes.size(); ++index) {
    const K::TensorInfo &input = inputList[index];
    const K::Shape &given = inputShapes[index];
    bool fits = given.size() == input.shape.size();
    for (size_t axis = 0; fits && axis < given.size(); ++axis) {
      int64_t expected = input.shape[axis];
      if (expected < 0) {
        batch = batch < 0 ? given[axis] : batch;
        expected = batch;
      }
      fits = given[axis] == expected;
    }
    if (!fits)
      throw Error("input '" + input.name + "' has shape " + shapeName(given) +
                  " but the model takes " + shapeName(input.shape));
  }
  return info;
}

std::unique_ptr<Runnable> openLibrary(const std::string &path,
                                      const std::string &weights) {
  return std::make_unique<LibraryModel>(path, weights);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// The batch that the inputs have: the extent where the descriptor says -1.
static int64_t batchOf(const ktn_model_info_t &info,
                       const std::vector<Array> &inputs) {
  for (int32_t index = 0; index < info.num_inputs; ++index)
    for (int32_t axis = 0; axis < info.inputs[index].rank; ++axis)
      if (info.inputs[index].shape[axis] < 0)
        return inputs[index].shape()[axis];
  return info.batch < 0 ? 1 : info.batch;
}

Runner::Runner(const ktn_model_info_t &info, const std::vector<Array> &inputs)
    : info(info), inputArrays(inputs), batchSize(batchOf(info, inputs)) {
  ktn_status_t status = ktn_arena_bytes(&info, batchSize, &arenaSize);
  if (status != KTN_OK)
    throw Error("batch " + std::to_string(batchSize) + ": " +
                ktn_status_name(status));
  arena = takePages(arenaSize);
  if (!arena)
    throw Error("no memory for an arena of " + std::to_string(arenaSize) +
                " bytes");
  for (const Array &input : inputArrays)
    inputData.push_back(input.data());
  for (const K::TensorInfo &output :
       readTensors(info.outputs, info.num_outputs)) {
    K::Shape shape = output.shape;
    for (int64_t &extent : shape)
      extent = extent < 0 ? batchSize : extent;
    results.emplace_back(output.dtype, shape);
  }
  for (Array &result : results)
    outputData.push_back(result.mutableData());
}

int64_t Runner::workingBytes() const {
  int64_t bytes = arenaSize;
  for (const std::vector<Array> *arrays : {&inputArrays, &results})
    for (const Array &array : *arrays)
      bytes += array.byteSize();
  return bytes;
}

void Runner::run() {
  ktn_status_t status = info.run(info.weights, arena.get(), batchSize,
                                 inputData.data(), outputData.data());
  if (status != KTN_OK)
    throw Error(std::string("the model refused to run: ") +
                ktn_status_name(status));
}

} // namespace keratin
