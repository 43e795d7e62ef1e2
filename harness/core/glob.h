// Patterns in which * matches any text, also none.
#pragma once

#include <cstddef>
#include <string_view>

namespace assay {

// Whether `pattern` describes all of `text`. `same(p, t)` compares a character of the pattern, never *, with one of the
// text. Takes at most the product of the lengths in steps.
template <typename Same>
bool glob_matches(std::string_view pattern, std::string_view text, const Same& same) {
  // After a mismatch the last * takes one more character.
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && same(pattern[p], text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

}  // namespace assay
