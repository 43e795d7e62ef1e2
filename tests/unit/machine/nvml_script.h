// A script for the stand-in for NVML (tests/support/nvml), which a test may rewrite.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

namespace assay {

class NvmlScript {
 public:
  explicit NvmlScript(const std::string& text)
      : path_(std::filesystem::temp_directory_path() / ("assay-nvml-" + std::to_string(getpid()))) {
    say(text);
    setenv("ASSAY_NVML_SCRIPT", path_.c_str(), 1);
  }
  ~NvmlScript() { std::filesystem::remove(path_); }
  void say(const std::string& text) { std::ofstream(path_) << text; }

 private:
  std::filesystem::path path_;
};

}  // namespace assay
