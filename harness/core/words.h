// Enums whose enumerators have words: in keys, records and messages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace assay {

// An enum with a function words(E) beside it that returns the words of its enumerators in order.
template <typename E>
concept Worded = std::is_enum_v<E> && requires(E value) {
  words(value)[0];
};

template <Worded E>
std::string word_of(E value) {
  return std::string(words(value)[static_cast<std::size_t>(value)]);
}
template <Worded E>
std::string_view name_of(E value) {
  return words(value)[static_cast<std::size_t>(value)];
}
// Absent for any other word.
template <Worded E>
std::optional<E> from_word(std::string_view word) {
  const auto& all = words(E{});
  const auto found = std::ranges::find(all, word);
  return found == std::end(all) ? std::nullopt : std::optional(static_cast<E>(found - std::begin(all)));
}
template <Worded E>
std::vector<std::string> all_words() {
  const auto& all = words(E{});
  return {all.begin(), all.end()};
}

}  // namespace assay
