#include "harness/core/rng.h"

#include <cmath>
#include <numbers>

namespace assay {

namespace {

// FNV-1a, 64 bits: turns the name of a purpose into the upper half of the counter.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

__extension__ using Wide = unsigned __int128;

std::uint32_t low(std::uint64_t v) { return static_cast<std::uint32_t>(v); }
std::uint32_t high(std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); }

double unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> c, std::array<std::uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c[2];
    c = {high(p1) ^ c[1] ^ k[0], low(p1), high(p0) ^ c[3] ^ k[1], low(p0)};
    k[0] += 0x9E3779B9u;
    k[1] += 0xBB67AE85u;
  }
  return c;
}

Rng::Rng(std::uint64_t seed, std::string_view purpose) : key_{low(seed), high(seed)}, purpose_(hash_of(purpose)) {}

std::array<std::uint32_t, 4> Rng::block(std::uint64_t index) const {
  return philox({low(index), high(index), low(purpose_), high(purpose_)}, key_);
}

std::uint64_t Rng::u64(std::uint64_t index) const {
  const auto b = block(index);
  return std::uint64_t{b[1]} << 32 | b[0];
}

double Rng::uniform(std::uint64_t index) const { return unit(u64(index)); }

std::uint64_t Rng::below(std::uint64_t index, std::uint64_t bound) const {
  return static_cast<std::uint64_t>((static_cast<Wide>(u64(index)) * bound) >> 64);
}

double Rng::normal(std::uint64_t index) const {
  const auto b = block(index);
  const double u = 1.0 - unit(std::uint64_t{b[1]} << 32 | b[0]);
  const double v = unit(std::uint64_t{b[3]} << 32 | b[2]);
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

}  // namespace assay
