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
#define ASSAY_FUZZ_TARGETS(each)                                                                                 \
  each(analysis) each(architecture) each(audits) each(channel) each(checkpoint) each(expectation) each(floors)   \
      each(foreign) each(hello) each(history) each(hosts) each(jpeg) each(kernel_log) each(kineto) each(message) \
          each(model) each(pack) each(peer_tools) each(plan) each(prices) each(record) each(run) each(sheets)    \
              each(tar) each(tokens)
#define ASSAY_FUZZ_DECLARE(name) void name(std::string_view input);
ASSAY_FUZZ_TARGETS(ASSAY_FUZZ_DECLARE)
#undef ASSAY_FUZZ_DECLARE

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
