// Dataloader cases from setup to metrics on a small folder, and with an injected fault.
#include "suites/dataloader/dataloader.h"
#include "tests/support/case_runner.h"
#include "workloads/data/synthetic_image.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace assay {
namespace {

namespace fs = std::filesystem;

class DataloaderCase : public testing::Test {
 protected:
  static constexpr int images = 8;

  static void SetUpTestSuite() {
    folder() = fs::path(testing::TempDir()) / ("dataloader" + std::to_string(getpid()));
    fs::create_directories(folder() / "images");
    data::SyntheticImage image;
    for (std::uint64_t i = 0; i < images; ++i) {
      data::draw_synthetic_image(1, i, image);
      const auto bytes = data::encode_jpeg(image);
      write("images/" + std::to_string(i) + ".jpg", bytes);
    }
    write("tokens.bin", std::vector<std::byte>(1 << 20, std::byte{7}));
  }
  static void TearDownTestSuite() { fs::remove_all(folder()); }

  static fs::path& folder() {
    static fs::path path;
    return path;
  }
  static void write(const std::string& name, const std::vector<std::byte>& bytes) {
    std::ofstream file(folder() / name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }

  test::Outcome run(const std::string& kind, const std::string& stage, const std::set<Fault>& faults = {}) {
    const auto comm = make_self_communicator();
    const std::string path = (folder() / (kind == "image" ? "images" : "tokens.bin")).string();
    return test::run_case(dataloader_family(),
                          {{"kind", kind}, {"path", path}, {"stage", stage}, {"workers", std::int64_t{2}}}, *comm,
                          faults);
  }
};

TEST_F(DataloaderCase, EveryStageOfImagesPasses) {
  for (const std::string stage : {"read", "decode", "augment", "batch", "all"}) {
    SCOPED_TRACE(stage);
    const test::Outcome out = run("image", stage);
    ASSERT_FALSE(out.skipped);
    for (const Check& check : out.checks) EXPECT_TRUE(check.passed) << check.name;
    EXPECT_GT(*out.metric("throughput").value, 0);
    EXPECT_EQ(out.conditions.at("images"), std::to_string(images));
  }
}

TEST_F(DataloaderCase, EveryStageOfTokensPasses) {
  for (const std::string stage : {"read", "batch", "all"}) {
    SCOPED_TRACE(stage);
    const test::Outcome out = run("token", stage);
    ASSERT_FALSE(out.skipped);
    for (const Check& check : out.checks) EXPECT_TRUE(check.passed) << check.name;
    EXPECT_EQ(out.metric("throughput").unit, "tokens/s");
  }
  EXPECT_EQ(run("token", "decode").skipped, "tokens have no stage decode");
}

TEST_F(DataloaderCase, ATruncatedImageIsFoundAndNamed) {
  const test::Outcome out = run("image", "all", {Fault::corrupt_image});
  const Check& check = out.check("corrupt_images_share");
  EXPECT_FALSE(check.passed);
  EXPECT_DOUBLE_EQ(check.value.value_or(-1), 1.0 / images);
  ASSERT_EQ(check.detail.size(), 1u);
  EXPECT_NE(check.detail[0].find(".jpg: truncated"), std::string::npos) << check.detail[0];
}

}  // namespace
}  // namespace assay
