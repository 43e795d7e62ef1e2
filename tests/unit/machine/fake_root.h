// A folder in place of /, into which tests write the kernel's files.
#pragma once

#include "harness/machine/root.h"
#include "tests/support/temporary_folder.h"

#include <filesystem>
#include <fstream>
#include <string>

namespace assay {

class FakeRoot {
 public:
  FakeRoot& file(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((path() / name).parent_path());
    std::ofstream(path() / name) << text << '\n';
    return *this;
  }
  FakeRoot& link(const std::string& name, const std::string& target) {
    std::filesystem::create_directories((path() / name).parent_path());
    std::filesystem::create_symlink(target, path() / name);
    return *this;
  }
  FakeRoot& remove(const std::string& name) {
    std::filesystem::remove_all(path() / name);
    return *this;
  }
  const std::filesystem::path& path() const { return folder_.path(); }
  Root root() const { return Root(path()); }

 private:
  test::TemporaryFolder folder_;
};

}  // namespace assay
