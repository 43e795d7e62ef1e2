// Numbers as text, for readers that judge themselves what is too small or too large.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace assay {

// The number that all of the text is: nothing if anything stands before or after it, or if it does not fit T. `base` is
// for integers.
template <typename T>
std::optional<T> whole_number(std::string_view text, int base = 10) {
  T value{};
  const char* const end = text.data() + text.size();
  std::from_chars_result read{};
  if constexpr (std::is_integral_v<T>)
    read = std::from_chars(text.data(), end, value, base);
  else
    read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc() && read.ptr == end ? std::optional(value) : std::nullopt;
}

}  // namespace assay
