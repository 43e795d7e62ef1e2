// A fast hash of text, stable across runs; not cryptographic.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace assay {

// FNV-1a over words of eight bytes, mixed so that high bits affect low ones. `seed` continues another hash: the length
// is hashed first, so that consecutive texts cannot be confused.
inline std::uint64_t hash64(std::string_view text, std::uint64_t seed = 14695981039346656037ull) {
  std::uint64_t hash = seed;
  const auto mix = [&hash](std::uint64_t word) {
    hash = (hash ^ word) * 1099511628211ull;
    hash ^= hash >> 32;
  };
  mix(text.size());
  std::uint64_t word = 0;
  for (; text.size() >= sizeof word; text.remove_prefix(sizeof word)) {
    std::memcpy(&word, text.data(), sizeof word);
    mix(word);
  }
  word = 0;
  if (!text.empty()) std::memcpy(&word, text.data(), text.size());
  mix(word);
  return hash;
}

}  // namespace assay
