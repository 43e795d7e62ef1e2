// Finds by timing which of a library's algorithms is fastest, and caches the result for the process and, in a folder,
// for later ones, so that two runs on one machine use the same algorithm.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace assay::ops {

// The environment variable ASSAY_KERNELS: "heuristics" takes the first choice of the libraries' heuristics instead of
// the fastest by time, so that equal devices choose equal kernels, and only kernels that repeat their bits.
inline constexpr const char* kernels_variable = "ASSAY_KERNELS";
inline constexpr const char* kernels_by_heuristics = "heuristics";
bool by_heuristics();

// Times candidates 0 .. count - 1.
class CandidateTimer {
 public:
  virtual ~CandidateTimer() = default;
  // Seconds per repetition, over `repetitions` of them back to back; nothing if the candidate fails.
  virtual std::optional<double> seconds(std::size_t candidate, int repetitions) = 0;
};

struct SearchLimits {
  double warmup_seconds = 0.02;  // with the first candidate that runs: an idle GPU takes this long to reach full clocks
  double budget_seconds = 0.1;   // time for all samples after each candidate's first two runs
  double sample_seconds = 200e-6;  // min length of a sample
  int max_repetitions = 120;       // per sample: limited by the launches that fit behind a device's gate
  int max_rounds = 15;
  double max_slowdown = 1.5;  // a candidate whose second run is slower than the fastest by this factor is dropped
};

// Finds the candidate with the smallest median over rounds in which all take turns, so that drift affects all equally.
// Among candidates within half a percent of it, it takes the first, so that noise does not make two runs differ.
// Nothing if all fail. The first that runs if by_heuristics().
std::optional<std::size_t> find_fastest(std::size_t count, CandidateTimer& timer, const SearchLimits& limits = {});

// Algorithms as text by key. Safe to use from several threads; several processes may share the folder.
class AlgorithmCache {
 public:
  // `owner` names what the algorithms are valid for: versions of library and driver, and device. Empty folder: no file
  // is kept. If a key has several lines, the last counts.
  AlgorithmCache(const std::filesystem::path& folder, const std::string& owner);

  // The cached algorithm for the key if `accept` takes it, which returns false if the library no longer offers it; else
  // the result of `search`, which is cached unless empty. One call at a time. Keys and algorithms must not contain tabs
  // or line ends.
  std::string find(const std::string& key, const std::function<bool(const std::string&)>& accept,
                   const std::function<std::string()>& search);
  std::size_t size() const;

 private:
  void read();
  void append(const std::string& key, const std::string& algorithm) const;

  std::filesystem::path file_;  // empty: none
  mutable std::mutex mutex_;
  std::map<std::string, std::string> known_;
};

}  // namespace assay::ops
