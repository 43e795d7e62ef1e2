// Folders, tar shards, token files and generated sets, intact and damaged.
#include "tests/unit/data/fixtures.h"

#include "harness/core/error.h"
#include "harness/core/rng.h"
#include "workloads/data/generated_set.h"
#include "workloads/data/image_set.h"
#include "workloads/data/shuffle.h"
#include "workloads/data/tar_reader.h"
#include "workloads/data/token_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace assay::data {
namespace {

using test::Folder;
using test::tar_end;
using test::tar_member;
using testing::HasSubstr;

TEST(Shuffle, IsADifferentPermutationEachEpoch) {
  for (const std::uint64_t size : {1u, 2u, 3u, 17u, 256u, 1000u}) {
    std::set<std::uint64_t> seen;
    int same = 0;
    for (std::uint64_t i = 0; i < size; ++i) {
      const std::uint64_t at = Shuffle(1, 0, size).at(i);
      EXPECT_LT(at, size);
      seen.insert(at);
      same += at == Shuffle(1, 1, size).at(i);
    }
    EXPECT_EQ(seen.size(), size);
    if (size >= 256) {
      EXPECT_LT(same, 12);
    }
  }
}

TEST(ImageSet, FolderLabelsFollowSortedSubfolders) {
  const Folder folder;
  for (const char* name : {"dog/deep/1.JPG", "cat/2.jpeg", "cat/1.jpg", "ant/x.png", ".hidden/3.jpg"})
    folder.write(name, "x");
  const ImageSet set = ImageSet::open(folder.path());
  ASSERT_EQ(set.size(), 3u);
  EXPECT_EQ(set.name(0), "cat/1.jpg");
  EXPECT_EQ(set.name(2), "dog/deep/1.JPG");
  EXPECT_EQ(set.label(0), 0);
  EXPECT_EQ(set.label(1), 0);
  EXPECT_EQ(set.label(2), 1);
}

TEST(ImageSet, ReadsTheSameBytesDirectlyAndThroughTheCache) {
  const Folder folder;
  const test::Bytes picture = test::picture(3);
  const std::string shard = tar_member("a.cls", "7") + tar_member("a.jpg", test::text_of(picture)) + tar_end();
  folder.write("x.tar", shard);
  const ImageSet set = ImageSet::open(folder.path("x.tar"));
  ASSERT_EQ(set.size(), 1u);
  EXPECT_EQ(set.label(0), 7);
  for (const bool direct : {false, true}) {
    const std::string problem = direct_read_problem(folder.path("x.tar"));
    if (direct && !problem.empty()) GTEST_SKIP() << problem;
    ImageReader reader(set, direct);
    const auto bytes = reader.read(0);
    ASSERT_TRUE(bytes) << reader.error();
    EXPECT_TRUE(std::equal(bytes->begin(), bytes->end(), picture.begin(), picture.end()));
  }
}

TEST(ImageSet, ReportsProblemsWithAPath) {
  const Folder folder;
  EXPECT_THAT(ImageSet::problem_with(folder.path("missing")), HasSubstr("no such file"));
  EXPECT_THAT(ImageSet::problem_with(folder.path()), HasSubstr("holds no images"));
  folder.write("notes.txt", "x");
  EXPECT_THAT(ImageSet::problem_with(folder.path()), HasSubstr("holds no images"));
  EXPECT_THAT(ImageSet::problem_with(folder.path("notes.txt")), HasSubstr("neither a folder nor a .tar"));
  EXPECT_THAT(ImageSet::problem_with(folder.write("empty.tar", "")), HasSubstr("empty archive"));
  EXPECT_THAT(ImageSet::problem_with(folder.write("bad.tar", std::string(2000, 'x'))), HasSubstr("not a tar archive"));
  EXPECT_THROW(ImageSet::open(folder.path()), UsageError);
}

TEST(Tar, GroupsMembersAndReadsLongNames) {
  const Folder folder;
  const std::string longest(240, 'n');
  const std::string pax = "256 path=" + longest + "/p.jpg\n";  // 4 + 5 + 240 + 6 + 1 bytes
  const std::string shard = tar_member("d.x/s1.jpg", "one") + tar_member("d.x/s1.cls", "5\n") +
                            tar_member("d.x/s2.cls", "6") + tar_member("d.x/s2.seg.jpg", "two") +
                            tar_member("././@LongLink", longest + "/q.jpeg" + '\0', 'L') +
                            tar_member("short", "three") + tar_member("pax", pax, 'x') + tar_member("short", "four") +
                            tar_member("dir", "", '5') + tar_end();
  const TarIndex index = read_tar_index(folder.write("a.tar", shard));
  EXPECT_EQ(index.problem, "");
  ASSERT_EQ(index.members.size(), 6u);
  EXPECT_EQ(index.members[4].name, longest + "/q.jpeg");
  EXPECT_EQ(index.members[5].name, longest + "/p.jpg");
  const ImageSet set = ImageSet::open(folder.path("a.tar"));
  ASSERT_EQ(set.size(), 4u);
  EXPECT_EQ(set.label(0), 5);
  EXPECT_EQ(set.label(1), 6);
  EXPECT_EQ(set.label(2), -1);
}

TEST(Tar, ReportsDamageAndKeepsTheRest) {
  const Folder folder;
  const std::string whole =
      tar_member("1.jpg", std::string(700, 'a')) + tar_member("2.jpg", std::string(700, 'b')) + tar_end();
  const TarIndex cut = read_tar_index(folder.write("cut.tar", whole.substr(0, 1536 + 600)));
  EXPECT_EQ(cut.members.size(), 1u);
  EXPECT_THAT(cut.problem, HasSubstr("truncated member at byte 1536"));
  EXPECT_THAT(read_tar_index(folder.write("head.tar", whole.substr(0, 1536 + 100))).problem,
              HasSubstr("truncated header"));
  std::string wrong = whole;
  wrong[1536 + 3] = '!';
  EXPECT_THAT(read_tar_index(folder.write("sum.tar", wrong)).problem, HasSubstr("bad header checksum"));
  folder.write("whole.tar", whole);
  const ImageSet set = ImageSet::open(folder.path());
  EXPECT_EQ(set.damaged_archives().size(), 3u);
}

TEST(Tar, MutatedArchivesNeverCrash) {
  const Folder folder;
  const std::string good = tar_member("a.jpg", "one") + tar_member("x", "30 path=some/long/name/b.jpg\n\n", 'x') +
                           tar_member("b.jpg", "two") + tar_member("l", "c.jpg", 'L') + tar_member("c", "three") +
                           tar_end();
  const Rng rng(2, "tar");
  std::uint64_t draw = 0;
  int damaged = 0;
  for (int round = 0; round < 400; ++round) {
    std::string bad = good;
    for (int hit = 0; hit < 3; ++hit) {
      const std::size_t block = rng.below(draw++, bad.size() / 512) * 512;
      bad[block + rng.below(draw, 180)] = static_cast<char>(rng.below(draw + 1, 256));
      draw += 2;
      // A correct checksum lets the damage reach the parser.
      std::size_t sum = 0;
      for (std::size_t i = 0; i < 512; ++i)
        sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(bad[block + i]);
      for (std::size_t i = 6; i-- > 0; sum /= 8) bad[block + 148 + i] = static_cast<char>('0' + sum % 8);
      bad[block + 154] = '\0';
    }
    const TarIndex index = read_tar_index(folder.write("m.tar", bad));
    for (const TarMember& member : index.members) ASSERT_LE(member.offset + member.bytes, bad.size());
    if (index.problem.empty()) continue;
    ++damaged;
    EXPECT_THAT(index.problem, HasSubstr(" at byte "));
  }
  EXPECT_GT(damaged, 20);
  EXPECT_LT(damaged, 380);
}

TEST(TokenSet, WindowsOverlapByOneTarget) {
  const Folder folder;
  std::vector<std::uint16_t> tokens(33);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::uint16_t>(1000 + i);
  const TokenSet set(folder.write("t.bin", std::as_bytes(std::span(tokens))), 8);
  ASSERT_EQ(set.windows(), 4u);
  std::vector<std::int32_t> window(9);
  set.widen(set.data() + set.offset(3), window.data());
  EXPECT_EQ(window.front(), 1024);
  EXPECT_EQ(window.back(), 1032);
}

TEST(TokenSet, ReportsProblemsWithAFile) {
  const Folder folder;
  EXPECT_THAT(TokenSet::problem_with(folder.path("missing"), 8), HasSubstr("No such file"));
  EXPECT_THAT(TokenSet::problem_with(folder.path(), 8), HasSubstr("not a file of tokens"));
  EXPECT_THAT(TokenSet::problem_with(folder.write("e.bin", ""), 8), HasSubstr("empty"));
  EXPECT_THAT(TokenSet::problem_with(folder.write("o.bin", "abc"), 8), HasSubstr("not a whole number of uint16"));
  EXPECT_THAT(TokenSet::problem_with(folder.write("o.u32", "abcdef"), 8), HasSubstr("not a whole number of uint32"));
  EXPECT_THAT(TokenSet::problem_with(folder.write("s.bin", "abcd"), 8), HasSubstr("fewer than one window"));
}

TEST(GeneratedSet, IsReusedAndRepaired) {
  const Folder folder;
  const GeneratedSet first = generated_images(folder.path("c"), 5, 2);
  EXPECT_GT(first.generated_seconds, 0);
  EXPECT_EQ(generated_images(folder.path("c"), 5).generated_seconds, 0);
  const std::string victim = first.path + "/class-02/000002.jpg";
  std::filesystem::resize_file(victim, std::filesystem::file_size(victim) - 1);
  const GeneratedSet repaired = generated_images(folder.path("c"), 5);
  EXPECT_GT(repaired.generated_seconds, 0);
  EXPECT_EQ(repaired.sha256, first.sha256);
  std::filesystem::remove(victim);
  EXPECT_GT(generated_images(folder.path("c"), 5).generated_seconds, 0);
  EXPECT_EQ(ImageSet::open(first.path).size(), 5u);
}

}  // namespace
}  // namespace assay::data
