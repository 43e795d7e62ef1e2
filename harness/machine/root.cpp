// Reading the kernel's small text files.
#include "harness/machine/root.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/text.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>

namespace assay {
namespace {

// Numbers inside names compare as numbers.
bool natural_less(const std::string& a, const std::string& b) {
  std::size_t i = 0, j = 0;
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      const auto end_of = [&](const std::string& text, std::size_t from) {
        while (from < text.size() && digit(text[from])) ++from;
        return from;
      };
      const auto a_end = end_of(a, i), b_end = end_of(b, j);
      const auto x = to_integer(a.substr(i, a_end - i)).value_or(0), y = to_integer(b.substr(j, b_end - j)).value_or(0);
      if (x != y) return x < y;
      i = a_end;
      j = b_end;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

}  // namespace

bool Root::exists(std::string_view file) const {
  std::error_code ignored;
  return std::filesystem::exists(path_ / file, ignored);
}

std::optional<std::string> Root::text(std::string_view file) const {
  const Descriptor descriptor(::open((path_ / file).c_str(), O_RDONLY | O_CLOEXEC));
  if (descriptor < 0) return std::nullopt;
  std::string all;
  std::array<char, 16384> piece;
  for (;;) {
    const auto got = ::read(descriptor, piece.data(), piece.size());
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    all.append(piece.data(), static_cast<std::size_t>(got));
  }
  return std::string(trim(all));
}

std::optional<std::int64_t> Root::integer(std::string_view file) const {
  const auto content = text(file);
  return content ? to_integer(*content) : std::nullopt;
}

std::vector<std::string> Root::list(std::string_view folder) const {
  std::vector<std::string> names;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(path_ / folder, failed), end; !failed && entry != end;
       entry.increment(failed))
    names.push_back(entry->path().filename().string());
  std::ranges::sort(names, natural_less);
  return names;
}

std::optional<std::string> Root::link_name(std::string_view file) const {
  std::error_code failed;
  const auto target = std::filesystem::read_symlink(path_ / file, failed);
  if (failed) return std::nullopt;
  return target.filename().string();
}

bool Root::write(std::string_view file, std::string_view text) const {
  const Descriptor descriptor(::open((path_ / file).c_str(), O_WRONLY | O_CLOEXEC));
  return descriptor >= 0 && ::write(descriptor, text.data(), text.size()) == std::ssize(text);
}

Root user_root() {
  const char* const folder = std::getenv("ASSAY_ROOT");
  if (folder == nullptr || *folder == '\0') return Root();
  std::error_code failed;
  const auto path = std::filesystem::canonical(folder, failed);
  if (failed || !std::filesystem::is_directory(path, failed))
    throw UsageError(std::string("ASSAY_ROOT=") + folder + ": no such folder");
  return Root(path);
}

std::optional<std::int64_t> to_integer(std::string_view text) {
  text = trim(text);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < text.size();) {
    while (i < text.size() && std::isspace(static_cast<unsigned char>(text[i]))) ++i;
    const auto start = i;
    while (i < text.size() && !std::isspace(static_cast<unsigned char>(text[i]))) ++i;
    if (i > start) all.emplace_back(text.substr(start, i - start));
  }
  return all;
}

std::vector<std::string> lines(std::string_view text) {
  std::vector<std::string> all;
  while (!text.empty()) {
    const auto end = text.find('\n');
    all.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return all;
}

std::optional<std::string> field(std::string_view text, std::string_view name) {
  for (const std::string& line : lines(text))
    if (const auto colon = line.find(':'); colon != line.npos && trim(line.substr(0, colon)) == name)
      return std::string(trim(line.substr(colon + 1)));
  return std::nullopt;
}

std::optional<std::uint64_t> kilobytes_field(std::string_view text, std::string_view name) {
  const auto value = field(text, name);
  const auto kilobytes = value ? to_integer(*value) : std::nullopt;
  if (!kilobytes || *kilobytes < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*kilobytes) * 1024;
}

}  // namespace assay
