// SHA-256 (FIPS 180-4), to detect damaged files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace assay {

class Sha256 {
 public:
  Sha256();
  void add(std::span<const std::byte> bytes);
  // 64 hexadecimal digits; do not use the object afterwards.
  std::string hex();

 private:
  void block(const std::byte* data);

  std::array<std::uint32_t, 8> state_;
  std::array<std::byte, 64> tail_{};
  std::uint64_t total_ = 0;
};

std::string sha256_hex(std::span<const std::byte> bytes);
std::string sha256_hex(std::string_view text);

}  // namespace assay
