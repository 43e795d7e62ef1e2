// Places that root may rely on: owners, modes and links on the way.
#include "harness/core/trust.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr uid_t other_user = 4321;

class Trust : public testing::Test {
 protected:
  void SetUp() override {
    if (!as_root()) GTEST_SKIP() << "only root can give files to others";
    fs::create_directory(path("own"));
    std::ofstream(path("own/file")) << "x";
    ::chmod(path("own").c_str(), 0755);
  }
  fs::path path(const std::string& name) const { return folder_.path() / name; }
  static mode_t mode_of(const fs::path& file) {
    struct stat about {};
    return ::stat(file.c_str(), &about) == 0 ? about.st_mode & 07777 : 0;
  }
  void give(const std::string& name) const { ASSERT_EQ(::lchown(path(name).c_str(), other_user, other_user), 0); }

  test::TemporaryFolder folder_;
};

TEST_F(Trust, OwnPlacesAreTrusted) {
  EXPECT_EQ(why_untrusted(path("own/file")), "");
  EXPECT_EQ(why_untrusted(path("own/none/at/all")), "");
  EXPECT_EQ(why_untrusted("/"), "");
  ::chmod(path("own").c_str(), 01777);  // as /tmp
  EXPECT_EQ(why_untrusted(path("own/file")), "");
  fs::create_symlink("own", path("link"));
  EXPECT_EQ(why_untrusted(path("link/file")), "");
  EXPECT_EQ(why_untrusted(path("link/../own/./file")), "");
}

TEST_F(Trust, WhatOthersCanChangeIsNot) {
  ::chmod(path("own/file").c_str(), 0646);
  EXPECT_THAT(why_untrusted(path("own/file")), HasSubstr("others may write to"));
  ::chmod(path("own/file").c_str(), 0644);
  ::chmod(path("own").c_str(), 0757);
  EXPECT_THAT(why_untrusted(path("own/file")), HasSubstr("others may write to"));
  EXPECT_THAT(why_untrusted(path("own/none")), HasSubstr("others may write to"));
  ::chmod(path("own").c_str(), 0755);
  give("own/file");
  EXPECT_THAT(why_untrusted(path("own/file")), HasSubstr("own/file belongs to user 4321"));
  give("own");
  EXPECT_THAT(why_untrusted(path("own/file")), HasSubstr("own belongs to user 4321"));
}

TEST_F(Trust, AGroupOfOthersCounts) {
  ASSERT_EQ(::chown(path("own").c_str(), 0, other_user), 0);
  ::chmod(path("own").c_str(), 0775);
  EXPECT_THAT(why_untrusted(path("own/file")), HasSubstr("others may write to"));
}

TEST_F(Trust, EveryLinkOnTheWayIsLookedAt) {
  fs::create_directory(path("theirs"));
  fs::create_symlink(path("own"), path("theirs/in"));
  fs::create_symlink(path("theirs/in"), path("start"));
  EXPECT_EQ(why_untrusted(path("start/file")), "");
  give("theirs/in");
  EXPECT_THAT(why_untrusted(path("start/file")), HasSubstr("theirs/in belongs to user 4321"));
  ASSERT_EQ(::lchown(path("theirs/in").c_str(), 0, 0), 0);
  give("theirs");
  EXPECT_THAT(why_untrusted(path("start/file")), HasSubstr("theirs belongs to user 4321"));
  fs::create_symlink("round", path("round"));
  EXPECT_THAT(why_untrusted(path("round")), HasSubstr("cannot be followed"));
}

TEST_F(Trust, APrivateFolderIsMadeOrRefused) {
  EXPECT_EQ(make_private(path("own/a/b")), path("own/a/b"));
  EXPECT_EQ(mode_of(path("own/a/b")), 0700U);
  ::chmod(path("own/a/b").c_str(), 0755);
  make_private(path("own/a/b"));
  EXPECT_EQ(mode_of(path("own/a/b")), 0700U);
  for (const mode_t open : {0777, 01777}) {
    ::chmod(path("own/a/b").c_str(), open);
    EXPECT_THROW(make_private(path("own/a/b")), Error);
    EXPECT_EQ(mode_of(path("own/a/b")), open) << "what was found stays as it is";
  }
  EXPECT_THROW(make_private(path("own/file")), Error);
  give("own");
  EXPECT_THROW(make_private(path("own/new")), Error);
  EXPECT_FALSE(fs::exists(path("own/new"))) << "nothing is made in a place of other_user else";
  EXPECT_THROW(require_trusted("x", path("own/file")), UsageError);
}

}  // namespace
}  // namespace assay
