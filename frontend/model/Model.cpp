//===- Model.cpp - reading of Keras model files ---------------------------===//
#include "keratin/model.h"

#include "Archive.h"
#include "Graph.h"
#include "Hdf5.h"

#include <filesystem>
#include <set>
#include <system_error>

using namespace keratin;
using namespace keratin::model;

namespace {

/// What a file says about a model: its configuration and its weights.
struct Contents {
  Json config;
  WeightScope weights;
  std::string kerasVersion;
};

constexpr std::string_view zipMagic = "PK\x03\x04";
constexpr std::string_view hdf5Magic = "\x89HDF\r\n\x1a\n";

std::string joinLines(const std::vector<std::string> &lines) {
  std::string text;
  for (const std::string &line : lines)
    text += (text.empty() ? "" : "\n") + line;
  return text;
}

Json jsonMember(const Archive &archive, const std::string &member) {
  Bytes bytes = archive.read(member, ArchiveLimits().textBytes);
  return parseJson(bytes.text(), "'" + member + "'");
}

Hdf5File hdf5Member(const Archive &archive, const std::string &member) {
  return {archive.read(member, ArchiveLimits().weightBytes),
          "'" + member + "'"};
}

/// The shards that `model.weights.json` names: `weight_map` is a dictionary of
/// variables to lists of files beside it.
std::shared_ptr<const WeightFiles> readShards(const Archive &archive,
                                              const std::string &index) {
  Json json = jsonMember(archive, index);
  std::set<std::string> names;
  if (json.is_object() && json.contains("weight_map"))
    for (const Json &shards : json["weight_map"])
      for (const Json &shard : shards.is_array() ? shards : Json{shards})
        names.insert(shard.is_string() ? shard.get<std::string>() : "");
  std::vector<Hdf5File> files;
  for (const std::string &name : names) {
    if (name.empty() || name.find_first_of("/\\") != name.npos)
      throw Error("'" + index + "' names the shard '" + name +
                  "', but the name of a file beside it is expected");
    files.push_back(hdf5Member(archive, name));
  }
  if (files.empty())
    throw Error("'" + index +
                "' has no 'weight_map' that names its shards: "
                "save the weights again");
  return std::make_shared<WeightFiles>(std::move(files));
}

std::shared_ptr<const WeightFiles> readWeights(const Archive &archive) {
  if (archive.has("model.weights.json"))
    return readShards(archive, "model.weights.json");
  if (archive.has("model.weights.h5"))
    return WeightFiles::of(hdf5Member(archive, "model.weights.h5"));
  throw Error("it has no member 'model.weights.h5': save the model with its "
              "weights by model.save('name.keras')");
}

Contents readArchive(const Archive &archive) {
  if (!archive.has("config.json"))
    throw Error("it has no member 'config.json': it is no model that Keras "
                "saved, use model.save('name.keras')");
  Contents contents;
  contents.config = jsonMember(archive, "config.json");
  if (archive.has("metadata.json")) {
    Json metadata = jsonMember(archive, "metadata.json");
    if (metadata.is_object() && metadata.contains("keras_version") &&
        metadata["keras_version"].is_string())
      contents.kerasVersion = metadata["keras_version"].get<std::string>();
  }
  contents.weights = WeightScope::keras3(readWeights(archive), "");
  return contents;
}

Contents readHdf5(const std::string &path) {
  Hdf5File file(readFile(path, ArchiveLimits().weightBytes), "the file");
  std::optional<std::string> config = file.text("", "model_config");
  if (!config)
    throw Error("it holds weights but no model ('model_config' is missing): "
                "save both by model.save('name.keras')");
  Contents contents;
  contents.config = parseJson(*config, "'model_config'");
  contents.kerasVersion = file.text("", "keras_version").value_or("");
  contents.weights = WeightScope::legacy(WeightFiles::of(std::move(file)));
  return contents;
}

std::string firstBytes(const std::string &path) {
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(
      std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file)
    throw Error(std::string("it cannot be opened: ") + std::strerror(errno));
  char bytes[8];
  return std::string(bytes, std::fread(bytes, 1, sizeof bytes, file.get()));
}

Contents readContents(const std::string &path, bool spills) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return readArchive(*openDirectory(path));
  if (std::filesystem::is_fifo(path, ignored))
    throw Error("it is a pipe, and models are read in no order: save it to a "
                "file first");
  std::string start = firstBytes(path);
  if (start.starts_with(zipMagic))
    return readArchive(*openZip(path, {}, spills));
  if (start == hdf5Magic)
    return readHdf5(path);
  if (start.starts_with("{"))
    throw Error("it is JSON: a model is a .keras or .h5 file, saved by "
                "model.save('name.keras')");
  throw Error("it is neither a .keras archive nor an HDF5 file: save the model "
              "by model.save('name.keras')");
}

std::vector<std::string> withFile(const std::string &path,
                                  std::vector<std::string> lines) {
  std::string file = std::filesystem::path(path).filename().string();
  for (std::string &line : lines)
    line = (file.empty() ? path : file) + ": " + line;
  return lines;
}

} // namespace

ModelError::ModelError(std::vector<std::string> problems)
    : Error(joinLines(problems)), lines(std::move(problems)) {}

/// Opens the file and lets `read` do something with its contents. Throws
/// ModelError with all problems.
template <typename Read>
static auto readModel(const std::string &path, const ModelOptions &options,
                      Read &&read) {
  Problems problems;
  decltype(read(std::declval<GraphReader &>(), Json())) result;
  try {
    Contents contents = readContents(path, options.spills);
    bool isKeras2 = contents.kerasVersion.starts_with("2.");
    GraphReader reader(contents.weights, problems, isKeras2,
                       options.inputShapes);
    result = read(reader, contents.config);
  } catch (const Error &error) {
    problems.add(error.what());
  } catch (const TooMuchWork &work) {
    problems.add(work.why);
  } catch (const std::bad_alloc &) {
    problems.add("there is not enough memory to read it");
  }
  if (!problems.empty())
    throw ModelError(withFile(path, problems.all()));
  return result;
}

std::vector<K::TensorInfo> keratin::readModelInputs(const std::string &path) {
  return readModel(path, {}, [](GraphReader &reader, const Json &config) {
    return reader.readInputs(config);
  });
}

Model keratin::loadModel(const std::string &path, const ModelOptions &options) {
  K::GraphScope graph;
  GraphReader::Result read =
      readModel(path, options, [](GraphReader &reader, const Json &config) {
        return reader.read(config);
      });
  Model model;
  model.name = read.name;
  model.inputNames = read.inputNames;
  model.outputNames = read.outputNames;
  for (const Value &value : read.inputs)
    model.inputs.push_back(value.tensor);
  for (const Value &value : read.outputs)
    model.outputs.push_back(value.tensor);
  for (const K::Tensors &tensors : {model.inputs, model.outputs})
    for (const K::Tensor &tensor : tensors)
      K::mark_as_keras_tensor(tensor);
  return model;
}
