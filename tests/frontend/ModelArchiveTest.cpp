//===- ModelArchiveTest.cpp - the members of a .keras file ----------------===//
#include "frontend/Pages.h"
#include "frontend/model/Archive.h"

#include "keratin/array.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zip.h>

#include <filesystem>
#include <fstream>

using namespace keratin;
using namespace keratin::model;
using testing::HasSubstr;

namespace {

/// A path of its own for each test, removed with it.
class ModelArchive : public testing::Test {
protected:
  ModelArchive()
      : path(std::filesystem::path(testing::TempDir()) /
             testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(path);
  }
  ~ModelArchive() override { std::filesystem::remove_all(path); }

  void write(const std::vector<std::pair<std::string, std::string>> &members,
             zip_int32_t method = ZIP_CM_STORE) {
    zip_t *zip = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
    ASSERT_NE(zip, nullptr);
    for (const auto &[name, content] : members) {
      zip_source_t *source =
          zip_source_buffer(zip, content.data(), content.size(), 0);
      zip_int64_t index = zip_file_add(zip, name.c_str(), source, 0);
      ASSERT_GE(index, 0);
      zip_set_file_compression(zip, zip_uint64_t(index), method, 0);
    }
    ASSERT_EQ(zip_close(zip), 0);
  }

  /// What opening, or reading `member`, says.
  std::string complaint(const std::string &member,
                        const ArchiveLimits &limits = {}) {
    try {
      openZip(path, limits)->read(member, limits.textBytes);
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  }

  std::filesystem::path path;
};

} // namespace

TEST_F(ModelArchive, ReadsStoredAndCompressedMembers) {
  for (zip_int32_t method : {ZIP_CM_STORE, ZIP_CM_DEFLATE}) {
    write({{"config.json", "{}"}, {"empty", ""}}, method);
    std::unique_ptr<Archive> archive = openZip(path);
    EXPECT_EQ(archive->read("config.json", 100).text(), "{}");
    EXPECT_EQ(archive->read("empty", 100).size, 0u);
    EXPECT_FALSE(archive->has("other"));
  }
}

TEST_F(ModelArchive, KeepsLargeMembersInATemporaryFile) {
  std::string large(3'000'001, ' ');
  for (size_t i = 0; i < large.size(); ++i)
    large[i] = char(i % 251);
  for (zip_int32_t method : {ZIP_CM_STORE, ZIP_CM_DEFLATE}) {
    write({{"config.json", "{}"}, {"weights", large}}, method);
    std::unique_ptr<Archive> archive =
        openZip(path, {.compressionRatio = 10'000}, /*spills=*/true);
    EXPECT_EQ(archive->read("config.json", 100).text(), "{}");
    Bytes bytes = archive->read("weights", large.size());
    ASSERT_EQ(bytes.size, large.size());
    EXPECT_TRUE(bytes.text() == large);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes.data.get()) % 64, 0u);
    // They come back where somebody looks again, also without the archive.
    archive.reset();
    std::filesystem::remove(path);
    releasePages(bytes.data.get(), bytes.size);
    EXPECT_TRUE(bytes.text() == large);
    releasePages(bytes.data.get() + 5000, 20'000);
    EXPECT_TRUE(bytes.text() == large);
  }
}

TEST_F(ModelArchive, SaysThatALargeMemberIsDamaged) {
  write({{"weights", std::string(3'000'000, 'w')}});
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(1'500'000).put('x');
  file.close();
  EXPECT_THROW(openZip(path, {}, /*spills=*/true)->read("weights", 3'000'000),
               Error);
}

TEST(Pages, OfOtherMemoryAreNotReleased) {
  std::vector<char> own(1 << 20, 'a');
  releasePages(own.data(), own.size());
  EXPECT_EQ(own[12345], 'a');
}

TEST_F(ModelArchive, RefusesAMissingMember) {
  write({{"config.json", "{}"}});
  EXPECT_THAT(complaint("weights"), HasSubstr("no member 'weights'"));
}

TEST_F(ModelArchive, RefusesMoreThanTheLimit) {
  write({{"config.json", std::string(2000, ' ')}});
  ArchiveLimits limits;
  limits.textBytes = 1000;
  EXPECT_THAT(complaint("config.json", limits),
              HasSubstr("2.0 KiB, more than the limit of 1000 bytes"));
}

TEST_F(ModelArchive, RefusesAnImplausibleCompressionOfLargeMembers) {
  write({{"small", std::string(100'000, 'a')},
         {"large", std::string(10'000'000, 'a')}},
        ZIP_CM_DEFLATE);
  EXPECT_EQ(complaint("small"), "");
  EXPECT_THAT(complaint("large"), HasSubstr("more than 100 times its size"));
}

TEST_F(ModelArchive, RefusesTooManyMembers) {
  write({{"a", ""}, {"b", ""}, {"c", ""}});
  ArchiveLimits limits;
  limits.members = 2;
  EXPECT_THAT(complaint("a", limits), HasSubstr("3 members"));
}

TEST_F(ModelArchive, RefusesNamesThatLeaveIt) {
  for (const char *name : {"../x", "/etc/x", "a/../../x", "a\\x", ".."}) {
    write({{"config.json", "{}"}, {name, "x"}});
    EXPECT_THAT(complaint("config.json"), HasSubstr("lies outside of it"))
        << name;
  }
  write({{"config.json", "{}"}, {"assets/..x/y..", "x"}});
  EXPECT_EQ(complaint("config.json"), "");
}

TEST_F(ModelArchive, SurvivesCuttingTheFileAnywhere) {
  write({{"config.json", std::string(300, ' ')}}, ZIP_CM_DEFLATE);
  uintmax_t size = std::filesystem::file_size(path);
  for (uintmax_t cut = size - 1; cut > 0; --cut) {
    std::filesystem::resize_file(path, cut);
    EXPECT_NE(complaint("config.json"), "") << cut;
  }
}

TEST_F(ModelArchive, ReadsADirectoryWithTheSameMembers) {
  std::filesystem::create_directories(path);
  std::ofstream(path / "config.json") << "{}";
  std::unique_ptr<Archive> archive = openDirectory(path);
  EXPECT_TRUE(archive->has("config.json"));
  EXPECT_FALSE(archive->has("model.weights.h5"));
  EXPECT_EQ(archive->read("config.json", 100).text(), "{}");
  EXPECT_THROW(archive->read("config.json", 1), Error);
}
