#include "workloads/data/class_field.h"

#include "harness/core/rng.h"
#include "workloads/data/mix.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

namespace assay::data {

ClassField::ClassField(int classes, int size, std::uint64_t seed)
    : classes_(classes),
      size_(size),
      margin_(size / 8),
      log_cell_(std::bit_width(static_cast<unsigned>(size / 4)) - 1),
      points_(((size + 2 * margin_ - 1) >> log_cell_) + 2) {
  const Rng rng(seed, "class fields");
  lattice_.resize(static_cast<std::size_t>(classes * points_ * points_ * 3));
  for (std::size_t i = 0; i < lattice_.size(); ++i)
    lattice_[i] = static_cast<std::int16_t>(static_cast<int>(rng.below(i, 2 * amplitude + 1)) - amplitude);
}

void ClassField::render(int shown, const FieldView& view, Scratch& scratch, std::int16_t* out) const {
  const int cell = 1 << log_cell_;
  const auto row_values = static_cast<std::size_t>(size_) * 3;
  scratch.resize(2 * row_values);
  std::int32_t *above = scratch.data(), *below = above + row_values;
  // A row of the lattice, interpolated along x, times `cell`.
  const auto fill = [&](int row, std::int32_t* to) {
    const std::int16_t* points = lattice_.data() + static_cast<std::ptrdiff_t>(shown * points_ + row) * points_ * 3;
    for (int x = 0; x < size_; ++x) {
      const int from = view.x + x;
      const int right = from & (cell - 1);
      const std::int16_t* left = points + (from >> log_cell_) * 3;
      std::int32_t* pixel = to + (view.flip ? size_ - 1 - x : x) * 3;
      for (int c = 0; c < 3; ++c) pixel[c] = left[c] * (cell - right) + left[c + 3] * right;
    }
  };
  for (int y = 0; y < size_; ++y) {
    const int at = view.y + y;
    const int down = at & (cell - 1);
    if (y == 0) fill(at >> log_cell_, above);
    if (y > 0 && down == 0) std::swap(above, below);
    if (y == 0 || down == 0) fill((at >> log_cell_) + 1, below);
    std::int16_t* to = out + static_cast<std::size_t>(y) * row_values;
    for (std::size_t i = 0; i < row_values; ++i)
      to[i] = static_cast<std::int16_t>((above[i] * (cell - down) + below[i] * down) >> (2 * log_cell_));
  }
}

void add_noise(std::uint64_t key, std::span<const std::int16_t> clean, float* out) {
  static_assert(std::endian::native == std::endian::little, "noise is the bytes of 64-bit numbers, low byte first");
  std::uint64_t state = key;
  std::uint64_t numbers[64];
  std::uint8_t bytes[sizeof numbers];
  for (std::size_t begin = 0; begin < clean.size(); begin += sizeof numbers) {
    for (std::uint64_t& number : numbers) number = mix(state += mix_step);
    std::memcpy(bytes, numbers, sizeof numbers);
    const std::size_t count = std::min(sizeof numbers, clean.size() - begin);
    for (std::size_t i = 0; i < count; ++i)
      out[begin + i] = static_cast<float>(clean[begin + i] + 2 * bytes[i] - 255) * pixel_scale;
  }
}

std::optional<double> confusion_bound(const ClassField& field) {
  const auto views = static_cast<double>(field.offsets()) * field.offsets();
  const double pairs = 0.5 * field.classes() * (field.classes() - 1) * views * 2 * views;
  const std::size_t values = field.values();
  if (pairs * static_cast<double>(values) > 1e10) return std::nullopt;
  // All views of all classes. Flipping both fields of a pair preserves their distance, so the left one is never
  // flipped.
  std::vector<std::vector<std::int16_t>> shown[2];
  ClassField::Scratch scratch;
  for (int c = 0; c < field.classes(); ++c)
    for (const bool flip : {false, true}) {
      auto& all = shown[flip].emplace_back(static_cast<std::size_t>(views) * values);
      std::int16_t* to = all.data();
      for (int y = 0; y < field.offsets(); ++y)
        for (int x = 0; x < field.offsets(); ++x, to += values) field.render(c, {x, y, flip}, scratch, to);
    }
  double sum = 0;
  for (int c = 0; c < field.classes(); ++c)
    for (int other = 0; other < c; ++other)
      for (std::size_t view = 0; view < static_cast<std::size_t>(views); ++view)
        for (const auto& set : shown)
          for (std::size_t against = 0; against < static_cast<std::size_t>(views); ++against) {
            const std::int16_t* a = shown[0][static_cast<std::size_t>(c)].data() + view * values;
            const std::int16_t* b = set[static_cast<std::size_t>(other)].data() + against * values;
            std::int64_t distance = 0;
            for (std::size_t i = 0; i < values; i += 1024) {  // 1024 squares of 8 bits fit into 32 bits
              std::int32_t part = 0;
              for (std::size_t j = i; j < std::min(values, i + 1024); ++j) {
                const auto difference = static_cast<std::int16_t>(a[j] - b[j]);
                part += difference * difference;
              }
              distance += part;
            }
            sum += std::exp(-static_cast<double>(distance) / (8 * noise_variance));
          }
  // Each unordered pair of classes was counted once, and one of the two flips of the left field.
  return sum * 2 * 2 / (static_cast<double>(field.classes()) * 2 * views);
}

}  // namespace assay::data
