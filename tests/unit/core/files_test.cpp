// Files: what is replaced, written to directly or refused, and what is refused before it is read.
#include "harness/core/files.h"

#include "harness/core/error.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <thread>

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr uid_t somebody = 4321;

class Files : public testing::Test {
 protected:
  fs::path path(const std::string& name) const { return folder_.path() / name; }
  fs::path put(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  static std::string text_of(const fs::path& file) { return read_whole(file, 1 << 20); }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }
  // Skips the test if device nodes cannot be made or opened here.
  fs::path device(const std::string& name, unsigned major, unsigned minor) const {
    const Descriptor opened(::mknod(path(name).c_str(), S_IFCHR | 0666, makedev(major, minor)) == 0
                                ? ::open(path(name).c_str(), O_WRONLY | O_CLOEXEC)
                                : -1);
    return opened < 0 ? fs::path() : path(name);
  }

  test::TemporaryFolder folder_;
};

std::string text_from(int fd) {
  std::string text;
  std::array<char, 4096> block;
  for (ssize_t got; (got = ::read(fd, block.data(), block.size())) > 0;)
    text.append(block.data(), static_cast<std::size_t>(got));
  return text;
}

TEST_F(Files, WritersOfOneFileDoNotMix) {
  const fs::path file = put("f", "old");
  NewFile first(file), second(file);
  first.write("one, ");
  second.write("two, ");
  second.write("whole");
  EXPECT_EQ(text_of(file), "old");
  second.finish();
  EXPECT_EQ(text_of(file), "two, whole");
  first.write("whole");
  first.finish();
  EXPECT_EQ(text_of(file), "one, whole");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(Files, OnlyLeftoversOfEndedProcessesAreRemoved) {
  NewFile writing(path("f"));
  writing.write("whole");
  put(".assay-0123456789abcdef.tmp", "of a killed process");
  ASSERT_EQ(entries(), 2u);
  remove_temporaries(folder_.path());
  EXPECT_EQ(entries(), 1u);
  writing.finish();
  EXPECT_EQ(text_of(path("f")), "whole");
}

// Many files are made while another thread removes leftovers from the same folder without a pause.
TEST_F(Files, FilesAreMadeBesideARemovalOfLeftovers) {
  std::jthread remover([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) remove_temporaries(folder_.path());
  });
  for (int i = 0; i < 500; ++i) {
    NewFile file(path("f"));
    file.write("whole");
    ASSERT_NO_THROW(file.finish(false)) << i;
  }
}

TEST_F(Files, WhatIsNotFinishedLeavesNothing) {
  const fs::path file = put("f", "old");
  NewFile(file).write("new");
  EXPECT_EQ(text_of(file), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(Files, TheUmaskSaysWhoMayReadIt) {
  const mode_t before = ::umask(027);
  replace_file(path("f"), "x");
  ::umask(before);
  struct stat about {};
  ASSERT_EQ(::stat(path("f").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777u, 0640u);
}

TEST_F(Files, OnesOwnLinksAreFollowedAndKept) {
  fs::create_directory(path("there"));
  fs::create_symlink("there/second", path("first"));
  fs::create_symlink("target", path("there/second"));
  for (const char* text : {"made", "replaced"}) {
    replace_file(path("first"), text);
    EXPECT_EQ(text_of(path("there/target")), text);
  }
  EXPECT_TRUE(fs::is_symlink(path("first")) && fs::is_symlink(path("there/second")));
  fs::create_symlink("loop", path("loop"));
  EXPECT_THAT(test::refusal<Error>([&] { replace_file(path("loop"), "x"); }), HasSubstr("loop"));
}

TEST_F(Files, LinksOfOthersLeadNowhere) {
  const fs::path victim = put("victim", "precious");
  fs::create_symlink("victim", path("f.tmp"));
  replace_file(path("f"), "x");
  EXPECT_EQ(text_of(victim), "precious");
  fs::create_symlink("victim", path("planted"));
  fs::create_symlink("planted", path("mine"));
  if (::lchown(path("planted").c_str(), somebody, somebody) != 0) GTEST_SKIP() << "cannot give a link away";
  replace_file(path("mine"), "new");
  EXPECT_EQ(text_of(victim), "precious");
  EXPECT_FALSE(fs::is_symlink(path("planted")));
  EXPECT_EQ(text_of(path("mine")), "new");
}

TEST_F(Files, AFifoIsWrittenTo) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] {
    const Descriptor end(::open(path("pipe").c_str(), O_RDONLY | O_CLOEXEC));
    read = text_from(end);
  });
  replace_file(path("pipe"), std::string(200'000, 'x'));
  reader.join();
  EXPECT_EQ(read.size(), 200'000u);
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(Files, ASocketIsWrittenTo) {
  const Descriptor server(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path("s").c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(server, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_THROW(replace_file(path("s"), "nobody listens"), Error);
  ASSERT_EQ(::listen(server, 1), 0);
  replace_file(path("s"), "hello");
  const Descriptor client(::accept4(server, nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_EQ(text_from(client), "hello");
  EXPECT_TRUE(fs::is_socket(path("s")));
}

TEST_F(Files, DevicesStayDevices) {
  const fs::path null = device("null", 1, 3), full = device("full", 1, 7);
  if (null.empty() || full.empty()) GTEST_SKIP() << "no device nodes here";
  replace_file(null, "gone");
  EXPECT_THAT(test::refusal<Error>([&] { replace_file(full, "x"); }), HasSubstr("No space left"));
  fs::create_symlink("null", path("link"));
  replace_file(path("link"), "gone");
  EXPECT_TRUE(fs::is_character_file(null) && fs::is_character_file(full) && fs::is_symlink(path("link")));
  ASSERT_EQ(::mknod(path("disk").c_str(), S_IFBLK | 0600, makedev(7, 200)), 0);
  EXPECT_THAT(test::refusal<Error>([&] { replace_file(path("disk"), "x"); }), HasSubstr("it is a disk"));
}

TEST_F(Files, WhatIsOpenAlreadyIsContinued) {
  const fs::path log = put("log", "before\n");
  const Descriptor fd(::open(log.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  fs::create_symlink("/proc/self/fd/" + std::to_string(fd), path("link"));
  replace_file(path("link"), "after\n");
  EXPECT_EQ(text_of(log), "before\nafter\n");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_THAT(test::refusal<Error>([] { replace_file("/proc/self/exe", "x"); }), HasSubstr("another process has open"));
}

TEST_F(Files, AFolderIsRefused) {
  fs::create_directory(path("d"));
  EXPECT_THAT(test::refusal<Error>([&] { replace_file(path("d"), "x"); }), HasSubstr("it is a folder"));
  EXPECT_THAT(test::refusal<Error>([&] { replace_file(path("none/f"), "x"); }), HasSubstr("No such file"));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(Files, OnlyFilesAreReadAndNothingIsWaitedFor) {
  const auto why = [&](const fs::path& file) { return test::refusal<Error>([&] { (void)read_whole(file, 100); }); };
  EXPECT_THAT(why(folder_.path()), HasSubstr("it is a folder, not a file"));
  EXPECT_THAT(why("/dev/zero"), HasSubstr("it is a device, not a file"));
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", path("link"));
  for (const char* name : {"pipe", "link"}) {
    EXPECT_THAT(why(path(name)), HasSubstr("it is a FIFO, not a file"));
    EXPECT_THROW((void)read_whole(path(name), 100, Pipes::read), Error);
  }
  fs::create_symlink("self", path("self"));
  EXPECT_THAT(why(path("self")), HasSubstr("symbolic links"));
  EXPECT_THAT(why(path("none")), HasSubstr("No such file"));
}

TEST_F(Files, APipeThatIsOpenIsReadWhereAsked) {
  std::array<int, 2> ends;
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  Descriptor out(ends[0]), in(ends[1]);
  write_all(in, "text", "pipe");
  in.close();
  const fs::path pipe = "/proc/self/fd/" + std::to_string(out);
  EXPECT_THROW((void)read_whole(pipe, 100), Error);
  EXPECT_EQ(read_whole(pipe, 100, Pipes::read), "text");
}

TEST_F(Files, ALongFileIsRefusedBeforeItIsRead) {
  fs::resize_file(put("sparse", ""), std::uintmax_t{1} << 40);
  EXPECT_THAT(test::refusal<Error>([&] { (void)read_whole(path("sparse"), 1 << 20); }),
              HasSubstr("longer than 1048576"));
  LineReader lines(path("sparse"), 1 << 20);
  std::string line;
  EXPECT_THAT(test::refusal<Error>([&] { (void)lines.next(line); }), HasSubstr("line 1 is longer than 1048576 bytes"));
  EXPECT_EQ(read_whole(put("fits", "12345"), 5), "12345");
  EXPECT_THROW((void)read_whole(path("fits"), 4), Error);
}

TEST_F(Files, LinesAreReadOneByOne) {
  const std::string longer(150'000, 'y');
  LineReader lines(put("f", "a\n\n" + longer + "\nend"), 200'000);
  std::string line;
  for (const std::string& expected : {std::string("a"), std::string(), longer}) {
    ASSERT_TRUE(lines.next(line));
    EXPECT_EQ(line, expected);
    EXPECT_TRUE(lines.ended());
  }
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line, "end");
  EXPECT_FALSE(lines.ended());
  EXPECT_FALSE(lines.next(line));
  EXPECT_THROW(LineReader(folder_.path(), 100), Error);
}

}  // namespace
}  // namespace assay
