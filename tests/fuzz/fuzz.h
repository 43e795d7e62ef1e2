// Shared by fuzz targets: files in memory, and checks of error messages. A target passes its input to a reader of Assay
// and aborts if the reader gives a wrong answer; sanitizers catch the rest.
#pragma once

#include "harness/core/error.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace assay::fuzz {

// The targets, by the names of their seed folders.
using Target = void (*)(std::string_view input);
void analysis(std::string_view input);
void audits(std::string_view input);
void channel(std::string_view input);
void checkpoint(std::string_view input);
void expectation(std::string_view input);
void floors(std::string_view input);
void foreign(std::string_view input);
void history(std::string_view input);
void hosts(std::string_view input);
void jpeg(std::string_view input);
void kernel_log(std::string_view input);
void message(std::string_view input);
void model(std::string_view input);
void pack(std::string_view input);
void peer_tools(std::string_view input);
void plan(std::string_view input);
void prices(std::string_view input);
void record(std::string_view input);
void run(std::string_view input);
void tar(std::string_view input);
void tokens(std::string_view input);

// Prints the problem and aborts if `holds` is false.
void expect(bool holds, std::string_view problem);

// A file in memory, for readers that take a path.
class MemoryFile {
 public:
  // `path` is a link to it, for readers that depend on the name.
  explicit MemoryFile(const std::filesystem::path& path);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  void write(std::string_view bytes) const;
  const std::string& path() const { return path_; }

 private:
  int fd_ = -1;
  std::string path_;
};

// A temporary folder of this process.
const std::filesystem::path& folder();

// Checks a message for people: lines of UTF-8 without control characters, each starting with `source`.
void expect_message(std::string_view message, std::string_view source);

// Whether `read` accepts the input. It may reject it only by throwing an Error that names `source`.
template <typename Read>
bool accepts(std::string_view source, Read read) {
  try {
    read();
    return true;
  } catch (const Error& error) {
    expect_message(error.what(), source);
    return false;
  }
}

}  // namespace assay::fuzz
