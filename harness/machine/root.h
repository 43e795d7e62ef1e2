// The kernel's files (/proc, /sys, /etc, /dev) below a root that tests replace with a folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// Paths are relative to the root ("proc/stat"). A file that is absent or unreadable gives nothing, never 0.
class Root {
 public:
  explicit Root(std::filesystem::path path = "/") : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  // Whether this is the machine itself, so that system calls and files describe the same machine.
  bool real() const { return path_ == "/"; }
  bool exists(std::string_view file) const;
  // The whole content without surrounding white space.
  std::optional<std::string> text(std::string_view file) const;
  // The number at the start of a file.
  std::optional<std::int64_t> integer(std::string_view file) const;
  // Names in a folder, sorted; numbers in names compare as numbers (cpu2 before cpu10).
  std::vector<std::string> list(std::string_view folder) const;
  // The last part of a symbolic link's target.
  std::optional<std::string> link_name(std::string_view file) const;
  // Writes the text to an existing file; false if that fails.
  bool write(std::string_view file, std::string_view text) const;

 private:
  std::filesystem::path path_;
};

// The folder in $ASSAY_ROOT, which replaces this machine's files in inventory, findings and audit; else "/". Throws
// UsageError if it is no folder.
Root user_root();

// Value of a line "Name:   value" (status, meminfo, cpuinfo), trimmed, in the first line of that name.
std::optional<std::string> field(std::string_view text, std::string_view name);
// Value of a line "Name:  123 kB", in bytes.
std::optional<std::uint64_t> kilobytes_field(std::string_view text, std::string_view name);
std::vector<std::string> words(std::string_view text);
std::vector<std::string> lines(std::string_view text);
std::optional<std::int64_t> to_integer(std::string_view text);

}  // namespace assay
