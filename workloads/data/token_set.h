// A file of raw tokens, little-endian uint16 or uint32, cut into windows for language models.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace assay::data {

// Mapped into memory during its lifetime. Window w holds tokens [w * length, w * length + length], length + 1 in all:
// inputs and, shifted by one, targets. Files whose name ends in .u32 or .uint32, optionally followed by .bin, hold
// uint32, all others uint16.
class TokenSet {
 public:
  // Throws UsageError if the file is missing, unreadable, empty, not a whole number of tokens, or shorter than a
  // window.
  TokenSet(const std::string& path, std::int64_t window_length);
  ~TokenSet();
  TokenSet(const TokenSet&) = delete;
  TokenSet& operator=(const TokenSet&) = delete;

  // Why the constructor would throw, or empty.
  static std::string problem_with(const std::string& path, std::int64_t window_length);
  // Bytes per token according to the file's name: 2 or 4.
  static int width_of(const std::string& path);

  const std::string& path() const { return path_; }
  int token_bytes() const { return width_; }
  std::uint64_t windows() const { return windows_; }
  std::int64_t window_length() const { return length_; }
  std::uint64_t bytes() const { return bytes_; }

  // The byte offset of window w in the file.
  std::uint64_t offset(std::uint64_t window) const {
    return window * static_cast<std::uint64_t>(length_) * static_cast<std::uint64_t>(width_);
  }
  const std::byte* data() const { return data_; }
  // Widens `length + 1` tokens at `from` to int32.
  void widen(const std::byte* from, std::int32_t* out) const;

 private:
  std::string path_;
  std::int64_t length_;
  int width_;
  std::uint64_t bytes_ = 0;
  std::uint64_t windows_ = 0;
  const std::byte* data_ = nullptr;
};

}  // namespace assay::data
