// Format: POSIX.1-2017 pax(1), and GNU tar's "L" members.
#include "workloads/data/tar_reader.h"

#include "workloads/data/file.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

namespace assay::data {

namespace {

constexpr std::uint64_t block = 512;
constexpr std::uint64_t max_name_bytes = 64 * 1024;  // of a pax or GNU header; more means damage

// A number field: octal digits, or big-endian binary with the top bit set (GNU).
std::optional<std::uint64_t> number(const char* field, std::size_t width) {
  if (static_cast<unsigned char>(field[0]) & 0x80u) {
    std::uint64_t value = static_cast<unsigned char>(field[0]) & 0x7fu;
    for (std::size_t i = 1; i < width; ++i) {
      if (value >> 55) return std::nullopt;
      value = value << 8 | static_cast<unsigned char>(field[i]);
    }
    return value;
  }
  std::uint64_t value = 0;
  std::size_t i = 0;
  while (i < width && field[i] == ' ') ++i;
  for (; i < width && field[i] >= '0' && field[i] <= '7'; ++i)
    value = value * 8 + static_cast<std::uint64_t>(field[i] - '0');
  if (i < width && field[i] != ' ' && field[i] != '\0') return std::nullopt;
  return value;
}

bool checksum_holds(const char* header) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < block; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(header[i]);
  return number(header + 148, 8) == sum;
}

std::string_view text(const char* field, std::size_t width) { return {field, strnlen(field, width)}; }

// Reads "LENGTH KEY=VALUE\n" records; false if they are malformed.
bool read_pax(std::string_view records, std::string& path, bool& has_bytes, std::uint64_t& bytes) {
  while (!records.empty()) {
    std::size_t digits = 0;
    std::uint64_t length = 0;
    while (digits < records.size() && digits < 8 && records[digits] >= '0' && records[digits] <= '9')
      length = length * 10 + static_cast<std::uint64_t>(records[digits++] - '0');
    if (digits == 0 || digits >= records.size() || records[digits] != ' ' || length <= digits + 1 ||
        length > records.size())
      return false;
    std::string_view record = records.substr(digits + 1, length - digits - 1);
    records.remove_prefix(length);
    if (!record.empty() && record.back() == '\n') record.remove_suffix(1);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path") path = value;
    if (key == "size") {
      std::uint64_t size = 0;
      for (const char c : value) {
        if (c < '0' || c > '9' || size > UINT64_MAX / 16) return false;
        size = size * 10 + static_cast<std::uint64_t>(c - '0');
      }
      bytes = size;
      has_bytes = true;
    }
  }
  return true;
}

}  // namespace

TarIndex read_tar_index(const std::string& path, std::size_t max_members) {
  TarIndex index;
  const File file = File::open(path);
  const std::uint64_t end = file.bytes();
  std::string long_name;
  bool has_long_size = false;
  std::uint64_t long_size = 0;
  char header[block];
  std::uint64_t at = 0;
  const auto damaged = [&](const char* what) { index.problem = fmt::format("{} at byte {}", what, at); };
  while (index.members.size() < max_members) {
    if (at == end) {
      // Some writers omit the two zero blocks, so an archive that ends between members is complete.
      if (end == 0) damaged("empty archive");
      break;
    }
    if (at + block > end) {
      damaged("truncated header");
      break;
    }
    file.read(header, block, at);
    if (std::all_of(header, header + block, [](char c) { return c == '\0'; })) break;
    if (!checksum_holds(header)) {
      damaged(at == 0 ? "not a tar archive: bad header checksum" : "bad header checksum");
      break;
    }
    std::optional<std::uint64_t> bytes = number(header + 124, 12);
    const char type = header[156];
    const bool meta = type == 'x' || type == 'g' || type == 'L' || type == 'K';
    if (has_long_size && !meta) bytes = long_size;
    if (!bytes) {
      damaged("unreadable size");
      break;
    }
    const std::uint64_t content = at + block;
    if (*bytes > end - content) {
      damaged("truncated member");
      break;
    }
    if (meta) {
      if (*bytes > max_name_bytes) {
        damaged("oversized extended header");
        break;
      }
      std::string records(*bytes, '\0');
      file.read(records.data(), records.size(), content);
      if (type == 'L') long_name = records.c_str();
      if (type == 'x' && !read_pax(records, long_name, has_long_size, long_size)) {
        damaged("malformed pax header");
        break;
      }
    } else {
      if (type == '0' || type == '\0' || type == '7') {
        std::string name = std::move(long_name);
        if (name.empty()) {
          const bool ustar = std::memcmp(header + 257, "ustar", 6) == 0;
          const std::string_view prefix = ustar ? text(header + 345, 155) : std::string_view{};
          name = prefix.empty() ? std::string(text(header, 100)) : fmt::format("{}/{}", prefix, text(header, 100));
        }
        index.members.push_back({std::move(name), content, *bytes});
      }
      long_name.clear();
      has_long_size = false;
    }
    const std::uint64_t padded = (*bytes + block - 1) / block * block;
    at = padded > end - content ? end : content + padded;  // the last member may lack its padding
  }
  return index;
}

}  // namespace assay::data
