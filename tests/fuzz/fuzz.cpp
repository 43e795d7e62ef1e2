#include "tests/fuzz/fuzz.h"

#include "harness/core/text.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace assay::fuzz {

namespace {

class Folder {
 public:
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "assay-fuzz-XXXXXX";
    expect(mkdtemp(name.data()) != nullptr, "cannot create a temporary folder");
    path = name;
  }
  ~Folder() {
    std::error_code none;
    std::filesystem::remove_all(path, none);
  }
  std::filesystem::path path;
};

}  // namespace

void expect(bool holds, std::string_view problem) {
  if (holds) return;
  std::fprintf(stderr, "wrong answer: %.*s\n", static_cast<int>(problem.size()), problem.data());
  std::abort();
}

const std::filesystem::path& folder() {
  static const Folder folder;
  return folder.path;
}

MemoryFile::MemoryFile(const std::filesystem::path& path)
    : fd_(::memfd_create("assay-fuzz", MFD_CLOEXEC)), path_(path.string()) {
  std::filesystem::create_directories(path.parent_path());
  const std::string real = fmt::format("/proc/{}/fd/{}", ::getpid(), fd_);
  const bool linked = fd_ >= 0 && ::symlink(real.c_str(), path_.c_str()) == 0;
  expect(linked, std::strerror(errno));
}

MemoryFile::~MemoryFile() {
  ::unlink(path_.c_str());
  ::close(fd_);
}

void MemoryFile::write(std::string_view bytes) const {
  expect(::ftruncate(fd_, 0) == 0 && ::pwrite(fd_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
         std::strerror(errno));
}

void expect_message(std::string_view message, std::string_view source) {
  const std::string shown(message.substr(0, 400));
  expect(!message.empty(), "an empty message");
  expect(is_utf8(message), "a message that is not UTF-8: " + shown);
  expect(message.size() < 100000, "a huge message: " + shown);
  while (!message.empty()) {
    const std::string_view line = message.substr(0, message.find('\n'));
    expect(line.starts_with(source), "a message that does not name its source: " + shown);
    expect(std::none_of(line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }),
           "a message with control characters: " + shown);
    message.remove_prefix(std::min(message.size(), line.size() + 1));
  }
}

}  // namespace assay::fuzz
