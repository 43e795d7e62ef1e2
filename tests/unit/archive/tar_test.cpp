// Tar archives: the same bytes everywhere, and every kind of damaged or hostile archive refused.
#include "harness/archive/tar.h"

#include "harness/core/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace assay {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::vector<TarMember> three = {
    {"runs/1/run.json", std::string(700, 'x')}, {"a.txt", "hello"}, {"runs/1/empty", ""}};

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string refusal_of(const std::string& bytes, const TarLimits& limits = {}) {
  const std::string error = error_of([&] { (void)parse_tar(bytes, "x.tar", limits); });
  EXPECT_THAT(error, StartsWith("x.tar: "));
  EXPECT_EQ(error.find('\n'), std::string::npos);
  return error;
}

// A header with a valid checksum, its members overwritten by `change`.
std::string header(const std::string& name, std::size_t size, char type, const std::string& link = "") {
  std::string block(512, '\0');
  const auto put = [&](std::size_t at, const std::string& text) { block.replace(at, text.size(), text); };
  put(0, name);
  put(100, "000644 ");
  put(108, "000000 ");
  put(116, "000000 ");
  put(124, fmt::format("{:011o} ", size));
  put(136, "00000000000 ");
  put(148, "        ");
  block[156] = type;
  put(157, link);
  put(257, std::string("ustar\00000", 8));
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return block;
}

std::string content(std::string bytes) {
  bytes.resize((bytes.size() + 511) / 512 * 512);
  return bytes;
}

const std::string tar_end(1024, '\0');

TEST(Tar, ReadsWhatItWrote) {
  const std::string bytes = tar_bytes(three);
  EXPECT_TRUE(is_tar(bytes));
  const std::vector<TarMember> read = parse_tar(bytes, "x.tar");
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[0].name, "a.txt");
  EXPECT_EQ(read[0].bytes, "hello");
  EXPECT_EQ(read[1].name, "runs/1/empty");
  EXPECT_EQ(read[1].bytes, "");
  EXPECT_EQ(read[2].bytes, std::string(700, 'x'));
  EXPECT_EQ(tar_bytes(read), bytes);
  EXPECT_EQ(tar_bytes({three[2], three[0], three[1]}), bytes);  // whatever the order
}

TEST(Tar, HeadersSayNothingOfTheWriter) {
  const std::string first = tar_bytes({{"a.txt", "hello"}}).substr(0, 512);
  EXPECT_EQ(first.substr(100, 7), "000644 ");
  EXPECT_EQ(first.substr(108, 16), std::string("000000 \000000000 \0", 16));  // owner and group
  EXPECT_EQ(first.substr(136, 11), "00000000000");                            // time
  EXPECT_EQ(first.substr(265, 64), std::string(64, '\0'));                    // their names
}

TEST(Tar, RefusesToWriteNamesThatCouldLeaveAFolder) {
  for (const char* name : {"", "/etc/passwd", "../x", "a/../../x", "a/./b", "a//b", "a/", ".", "a\nb", "a\\b", "\xff"})
    EXPECT_THAT(error_of([&] {
                  (void)tar_bytes({{name, "x"}});
                }),
                HasSubstr("cannot be put into a tar archive"))
        << name;
  EXPECT_THAT(error_of([] { (void)tar_bytes({{"a", "1"}, {"a", "2"}}); }), HasSubstr("two files"));
  EXPECT_THAT(error_of([] { (void)tar_bytes({{std::string(101, 'n'), ""}}); }), HasSubstr("cannot be put"));
  const std::string longest = std::string(155, 'd') + "/" + std::string(100, 'n');
  EXPECT_EQ(parse_tar(tar_bytes({{longest, "x"}}), "x.tar").front().name, longest);
}

TEST(Tar, RefusesToReadThem) {
  for (const char* name : {"/etc/passwd", "../x", "a/../../x", "a/./b", "./a", "a//b", "a\nb", "\xff"})
    EXPECT_THAT(refusal_of(header(name, 1, '0') + content("x") + tar_end), HasSubstr("its name")) << name;
}

TEST(Tar, RefusesAllButFilesAndFolders) {
  for (const char type : {'1', '2', '3', '4', '6', 'S', 'Z'})
    EXPECT_THAT(refusal_of(header("a", 0, type, "/etc/passwd") + tar_end), HasSubstr("\"a\" is refused")) << type;
  // Extended headers, which name the file that follows.
  EXPECT_THAT(refusal_of(header("p", 18, 'x') + content("18 path=/etc/motd\n") + header("a", 0, '0') + tar_end),
              HasSubstr("is refused"));
  EXPECT_THAT(
      refusal_of(header("././@LongLink", 5, 'L') + content(std::string("../x\0", 5)) + header("a", 0, '0') + tar_end),
      HasSubstr("is refused"));
  const std::string with_folder = header("d/", 0, '5') + header("d/a", 1, '0') + content("x") + tar_end;
  ASSERT_EQ(parse_tar(with_folder, "x.tar").size(), 1u);
}

TEST(Tar, RefusesTwoFilesOfOneName) {
  EXPECT_THAT(refusal_of(header("a", 0, '0') + header("a", 0, '0') + tar_end), HasSubstr("\"a\" is there twice"));
}

TEST(Tar, RefusesMoreThanItsLimits) {
  const std::string bytes = tar_bytes(three);
  EXPECT_THAT(refusal_of(bytes, {.bytes = 1000}), HasSubstr("1000 bytes"));
  EXPECT_THAT(refusal_of(bytes, {.members = 2}), HasSubstr("more than 2 files"));
  EXPECT_EQ(parse_tar(bytes, "x.tar", {.bytes = bytes.size(), .members = 3}).size(), 3u);
  // A size that no memory holds, and one that is a little too large.
  for (const std::size_t size : {std::size_t{077777777777}, std::size_t{2000}})
    refusal_of(header("a", size, '0') + content("x") + tar_end);
}

TEST(Tar, FindsACutAtEveryBlock) {
  const std::string bytes = tar_bytes(three);
  const std::size_t last = bytes.find_last_not_of('\0') / 512 * 512 + 512;
  for (std::size_t size = 0; size < last + 1024; size += 512) refusal_of(bytes.substr(0, size));
  for (std::size_t size = 1; size < 512; size += 37) refusal_of(bytes.substr(0, last + size));
  // Content of zeros looks like the end.
  const std::string zeros = tar_bytes({{"a", std::string(4096, '\0')}, {"b", "x"}});
  for (std::size_t size = 0; size < 512 + 4096 + 1024 + 1024; size += 512) refusal_of(zeros.substr(0, size));
}

TEST(Tar, FindsWhatFollowsTheEnd) {
  std::string bytes = tar_bytes(three);
  refusal_of(bytes + content("more"));
  EXPECT_THAT(refusal_of(bytes + content("more") + tar_end), HasSubstr("something follows its end"));
  EXPECT_THAT(refusal_of(bytes + bytes), HasSubstr("something follows its end"));
}

TEST(Tar, FindsAChangedHeader) {
  const std::string bytes = tar_bytes({{"a", "x"}});
  for (std::size_t at = 0; at < 345; ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    if (at >= 148 && at < 156) continue;  // the checksum has several spellings
    refusal_of(changed);
  }
}

}  // namespace
}  // namespace assay
