// The kernel's files (/proc, /sys, /etc, /dev) below a root that tests replace by a folder of their own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// Paths are relative to the root ("proc/stat"). What is absent or may not be read gives nothing, never a 0.
class Root {
 public:
  explicit Root(std::filesystem::path path = "/") : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  // Whether this is the machine itself, so that system calls answer for the same machine as the files.
  bool real() const { return path_ == "/"; }
  bool exists(std::string_view file) const;
  // Whole content without surrounding white space.
  std::optional<std::string> text(std::string_view file) const;
  // The number that a file starts with.
  std::optional<std::int64_t> integer(std::string_view file) const;
  // Names in a folder, sorted; numbers in names in their own order (cpu2 before cpu10).
  std::vector<std::string> list(std::string_view folder) const;
  // Last part of where a symbolic link points.
  std::optional<std::string> link_name(std::string_view file) const;
  // True when the text could be written to an existing file.
  bool write(std::string_view file, std::string_view text) const;

 private:
  std::filesystem::path path_;
};

// "0-3,8" as 0 1 2 3 8; parts that are not numbers are left out.
std::vector<int> parse_cpu_list(std::string_view text);
// The other way round.
std::string format_cpu_list(const std::vector<int>& cpus);
// Value of a line "Name:   value" (status, meminfo, cpuinfo), trimmed; the first such line.
std::optional<std::string> field(std::string_view text, std::string_view name);
// As above for "Name:  123 kB": bytes.
std::optional<std::uint64_t> kilobytes_field(std::string_view text, std::string_view name);
std::string_view trim(std::string_view text);
std::vector<std::string> words(std::string_view text);
std::vector<std::string> lines(std::string_view text);
std::optional<std::int64_t> to_integer(std::string_view text);

}  // namespace assay
