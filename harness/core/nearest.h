// The nearest valid name, for error messages.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace assay {

// Edits (insert, delete, replace, swap of neighbours; case ignored) that turn one word into the other:
// the optimal string alignment distance.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The fewest edits that turn `pattern` into a substring of `text` (Sellers' algorithm, without swaps).
std::size_t part_distance(std::string_view pattern, std::string_view text);

// The candidate that `word` is probably a misspelling of; nothing if none is close.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

// The end of an error message: `; did you mean "m"?` if one is close, else `; valid: m, n, k` (at most 12 of them), or
// nothing if there are no candidates.
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

}  // namespace assay
