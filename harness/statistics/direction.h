// Which way the speed of something changed: the verdict of every comparison of two sides.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace assay {

enum class Direction { slower, faster, same, unknown };

constexpr auto words(Direction) { return std::to_array<std::string_view>({"slower", "faster", "same", "unknown"}); }
// The same, with the word that a command has for what it cannot decide.
constexpr std::string_view name_of(Direction direction, std::string_view unknown) {
  return direction == Direction::unknown ? unknown : words(direction)[static_cast<std::size_t>(direction)];
}

}  // namespace assay
