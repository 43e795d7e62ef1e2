// Checkpoints are bit-exact and atomic; other files are refused with a clear message and change nothing.
#include "workloads/training/checkpoint.h"
#include "harness/core/error.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>

namespace assay::training {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class CheckpointFile : public testing::Test {
 protected:
  void SetUp() override {
    std::iota(weights_.begin(), weights_.end(), 0.5f);
    moments_.assign(17, -0.0);
    moments_[3] = std::numeric_limits<double>::quiet_NaN();
  }

  std::vector<nn::StatePart> parts() {
    return {{"weights/a", DType::f32, {100, 10}, weights_.data(), weights_.size() * 4},
            {"moment1/a", DType::f64, {17}, moments_.data(), moments_.size() * 8},
            {"step", DType::i64, {}, &step_, 8}};
  }
  void save() { write_checkpoint(file_, identity_, {{"losses", {1.5, 0.1}}}, parts(), *device_); }
  std::string refusal(const CheckpointIdentity& identity) {
    const std::vector<float> before = weights_;
    const std::int64_t step = step_;
    const std::string message = test::refusal<Error>([&] { read_checkpoint(file_, identity, parts(), *device_); });
    EXPECT_EQ(weights_, before) << message;
    EXPECT_EQ(step_, step) << message;
    return message;
  }
  std::string bytes() {
    std::ifstream in(file_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void replace(const std::string& text) { std::ofstream(file_, std::ios::binary | std::ios::trunc) << text; }

  test::TemporaryFolder folder_;
  const fs::path file_ = folder_.path() / "checkpoints" / "a.ckpt";
  std::vector<float> weights_ = std::vector<float>(1000);
  std::vector<double> moments_;
  std::int64_t step_ = 41;
  CheckpointIdentity identity_{"gpt2-tiny", "f32", "transformer/model=gpt2-tiny"};
  const std::unique_ptr<Device> device_ = make_device(DeviceKind::cpu, 0);
};

TEST_F(CheckpointFile, RestoresEveryBitAndItsMeta) {
  save();
  const std::vector<float> weights = weights_;
  const std::vector<double> moments = moments_;
  weights_.assign(1000, 7);
  moments_.assign(17, 7);
  step_ = 0;
  Transfer transfer;
  const Json meta = read_checkpoint(file_, identity_, parts(), *device_, &transfer);
  EXPECT_EQ(std::memcmp(weights.data(), weights_.data(), 4000), 0);
  EXPECT_EQ(std::memcmp(moments.data(), moments_.data(), 136), 0);
  EXPECT_EQ(step_, 41);
  EXPECT_EQ(meta["losses"][1].get<double>(), 0.1);
  EXPECT_EQ(transfer.bytes, fs::file_size(file_));
}

TEST_F(CheckpointFile, EveryTruncationIsRefused) {
  save();
  const std::string whole = bytes();
  for (std::size_t length = 0; length < whole.size(); length += length < 2000 ? 7 : 997) {
    replace(whole.substr(0, length));
    EXPECT_THAT(refusal(identity_), testing::AnyOf(HasSubstr("truncated"), HasSubstr("is empty"))) << length;
  }
}

TEST_F(CheckpointFile, AFlippedBitIsFoundAndItsPartNamed) {
  const auto flipped = [&](std::size_t at) {
    save();
    std::string text = bytes();
    text[at] = static_cast<char>(text[at] ^ 0x04);
    replace(text);
    return refusal(identity_);
  };
  save();
  const std::size_t size = bytes().size();
  EXPECT_THAT(flipped(size - 1), HasSubstr("is damaged (in step)"));
  EXPECT_THAT(flipped(size - 8 - 4096), HasSubstr("is damaged (in moment1/a)"));  // parts start 4,096 apart
  EXPECT_THAT(flipped(4096 + 100), HasSubstr("is damaged (in weights/a)"));
  EXPECT_THAT(flipped(40), HasSubstr("is damaged (its header)"));
}

TEST_F(CheckpointFile, OtherFilesAreRefused) {
  save();
  const std::string whole = bytes();
  replace(std::string(5000, 'x'));
  EXPECT_THAT(refusal(identity_), HasSubstr("is not an Assay checkpoint"));
  std::string text = whole;
  text[8] = 9;
  replace(text);
  EXPECT_THAT(refusal(identity_), HasSubstr("has format 9; this build reads 1"));
}

TEST_F(CheckpointFile, OfAnotherModelPrecisionOrCaseIsRefused) {
  save();
  EXPECT_THAT(refusal({"llama-tiny", "f32", identity_.key}), AllOf(HasSubstr("another model"), HasSubstr("gpt2-tiny")));
  EXPECT_THAT(refusal({"gpt2-tiny", "bf16", identity_.key}), HasSubstr("another precision"));
  EXPECT_THAT(refusal({"gpt2-tiny", "f32", "other"}), HasSubstr("another case"));
  auto others = parts();
  others[1].shape = {1, 17};
  EXPECT_THROW(read_checkpoint(file_, identity_, others, *device_), Error);
}

TEST_F(CheckpointFile, AFailedWriteLeavesTheEarlierOne) {
  save();
  const std::string before = bytes();
  fs::create_directory(fs::path(file_.string() + ".tmp"));  // blocks the temporary file
  EXPECT_THROW(save(), Error);
  EXPECT_EQ(bytes(), before);
}

TEST(Checksum, DependsOnLengthAndEveryBit) {
  std::vector<std::byte> data(1000, std::byte{0});
  const std::uint64_t zeros = checksum(data);
  EXPECT_NE(zeros, checksum(std::span(data).first(999)));
  for (const std::size_t at : {0u, 7u, 8u, 63u, 64u, 511u, 999u})
    for (int bit = 0; bit < 8; ++bit) {
      data[at] = std::byte{static_cast<unsigned char>(1 << bit)};
      EXPECT_NE(checksum(data), zeros) << at;
      data[at] = std::byte{0};
    }
}

}  // namespace
}  // namespace assay::training
