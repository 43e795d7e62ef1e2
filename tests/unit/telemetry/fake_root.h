// A folder that stands in for / : tests write the kernel's files into it.
#pragma once

#include "harness/telemetry/root.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace assay {

class FakeRoot {
 public:
  FakeRoot() {
    std::string name = (std::filesystem::temp_directory_path() / "assay_root_XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("mkdtemp");
    path_ = name;
  }
  ~FakeRoot() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  FakeRoot& file(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text << '\n';
    return *this;
  }
  FakeRoot& link(const std::string& name, const std::string& target) {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::filesystem::create_symlink(target, path_ / name);
    return *this;
  }
  FakeRoot& remove(const std::string& name) {
    std::filesystem::remove_all(path_ / name);
    return *this;
  }
  const std::filesystem::path& path() const { return path_; }
  Root root() const { return Root(path_); }

 private:
  std::filesystem::path path_;
};

}  // namespace assay
