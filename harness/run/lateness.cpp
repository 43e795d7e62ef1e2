// Distinguishes the late rank from the ranks that wait for it.
#include "harness/run/lateness.h"

#include "harness/core/text.h"
#include "harness/core/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace assay {

namespace {

using Statuses = std::vector<RankStatus>;
using Ranks = std::vector<int>;

constexpr std::size_t max_named = 8;

const RankStatus& at(const Statuses& all, int rank) { return all[static_cast<std::size_t>(rank)]; }

template <typename Keep>
Ranks those(const Ranks& from, const Keep& keep) {
  Ranks kept;
  std::copy_if(from.begin(), from.end(), std::back_inserter(kept), keep);
  return kept;
}

std::string numbers(const Ranks& ranks) {
  std::vector<std::string> texts;
  for (const int rank : ranks) texts.push_back(std::to_string(rank));
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", first_few(texts, max_named));
}

std::string last_span(const RankStatus& rank) {
  if (rank.phase.empty()) return "before its first span";
  return fmt::format("in {} for {}", rank.phase, format_seconds(rank.phase_seconds));
}

std::string describe(char state) {
  if (state == 'T' || state == 't') return "its process is stopped";
  if (state == 'D') return "its process sleeps uninterruptibly in the kernel";
  return {};
}

// "rank 1 on n2, in measure for 2.9 s", and how many more.
std::string first_of(const Statuses& all, const Ranks& late) {
  const RankStatus& first = at(all, late.front());
  std::string text = fmt::format("rank {} on {}, {}", late.front(), first.host, last_span(first));
  if (late.size() > 1) text += fmt::format(" (and {})", numbers(Ranks(late.begin() + 1, late.end())));
  return text;
}

std::string with_state(std::string text, const RankStatus& rank) {
  const std::string word = describe(rank.state);
  return word.empty() ? text : fmt::format("{}: {}", text, word);
}

}  // namespace

char process_state(std::int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');  // the name may hold anything
  return name_end == text.npos || name_end + 2 >= text.size() ? '?' : text[name_end + 2];
}

Lateness find_late(const Statuses& all) {
  Ranks pending;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (!all[rank].done) pending.push_back(static_cast<int>(rank));
  if (pending.empty()) return {};
  if (const Ranks silent = those(pending, [&](int rank) { return !at(all, rank).answers; }); !silent.empty()) {
    const RankStatus& first = at(all, silent.front());
    return {silent.front(), with_state(first_of(all, silent) + ", does not answer", first)};
  }
  if (all.size() == 1) {
    const std::string word = describe(all.front().state);
    return {0, word.empty() ? last_span(all.front()) : fmt::format("{}: {}", last_span(all.front()), word)};
  }

  const auto begun = [&](int rank) { return at(all, rank).begun; };
  const auto inside = [&](int rank) { return at(all, rank).begun > at(all, rank).ended; };
  std::uint64_t fewest = begun(pending.front()), most = fewest;
  for (const int rank : pending) {
    fewest = std::min(fewest, begun(rank));
    most = std::max(most, begun(rank));
  }
  // A rank that waits inside the collective is not late.
  Ranks late = those(pending, [&](int rank) { return begun(rank) == fewest && (most > fewest || !inside(rank)); });
  if (late.empty()) {
    const RankStatus& first = at(all, pending.front());
    return {-1, fmt::format("{} are all in {} (call {} of their world), {}", numbers(pending), first.call, first.begun,
                            last_span(first))};
  }
  const RankStatus& first = at(all, late.front());
  const Ranks waiting = those(pending, [&](int rank) {
    return std::find(late.begin(), late.end(), rank) == late.end() && begun(rank) > fewest;
  });
  std::string text = first_of(all, late);
  if (!waiting.empty()) {
    const RankStatus& other = at(all, waiting.front());
    text += fmt::format(", has not arrived at {} (call {} of their world), where {} wait{}",
                        other.begun == fewest + 1 ? other.call : "the collective", fewest + 1, numbers(waiting),
                        waiting.size() == 1 ? "s" : "");
  } else if (const Ranks rest = those(pending, inside); !rest.empty()) {
    text += fmt::format(", is outside {}, where {} wait{}", at(all, rest.front()).call, numbers(rest),
                        rest.size() == 1 ? "s" : "");
  } else if (late.size() < all.size()) {
    text += ", is not done; the others are";
  }
  return {late.front(), with_state(std::move(text), first)};
}

}  // namespace assay
