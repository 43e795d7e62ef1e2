// The timed search for the fastest algorithm, and the file that caches its results.
#include "workloads/ops/algorithm_cache.h"

#include "harness/core/error.h"
#include "harness/core/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <system_error>
#include <vector>

namespace assay::ops {

namespace {

constexpr double indistinguishable = 1.005;

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

bool by_heuristics() {
  const char* wanted = std::getenv(kernels_variable);
  return wanted && std::string_view(wanted) == kernels_by_heuristics;
}

std::optional<std::size_t> find_fastest(std::size_t count, CandidateTimer& timer, const SearchLimits& limits) {
  constexpr double failed = std::numeric_limits<double>::infinity();
  const auto repetitions_of = [&](double seconds) {
    const double enough = std::ceil(limits.sample_seconds / std::max(seconds, 1e-7));
    return static_cast<int>(std::clamp(enough, 1.0, static_cast<double>(limits.max_repetitions)));
  };
  // A candidate's first run includes loading its code, so it is not timed.
  std::vector<std::size_t> loaded;
  for (std::size_t i = 0; i < count; ++i)
    if (timer.seconds(i, 1)) {
      if (by_heuristics()) return i;
      loaded.push_back(i);
    }
  for (double warm = 0, last = limits.sample_seconds; !loaded.empty() && warm < limits.warmup_seconds;) {
    const int repetitions = repetitions_of(last);
    const std::optional<double> seconds = timer.seconds(loaded.front(), repetitions);
    if (!seconds) break;
    last = *seconds;
    warm += std::max(last * repetitions, 1e-6);
  }
  std::vector<double> first(count, failed);
  for (const std::size_t i : loaded) first[i] = timer.seconds(i, 1).value_or(failed);
  const double fastest = count == 0 ? failed : *std::ranges::min_element(first);
  if (fastest == failed) return std::nullopt;

  std::vector<std::size_t> contenders;
  std::vector<int> repetitions;
  double round_seconds = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (first[i] > fastest * limits.max_slowdown) continue;
    contenders.push_back(i);
    repetitions.push_back(repetitions_of(first[i]));
    round_seconds += first[i] * repetitions.back();
  }
  const double affordable = limits.budget_seconds / round_seconds;
  const int rounds = static_cast<int>(std::clamp(affordable, 1.0, static_cast<double>(limits.max_rounds)));
  std::vector<std::vector<double>> times(contenders.size());
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < contenders.size(); ++i)
      times[i].push_back(timer.seconds(contenders[i], repetitions[i]).value_or(failed));

  std::vector<double> medians;
  for (const auto& samples : times) medians.push_back(median_of(samples));
  const double best = *std::ranges::min_element(medians);
  if (best == failed) return std::nullopt;
  for (std::size_t i = 0; i < contenders.size(); ++i)
    if (medians[i] <= best * indistinguishable) return contenders[i];
  return std::nullopt;
}

AlgorithmCache::AlgorithmCache(const std::filesystem::path& folder, const std::string& owner) {
  if (folder.empty()) return;
  std::string name = owner;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.') c = '-';
  file_ = folder / "algorithms" / (name + ".txt");
  read();
}

void AlgorithmCache::read() {
  constexpr std::uintmax_t max_bytes = std::uintmax_t{64} << 20;
  std::string text;
  try {
    text = read_whole(file_, max_bytes);
  } catch (const Error&) {  // the searches are repeated
  }
  for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    const std::string line = text.substr(at, end - at);
    const std::size_t tab = line.find('\t');
    // A line that another process is still writing has no final '.'.
    if (tab == std::string::npos || line.size() < tab + 3 || line.back() != '.') continue;
    known_.insert_or_assign(line.substr(0, tab), line.substr(tab + 1, line.size() - tab - 2));
  }
}

void AlgorithmCache::append(const std::string& key, const std::string& algorithm) const {
  if (file_.empty()) return;
  // If this fails, the next process repeats the search: no reason to stop.
  std::error_code ignored;
  std::filesystem::create_directories(file_.parent_path(), ignored);
  const std::string line = key + '\t' + algorithm + ".\n";
  const Descriptor out(
      ::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
  // One write() in append mode, so that lines of several processes do not mix.
  if (out >= 0) (void)!::write(out, line.data(), line.size());
}

std::string AlgorithmCache::find(const std::string& key, const std::function<bool(const std::string&)>& accept,
                                 const std::function<std::string()>& search) {
  const std::lock_guard lock(mutex_);
  if (const auto at = known_.find(key); at != known_.end()) {
    if (accept(at->second)) return at->second;
    known_.erase(at);
  }
  const std::string found = search();
  if (found.empty()) return found;
  known_[key] = found;
  append(key, found);
  return found;
}

std::size_t AlgorithmCache::size() const {
  const std::lock_guard lock(mutex_);
  return known_.size();
}

}  // namespace assay::ops
