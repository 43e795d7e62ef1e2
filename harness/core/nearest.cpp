#include "harness/core/nearest.h"

#include "harness/core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>

namespace assay {

namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// Longer words are truncated before comparison, which bounds what a hostile file can cost.
constexpr std::size_t max_compared = 128;

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  a = a.substr(0, max_compared);
  b = b.substr(0, max_compared);
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0u : 1u)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::size_t part_distance(std::string_view pattern, std::string_view text) {
  pattern = pattern.substr(0, max_compared);
  // Row 0 is all zeros, so a match may start anywhere in the text; the minimum of the last row is its best end.
  std::vector<std::size_t> last(text.size() + 1, 0), row(text.size() + 1);
  for (std::size_t i = 1; i <= pattern.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= text.size(); ++j) {
      const bool same = lower(pattern[i - 1]) == lower(text[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0u : 1u)});
    }
    last.swap(row);
  }
  return *std::ranges::min_element(last);
}

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  if (word.empty()) return std::nullopt;
  const std::string* best = nullptr;
  std::size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (!best || distance < best_distance) {
      best = &candidate;
      best_distance = distance;
    }
  }
  if (!best) return std::nullopt;
  // Up to a third of the letters, and always one, may differ; words that differ in every letter are not alike.
  const std::size_t longer = std::max(word.size(), best->size());
  if (best_distance <= std::max<std::size_t>(1, (longer + 1) / 3) && best_distance < longer) return *best;
  for (const std::string& candidate : candidates) {
    const std::string_view name(candidate);
    if (word.size() >= 3 && (name.starts_with(word) || word.starts_with(name)) && !name.empty()) return candidate;
  }
  return std::nullopt;
}

// Names may come from untrusted files.
std::string suggestion(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t max_shown = 1000;
  if (const auto near = nearest(word, candidates))
    return fmt::format("; did you mean {}?", in_quotes(*near, max_shown));
  if (candidates.empty()) return {};
  const std::size_t shown = std::min<std::size_t>(12, candidates.size());
  std::string names;
  for (const std::string& name : candidates.first(shown))
    names += (names.empty() ? "" : ", ") + one_line(name, max_shown);
  return fmt::format("; valid: {}{}", names, shown < candidates.size() ? ", ..." : "");
}

}  // namespace assay
