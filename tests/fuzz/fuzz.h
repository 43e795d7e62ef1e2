// What fuzz targets share: files in memory, and what a refusal must look like. A target takes bytes as a reader of
// Assay would find them, and ends the process (abort) when the reader gives a wrong answer; the sanitizers see the
// rest.
#pragma once

#include "harness/core/error.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace assay::fuzz {

// The targets, by the names of their seed folders.
using Target = void (*)(std::string_view input);
void channel(std::string_view input);
void checkpoint(std::string_view input);
void floors(std::string_view input);
void hosts(std::string_view input);
void jpeg(std::string_view input);
void message(std::string_view input);
void plan(std::string_view input);
void prices(std::string_view input);
void record(std::string_view input);
void run(std::string_view input);
void tar(std::string_view input);
void tokens(std::string_view input);

// Ends the process with the words when `holds` is false.
void expect(bool holds, std::string_view words);

// A file that lies in memory, for readers that take a path.
class MemoryFile {
 public:
  // `path` is where readers find it: what they go by is its name.
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

// A folder of this process, gone when it ends.
const std::filesystem::path& folder();

// A message for people: lines of UTF-8 without control characters, each of them beginning with `source`.
void expect_message(std::string_view message, std::string_view source);

// Whether `read` took the input; it may refuse only by an Error that names `source`.
template <typename Read>
bool takes(std::string_view source, Read read) {
  try {
    read();
    return true;
  } catch (const Error& error) {
    expect_message(error.what(), source);
    return false;
  }
}

}  // namespace assay::fuzz
