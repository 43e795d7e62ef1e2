#include "workloads/data/token_set.h"

#include "harness/core/error.h"
#include "workloads/data/file.h"

#include <bit>
#include <cerrno>
#include <cstring>
#include <string_view>

#include <sys/mman.h>
#include <sys/stat.h>

namespace assay::data {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

int TokenSet::width_of(const std::string& path) {
  std::string_view name(path);
  if (name.ends_with(".bin")) name.remove_suffix(4);
  for (const std::string_view ending : {"u32", "uint32"})
    for (const char before : {'.', '_', '-'})
      if (name.ends_with(ending) && name.size() > ending.size() && name[name.size() - ending.size() - 1] == before)
        return 4;
  return 2;
}

TokenSet::TokenSet(const std::string& path, std::int64_t window_length)
    : path_(path), length_(window_length), width_(width_of(path)) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) throw UsageError(fmt::format("{}: {}", path, std::strerror(errno)));
  if (!S_ISREG(status.st_mode)) throw UsageError(fmt::format("{}: not a file of tokens", path));
  const File file = File::open(path);
  bytes_ = file.bytes();
  if (bytes_ == 0) throw UsageError(fmt::format("{}: empty", path));
  if (bytes_ % static_cast<std::uint64_t>(width_))
    throw UsageError(fmt::format("{}: {} bytes are not a whole number of uint{} tokens", path, bytes_, width_ * 8));
  const std::uint64_t tokens = bytes_ / static_cast<std::uint64_t>(width_);
  windows_ = (tokens - 1) / static_cast<std::uint64_t>(length_);
  if (windows_ == 0)
    throw UsageError(
        fmt::format("{}: {} tokens are fewer than one window of {} and its target", path, tokens, length_));
  void* map = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file.descriptor(), 0);
  if (map == MAP_FAILED) throw Error(fmt::format("{}: cannot map: {}", path, std::strerror(errno)));
  data_ = static_cast<const std::byte*>(map);
}

TokenSet::~TokenSet() { ::munmap(const_cast<std::byte*>(data_), bytes_); }

std::string TokenSet::problem_with(const std::string& path, std::int64_t window_length) {
  try {
    TokenSet(path, window_length);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

void TokenSet::widen(const std::byte* from, std::int32_t* out) const {
  const auto count = static_cast<std::size_t>(length_ + 1);
  if (width_ == 4) {
    std::memcpy(out, from, count * 4);
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t token;
    std::memcpy(&token, from + i * 2, 2);
    out[i] = token;
  }
}

}  // namespace assay::data
