#include "harness/figures/direction.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace assay {

namespace {

bool is_upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }
bool is_lower(char c) { return std::islower(static_cast<unsigned char>(c)) != 0; }

// "meanLatency_ms95" is mean, latency, ms.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (!std::isalpha(static_cast<unsigned char>(c))) {
      words.emplace_back();
      continue;
    }
    // "HTTPLatency" is two words, "GFLOPs" is one.
    const bool begins =
        i > 0 && is_upper(c) &&
        (is_lower(name[i - 1]) || (i + 2 < name.size() && is_lower(name[i + 1]) && is_lower(name[i + 2])));
    if (begins) words.emplace_back();
    words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  std::erase(words, "");
  return words;
}

template <std::size_t N>
bool any_is(const std::vector<std::string>& words, const std::array<std::string_view, N>& signs) {
  return std::ranges::any_of(words,
                             [&](const std::string& word) { return std::ranges::find(signs, word) != signs.end(); });
}

constexpr std::array<std::string_view, 15> rate_words = {"bandwidth", "bw",      "busbw", "algbw", "throughput",
                                                         "iops",      "ops",     "qps",   "rps",   "tps",
                                                         "fps",       "goodput", "mfu",   "hits",  "speedup"};
constexpr std::array<std::string_view, 30> cost_words = {
    "time",   "times", "latency", "latencies",  "lat",  "overhead", "overheads", "cost",   "costs",  "temperature",
    "temp",   "power", "loss",    "losses",     "lost", "duration", "delay",     "error",  "errors", "failures",
    "misses", "miss",  "retries", "perplexity", "ppl",  "jitter",   "stall",     "stalls", "energy", "elapsed"};
// A unit of time is a sign behind the rest ("p99_us") and before "per".
constexpr std::array<std::string_view, 9> time_words = {"ns",      "us",   "ms",   "sec", "secs",
                                                        "seconds", "usec", "msec", "nsec"};

}  // namespace

std::string_view metric_part(std::string_view name) {
  std::string_view part = name.substr(name.rfind('/') + 1);
  const std::size_t colon = part.rfind(':');
  if (colon != part.npos && colon + 1 < part.size() && colon > 0 &&
      part.find_first_not_of("0123456789", colon + 1) == part.npos)
    part = part.substr(0, colon);
  return part.empty() ? name : part;
}

Better guessed_better(std::string_view name) {
  const std::vector<std::string> words = words_of(metric_part(name));
  const auto any = [&](auto test) { return std::ranges::any_of(words, test); };
  if (any_is(words, rate_words) || any([](const std::string& word) { return word.ends_with("flops"); }))
    return Better::higher;
  const auto per = std::ranges::find(words, "per");
  if (per != words.end() && per + 1 != words.end() && per != words.begin() &&
      (per[1].starts_with("s") && std::string_view("seconds").starts_with(per[1])) && !any_is({*(per - 1)}, cost_words))
    return Better::higher;  // images_per_second
  const bool time_each = per != words.begin() && per != words.end() && any_is({*(per - 1)}, time_words);  // ns_per_op
  const bool lower = any_is(words, cost_words) || time_each || (!words.empty() && any_is({words.back()}, time_words)) ||
                     any([](const std::string& word) {
                       return word.size() > 4 && (word.ends_with("time") || word.ends_with("latency"));  // steptime
                     });
  return lower ? Better::lower : Better::higher;
}

}  // namespace assay
