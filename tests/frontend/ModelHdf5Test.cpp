//===- ModelHdf5Test.cpp - reading of untrusted HDF5 files ----------------===//
#include "frontend/model/Hdf5.h"
#include "frontend/model/Weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <cstring>
#include <filesystem>
#include <functional>

using namespace keratin;
using namespace keratin::model;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// The bytes of a file that `fill` writes.
Bytes makeFile(const std::function<void(hid_t)> &fill) {
  std::string path =
      (std::filesystem::path(testing::TempDir()) / "ModelHdf5Test.h5").string();
  hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  fill(file);
  H5Fclose(file);
  Bytes bytes = readFile(path, 1 << 28);
  std::filesystem::remove(path);
  return bytes;
}

struct Layout {
  hid_t type = H5T_IEEE_F32LE;
  hid_t creation = H5P_DEFAULT;
};

void addDataset(hid_t file, const char *path, std::vector<hsize_t> shape,
                const std::vector<float> &values, Layout layout = {}) {
  hid_t links = H5Pcreate(H5P_LINK_CREATE);
  H5Pset_create_intermediate_group(links, 1);
  hid_t space = H5Screate_simple(int(shape.size()), shape.data(), nullptr);
  hid_t set = H5Dcreate2(file, path, layout.type, space, links, layout.creation,
                         H5P_DEFAULT);
  ASSERT_GE(set, 0);
  if (!values.empty())
    H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT,
             values.data());
  H5Dclose(set);
  H5Sclose(space);
  H5Pclose(links);
}

hid_t chunked(hsize_t chunk, unsigned deflate) {
  hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(creation, 1, &chunk);
  if (deflate)
    H5Pset_deflate(creation, deflate);
  return creation;
}

void addTexts(hid_t object, const char *name,
              const std::vector<const char *> &texts) {
  hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, H5T_VARIABLE);
  hsize_t count = texts.size();
  hid_t space = H5Screate_simple(1, &count, nullptr);
  hid_t attribute =
      H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  H5Awrite(attribute, type, static_cast<const void *>(texts.data()));
  H5Aclose(attribute);
  H5Sclose(space);
  H5Tclose(type);
}

std::string complaint(const Bytes &bytes, const std::string &path) {
  try {
    Hdf5File(bytes, "'file.h5'").dataset(path);
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

} // namespace

TEST(ModelHdf5, PointsIntoTheFileWhereItCan) {
  Bytes bytes = makeFile([](hid_t file) {
    addDataset(file, "a/b/0", {2, 3}, {1, 2, 3, 4, 5, 6});
  });
  Array array = Hdf5File(bytes, "x").dataset("a/b/0");
  EXPECT_THAT(array.shape(), ElementsAre(2, 3));
  EXPECT_EQ(array.at(5), 6);
  auto *begin = reinterpret_cast<const std::byte *>(array.data());
  EXPECT_GE(begin, bytes.data.get());
  EXPECT_LT(begin, bytes.data.get() + bytes.size);
}

TEST(ModelHdf5, KeepsTheBytesForItsArrays) {
  Array array;
  {
    Bytes bytes =
        makeFile([](hid_t file) { addDataset(file, "x", {2}, {7, 8}); });
    array = Hdf5File(bytes, "x").dataset("x");
  }
  EXPECT_EQ(array.at(1), 8);
}

TEST(ModelHdf5, UnpacksWhatIsCompressed) {
  Bytes bytes = makeFile([](hid_t file) {
    addDataset(file, "x", {4}, {1, 2, 3, 4}, {H5T_IEEE_F32LE, chunked(2, 6)});
  });
  EXPECT_EQ(Hdf5File(bytes, "x").dataset("x").at(3), 4);
}

TEST(ModelHdf5, ReadsTheElementTypesOfKeras) {
  hid_t opaque = H5Tcreate(H5T_OPAQUE, 2);
  hid_t half = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(half, 15, 10, 5, 0, 10);
  H5Tset_size(half, 2);
  H5Tset_ebias(half, 15);
  std::pair<hid_t, DType> types[] = {
      {H5T_IEEE_F64LE, DType::Float64}, {H5T_STD_I8LE, DType::Int8},
      {H5T_STD_U8LE, DType::UInt8},     {H5T_STD_I32LE, DType::Int32},
      {H5T_STD_I64LE, DType::Int64},    {half, DType::Float16},
      {opaque, DType::BFloat16}};
  for (auto [type, dtype] : types) {
    Bytes bytes = makeFile([&](hid_t file) {
      hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
      H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY);
      addDataset(file, "x", {3}, {}, {type, creation});
    });
    EXPECT_EQ(Hdf5File(bytes, "x").dataset("x").dtype(), dtype);
  }
  Bytes bigEndian = makeFile(
      [](hid_t file) { addDataset(file, "x", {1}, {1}, {H5T_IEEE_F32BE}); });
  EXPECT_THAT(complaint(bigEndian, "x"), HasSubstr("element type"));
}

TEST(ModelHdf5, RefusesWhatIsMissingOrAGroup) {
  Bytes bytes = makeFile([](hid_t file) { addDataset(file, "a/b", {1}, {1}); });
  EXPECT_THAT(complaint(bytes, "a/c"), HasSubstr("'a/c' is missing"));
  EXPECT_THAT(complaint(bytes, "a/b/c"), HasSubstr("is missing"));
  EXPECT_THAT(complaint(bytes, "a"), HasSubstr("not a readable dataset"));
}

TEST(ModelHdf5, FollowsNoLinks) {
  Bytes bytes = makeFile([](hid_t file) {
    addDataset(file, "a/b", {1}, {1});
    H5Lcreate_soft("/a", file, "soft", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("/etc/passwd", "/x", file, "external", H5P_DEFAULT,
                       H5P_DEFAULT);
  });
  EXPECT_THAT(complaint(bytes, "soft/b"), HasSubstr("soft or external link"));
  EXPECT_THAT(complaint(bytes, "external"), HasSubstr("external link"));
}

TEST(ModelHdf5, RefusesValuesInOtherFiles) {
  Bytes bytes = makeFile([](hid_t file) {
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(creation, "/etc/passwd", 0, 8);
    addDataset(file, "external", {2}, {}, {H5T_IEEE_F32LE, creation});
    hsize_t count = 2;
    hid_t space = H5Screate_simple(1, &count, nullptr);
    hid_t virtualCreation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_virtual(virtualCreation, space, "/etc/passwd", "/x", space);
    addDataset(file, "virtual", {2}, {}, {H5T_IEEE_F32LE, virtualCreation});
  });
  EXPECT_THAT(complaint(bytes, "external"), HasSubstr("in another file"));
  EXPECT_THAT(complaint(bytes, "virtual"), HasSubstr("in another file"));
}

TEST(ModelHdf5, RefusesFiltersThatWouldLoadPlugIns) {
  Bytes bytes = makeFile([](hid_t file) {
    hid_t creation = chunked(2, 0);
    H5Pset_filter(creation, 32015, H5Z_FLAG_OPTIONAL, 0, nullptr); // zstd
    addDataset(file, "x", {2}, {}, {H5T_IEEE_F32LE, creation});
  });
  EXPECT_THAT(complaint(bytes, "x"), HasSubstr("only gzip, shuffle"));
}

TEST(ModelHdf5, RefusesMoreThanTheFileHolds) {
  Bytes bytes = makeFile([](hid_t file) {
    addDataset(file, "unwritten", {1'000'000}, {});
    addDataset(file, "chunks", {hsize_t(1) << 40}, {},
               {H5T_IEEE_F32LE, chunked(1 << 20, 9)});
  });
  EXPECT_THAT(complaint(bytes, "unwritten"), HasSubstr("does not hold them"));
  EXPECT_THAT(complaint(bytes, "chunks"),
              HasSubstr("states 4.0 TiB but stores 0 bytes"));
}

TEST(ModelHdf5, RefusesChunksMuchLargerThanTheDataset) {
  Bytes bytes = makeFile([](hid_t file) {
    hsize_t extent = 2, unlimited = H5S_UNLIMITED;
    hid_t space = H5Screate_simple(1, &extent, &unlimited);
    hid_t creation = chunked(1 << 20, 9);
    hid_t set = H5Dcreate2(file, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT,
                           creation, H5P_DEFAULT);
    float values[] = {1, 2};
    H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Dclose(set);
    H5Pclose(creation);
    H5Sclose(space);
  });
  EXPECT_THAT(complaint(bytes, "x"),
              HasSubstr("in chunks of 4.0 MiB but has 8 bytes"));
}

TEST(ModelHdf5, RefusesADatasetWithoutValues) {
  Bytes bytes = makeFile([](hid_t file) {
    hid_t space = H5Screate(H5S_NULL);
    H5Dclose(H5Dcreate2(file, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT,
                        H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
  });
  EXPECT_THAT(complaint(bytes, "x"), HasSubstr("holds no values"));
}

TEST(ModelHdf5, RefusesTypesThatNoWeightHas) {
  Bytes bytes = makeFile([](hid_t file) {
    hid_t pair = H5Tcreate(H5T_COMPOUND, 8);
    H5Tinsert(pair, "re", 0, H5T_IEEE_F32LE);
    H5Tinsert(pair, "im", 4, H5T_IEEE_F32LE);
    addDataset(file, "compound", {2}, {}, {pair, H5P_DEFAULT});
    addDataset(file, "lists", {2}, {},
               {H5Tvlen_create(H5T_IEEE_F32LE), H5P_DEFAULT});
    addDataset(file, "references", {2}, {}, {H5T_STD_REF_OBJ, H5P_DEFAULT});
    addDataset(file, "big-endian", {2}, {}, {H5T_IEEE_F32BE, H5P_DEFAULT});
  });
  for (const char *path : {"compound", "lists", "references", "big-endian"})
    EXPECT_THAT(complaint(bytes, path), HasSubstr("no Keras weight has"))
        << path;
}

TEST(ModelHdf5, ReadsGroupsThatHoldThemselves) {
  Bytes bytes = makeFile([](hid_t file) {
    addDataset(file, "a/x", {1}, {1});
    H5Lcreate_hard(file, "a", file, "a/a", H5P_DEFAULT, H5P_DEFAULT);
  });
  EXPECT_EQ(complaint(bytes, "a/a/a/x"), "");
  EXPECT_THAT(complaint(bytes, "a/a/a"), HasSubstr("not a readable dataset"));
}

TEST(ModelHdf5, SurvivesCuttingTheFileAnywhere) {
  Bytes whole = makeFile([](hid_t file) {
    addDataset(file, "a/0", {64}, std::vector<float>(64, 1));
    addDataset(file, "a/1", {64}, std::vector<float>(64, 2));
  });
  for (size_t size = 0; size < whole.size; size += 37) {
    std::shared_ptr<std::byte[]> part = allocateBytes(size, "test");
    std::memcpy(part.get(), whole.data.get(), size);
    EXPECT_NE(complaint({part, size}, "a/1"), "") << size;
  }
}

TEST(ModelHdf5, ReadsListsOfTextInOneAttributeOrSeveral) {
  Bytes bytes = makeFile([](hid_t file) {
    hid_t group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    addTexts(group, "names", {"a", "b"});
    addTexts(group, "parts0", {"c"});
    addTexts(group, "parts1", {"d"});
    H5Gclose(group);
  });
  Hdf5File file(bytes, "x");
  EXPECT_THAT(*file.texts("g", "names"), ElementsAre("a", "b"));
  EXPECT_THAT(*file.texts("g", "parts"), ElementsAre("c", "d"));
  EXPECT_EQ(file.text("g", "names"), "a");
  EXPECT_EQ(file.texts("g", "none"), std::nullopt);
  EXPECT_EQ(file.texts("none", "names"), std::nullopt);
}

TEST(ModelHdf5, LeavesTheLibraryAsItWas) {
  H5E_auto2_t before, after;
  void *data;
  H5Eget_auto2(H5E_DEFAULT, &before, &data);
  EXPECT_NE(complaint(makeFile([](hid_t) {}), "x"), "");
  H5Eget_auto2(H5E_DEFAULT, &after, &data);
  EXPECT_EQ(before, after);
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

TEST(ModelWeights, NamesGroupsAsKerasDoes) {
  std::pair<const char *, const char *> names[] = {
      {"Dense", "dense"},
      {"Conv2D", "conv2d"},
      {"Conv2DTranspose", "conv2d_transpose"},
      {"DepthwiseConv2D", "depthwise_conv2d"},
      {"BatchNormalization", "batch_normalization"},
      {"GlobalAveragePooling2D", "global_average_pooling2d"},
      {"MultiHeadAttention", "multi_head_attention"},
      {"ReLU", "re_lu"},
      {"PReLU", "p_re_lu"},
      {"LSTM", "lstm"},
      {"LSTMCell", "lstm_cell"},
      {"SimpleRNN", "simple_rnn"},
      {"StackedRNNCells", "stacked_rnn_cells"},
      {"ELU", "elu"},
      {"Sequential", "sequential"},
      {"RMSNormalization", "rms_normalization"},
      {"My>Layer", "my_layer"},
      {"", ""}};
  for (auto [className, group] : names)
    EXPECT_EQ(snakeCase(className), group);
}

TEST(ModelWeights, CountsAndTakesTheVariablesOfALayer) {
  auto file =
      WeightFiles::of({makeFile([](hid_t file) {
                         addDataset(file, "layers/gru/cell/vars/0", {1}, {1});
                         addDataset(file, "layers/gru/cell/vars/1", {1}, {2});
                       }),
                       "x"});
  WeightScope scope = WeightScope::keras3(file, "").layer("gru", "any name");
  EXPECT_EQ(scope.left(), 0u);
  EXPECT_EQ(scope.next(), "");
  WeightScope cell = scope.attribute("cell");
  EXPECT_EQ(cell.left(), 2u);
  EXPECT_EQ(cell.take().at(0), 1);
  EXPECT_EQ(cell.next(), "layers/gru/cell/vars/1");
  EXPECT_EQ(cell.take().at(0), 2);
  EXPECT_EQ(cell.left(), 0u);
}

TEST(ModelWeights, FollowsTheNamesOfALegacyFile) {
  auto file = WeightFiles::of(
      {makeFile([](hid_t file) {
         addDataset(file, "model_weights/net/net/dense/kernel:0", {1}, {1});
         addDataset(file, "model_weights/net/net/bn/gamma:0", {1}, {2});
         addDataset(file, "model_weights/net/net/dense/bias:0", {1}, {3});
         hid_t group = H5Gopen2(file, "model_weights/net", H5P_DEFAULT);
         addTexts(group, "weight_names",
                  {"net/dense/kernel:0", "net/bn/gamma:0", "net/dense/bias:0"});
         H5Gclose(group);
       }),
       "x"});
  WeightScope net = WeightScope::legacy(file).layer("", "net");
  EXPECT_EQ(net.left(), 3u);
  WeightScope dense = net.layer("", "dense");
  EXPECT_EQ(dense.left(), 2u);
  EXPECT_EQ(dense.take().at(0), 1);
  EXPECT_EQ(dense.attribute("inner").take().at(0), 3);
  EXPECT_EQ(dense.left(), 0u);
  EXPECT_EQ(net.layer("", "other").left(), 0u);
}

TEST(ModelWeights, FindsVariablesInAnyShard) {
  std::vector<Hdf5File> shards;
  shards.emplace_back(makeFile([](hid_t file) {
                        addDataset(file, "layers/dense/vars/0", {1}, {1});
                      }),
                      "a");
  shards.emplace_back(makeFile([](hid_t file) {
                        addDataset(file, "layers/dense/vars/1", {1}, {2});
                      }),
                      "b");
  auto files = std::make_shared<WeightFiles>(std::move(shards));
  WeightScope dense = WeightScope::keras3(files, "").layer("dense", "dense");
  EXPECT_EQ(dense.left(), 2u);
  EXPECT_EQ(dense.take().at(0), 1);
  EXPECT_EQ(dense.take().at(0), 2);
  EXPECT_THROW(files->dataset("layers/dense/vars/2"), Error);
}
