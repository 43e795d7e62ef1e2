// Training from the user's files: splits, labels, masks, and one-line errors.
#include "workloads/data/training_files.h"

#include "harness/core/error.h"
#include "tests/support/refusal.h"
#include "tests/unit/data/fixtures.h"
#include "workloads/data/masked_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

namespace assay::data {
namespace {

using test::Folder;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string images_problem(const std::string& path, std::int64_t classes) {
  return assay::test::refusal([&] { open_training_images(path, 32, classes); });
}

std::string tokens_problem(const std::string& path, std::int64_t seq, std::int64_t vocabulary) {
  return assay::test::refusal([&] { open_training_tokens(path, seq, vocabulary); });
}

std::string shard_of(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string tar;
  for (const auto& [name, content] : members) tar += test::tar_member(name, content);
  return tar + test::tar_end();
}

struct Read {
  std::vector<std::int32_t> labels;
  std::vector<float> images;
  std::int64_t samples = 0;
};

Read read_images(const std::shared_ptr<const TrainingSet>& set, Split split, std::int64_t batch, int batches) {
  StreamOptions options;
  options.split = split;
  options.micro_batch = batch;
  TrainingStream stream(set, options);
  Read read;
  std::vector<std::int32_t> targets(static_cast<std::size_t>(batch));
  std::vector<float> images(static_cast<std::size_t>(batch * 32 * 32 * 3));
  for (int b = 0; b < batches; ++b) {
    read.samples += stream.next({.images = images, .targets = targets}).samples;
    read.labels.insert(read.labels.end(), targets.begin(), targets.end());
    read.images.insert(read.images.end(), images.begin(), images.end());
  }
  return read;
}

TEST(TrainingImages, LabelsAreTheSortedSubfolders) {
  const Folder folder;
  for (std::uint64_t i = 0; i < 20; ++i)
    folder.write((i % 2 ? "cat/" : "ant/deeper/") + std::to_string(i) + ".jpg", test::picture(i));
  const auto set = open_training_images(folder.path(), 32, 10);
  EXPECT_EQ(set->samples(Split::train), 18);
  EXPECT_EQ(set->samples(Split::validation), 2);
  const Read train = read_images(set, Split::train, 18, 2);
  EXPECT_EQ(
      std::count(train.labels.begin(), train.labels.end(), 0) + std::count(train.labels.begin(), train.labels.end(), 1),
      36);
  // An epoch shows each image once, whatever the order.
  EXPECT_EQ(std::count(train.labels.begin(), train.labels.begin() + 18, 0),
            std::count(train.labels.begin() + 18, train.labels.end(), 0));
  const Read validation = read_images(set, Split::validation, 2, 2);
  EXPECT_EQ(validation.samples, 4);
  EXPECT_TRUE(std::equal(validation.images.begin(), validation.images.begin() + 2 * 32 * 32 * 3,
                         validation.images.begin() + 2 * 32 * 32 * 3));
  EXPECT_TRUE(set->unusable().empty());
}

TEST(TrainingImages, TrainAndValidationFolders) {
  const Folder folder;
  for (std::uint64_t i = 0; i < 4; ++i) {
    folder.write("train/" + std::string(i % 2 ? "b/" : "a/") + std::to_string(i) + ".jpg", test::picture(i));
    folder.write("val/" + std::string(i % 2 ? "b/" : "a/") + std::to_string(i) + ".jpg", test::picture(i + 10));
  }
  const auto set = open_training_images(folder.path(), 32, 2);
  EXPECT_EQ(set->samples(Split::train), 4);
  EXPECT_EQ(set->samples(Split::validation), 4);
  EXPECT_EQ(read_images(set, Split::validation, 4, 1).labels, (std::vector<std::int32_t>{0, 0, 1, 1}));
  folder.write("val/c/9.jpg", test::picture(9));
  EXPECT_THAT(images_problem(folder.path(), 10), AllOf(HasSubstr("/val"), HasSubstr("c is only in validation")));
}

TEST(TrainingImages, ShardsWithClasses) {
  const Folder folder;
  const std::string image = test::text_of(test::picture(0));
  folder.write("a.tar", shard_of({{"0.jpg", image}, {"0.cls", "3"}, {"1.cls", "7\n"}, {"1.jpg", image}}));
  const auto set = open_training_images(folder.path("a.tar"), 32, 8);
  const Read read = read_images(set, Split::train, 2, 1);
  EXPECT_EQ(std::set<int>(read.labels.begin(), read.labels.end()), (std::set<int>{3, 7}));
  EXPECT_THAT(images_problem(folder.path("a.tar"), 7),
              AllOf(HasSubstr("1.jpg"), HasSubstr("has label 7, but the model's 7 classes are 0 to 6")));
  folder.write("b.tar", shard_of({{"0.jpg", image}}));
  EXPECT_THAT(images_problem(folder.path("b.tar"), 7), AllOf(HasSubstr("0.jpg"), HasSubstr("has no label")));
  folder.write("c.tar", shard_of({{"0.jpg", image}, {"0.cls", "-4"}}));
  EXPECT_THAT(images_problem(folder.path("c.tar"), 7), HasSubstr("has label -4, but"));
}

TEST(TrainingImages, ReportProblems) {
  const Folder folder;
  EXPECT_THAT(images_problem(folder.path("nowhere"), 2), HasSubstr("no such file or folder"));
  EXPECT_THAT(images_problem("", 2), HasSubstr("empty"));
  EXPECT_THAT(images_problem(folder.path(), 2), HasSubstr("holds no images"));
  folder.write("0.jpg", test::picture(0));
  EXPECT_THAT(images_problem(folder.path(), 2), AllOf(HasSubstr("0.jpg"), HasSubstr("has no label")));
  for (const char* name : {"x/a.jpg", "y/a.jpg", "z/a.jpg"}) folder.write(name, test::picture(0));
  std::filesystem::remove(folder.path("0.jpg"));
  EXPECT_EQ(images_problem(folder.path(), 3), "");
  EXPECT_THAT(images_problem(folder.path(), 2),
              AllOf(HasSubstr("z/a.jpg"), HasSubstr("has label 2 (folder z), but the model's 2 classes are 0 to 1"),
                    Not(HasSubstr("\n"))));
}

TEST(TrainingImages, ReportDamagedImages) {
  const Folder folder;
  for (std::uint64_t i = 0; i < 4; ++i) {
    folder.write("train/a/" + std::to_string(i) + ".jpg", test::picture(i));
    folder.write("val/a/" + std::to_string(i) + ".jpg", test::picture(i));
  }
  std::filesystem::resize_file(folder.path("train/a/1.jpg"), 1000);
  std::filesystem::resize_file(folder.path("val/a/2.jpg"), 1000);
  const auto set = open_training_images(folder.path(), 32, 1);
  EXPECT_EQ(read_images(set, Split::train, 4, 1).labels, (std::vector<std::int32_t>{0, 0, 0, 0}));
  EXPECT_EQ(read_images(set, Split::validation, 4, 1).labels, (std::vector<std::int32_t>{0, 0, ignored_target, 0}));
  const auto lines = set->unusable();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], HasSubstr("a/1.jpg: "));
  EXPECT_THAT(lines[1], HasSubstr("a/2.jpg: "));
}

template <typename Token>
std::string write_tokens(const Folder& folder, const std::string& name, const std::vector<Token>& tokens) {
  return folder.write(name, std::as_bytes(std::span(tokens)));
}

TEST(TrainingTokens, WindowsOfTheFile) {
  const Folder folder;
  std::vector<std::uint16_t> tokens;
  for (int i = 0; i < 401; ++i) tokens.push_back(static_cast<std::uint16_t>(i));
  const auto set = open_training_tokens(write_tokens(folder, "t.bin", tokens), 10, 401);
  EXPECT_EQ(set->samples(Split::train), 38);
  EXPECT_EQ(set->samples(Split::validation), 2);
  for (const Split split : {Split::train, Split::validation}) {
    StreamOptions options;
    options.split = split;
    options.micro_batch = 2;
    TrainingStream stream(set, options);
    std::set<int> starts;
    for (std::int64_t b = 0; b < stream.epoch(); ++b) {
      std::vector<std::int32_t> ids(20), targets(20);
      stream.next({.ids = ids, .targets = targets});
      for (std::size_t row = 0; row < 2; ++row) {
        starts.insert(ids[row * 10]);
        for (std::size_t t = 0; t < 10; ++t) {
          EXPECT_EQ(ids[row * 10 + t], ids[row * 10] + static_cast<int>(t));
          EXPECT_EQ(targets[row * 10 + t], ids[row * 10 + t] + 1);
        }
      }
    }
    EXPECT_EQ(std::ssize(starts), set->samples(split));
    if (split == Split::validation) {
      EXPECT_EQ(starts, (std::set<int>{380, 390}));
    }
  }
}

TEST(TrainingTokens, RejectIdsOutsideTheVocabulary) {
  const Folder folder;
  std::vector<std::uint16_t> narrow(10000, 7);
  narrow[8123] = 300;
  const std::string path = write_tokens(folder, "t.bin", narrow);
  EXPECT_EQ(tokens_problem(path, 16, 301), "");
  EXPECT_EQ(tokens_problem(path, 16, 300),
            path + ": token 8123 (counted from 0) is id 300, but the model's vocabulary is 0 to 299");
  std::vector<std::uint32_t> wide(100, 7);
  wide[99] = 0xffffffffu;
  EXPECT_THAT(tokens_problem(write_tokens(folder, "t.u32", wide), 16, 128256),
              HasSubstr("token 99 (counted from 0) is id 4294967295, but the model's vocabulary is 0 to 128255"));
  EXPECT_THAT(tokens_problem(folder.path("nowhere"), 16, 10), HasSubstr("No such file"));
  EXPECT_THAT(tokens_problem(folder.write("e.bin", std::string()), 16, 10), HasSubstr("empty"));
  EXPECT_THAT(tokens_problem(path, 20000, 1000), HasSubstr("fewer than one window"));
}

TEST(TrainingTokens, OneWindowLeavesNoneForValidation) {
  const Folder folder;
  const auto set = open_training_tokens(write_tokens(folder, "t.bin", std::vector<std::uint16_t>(20, 1)), 16, 100);
  EXPECT_EQ(set->samples(Split::train), 1);
  StreamOptions options;
  options.split = Split::validation;
  EXPECT_THROW(TrainingStream(set, options), UsageError);
}

TEST(TrainingTokens, MaskedForEncoders) {
  const Folder folder;
  const auto set =
      open_training_tokens(write_tokens(folder, "t.bin", std::vector<std::uint16_t>(4001, 55)), 40, 30522, true);
  ASSERT_EQ(set->kind(), SampleKind::masked);
  StreamOptions options;
  options.micro_batch = 50;
  TrainingStream stream(set, options);
  std::vector<std::int32_t> ids(2000), targets(2000), types(2000, 9), lengths(50);
  const FilledBatch filled = stream.next({.ids = ids, .type_ids = types, .lengths = lengths, .targets = targets});
  EXPECT_NEAR(static_cast<double>(filled.valid), 300, 80);
  std::map<int, int> seen;
  for (std::size_t t = 0; t < 2000; ++t)
    if (targets[t] != ignored_target) {
      EXPECT_EQ(targets[t], 55);
      ++seen[ids[t]];
    } else {
      EXPECT_EQ(ids[t], 55);
    }
  EXPECT_GT(seen[103], static_cast<int>(filled.valid) / 2);
  EXPECT_EQ(lengths, std::vector<std::int32_t>(50, 40));
  EXPECT_EQ(types, std::vector<std::int32_t>(2000, 0));
}

}  // namespace
}  // namespace assay::data
