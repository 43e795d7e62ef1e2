// Which algorithm of a library is fastest for a product: the search by time, and what searches found, kept for the
// process and, in a folder, for the next ones, so that two runs of one machine use the same.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace assay::ops {

// Times candidates 0 .. count - 1.
class CandidateTimer {
 public:
  virtual ~CandidateTimer() = default;
  // Seconds of one repetition, over `repetitions` of them back to back; nothing where the candidate fails.
  virtual std::optional<double> seconds(std::size_t candidate, int repetitions) = 0;
};

struct SearchLimits {
  double warmup_seconds = 0.02;    // of the first candidate that runs: a GPU that idled takes that long to full clocks
  double budget_seconds = 0.1;     // of all samples after each candidate's first two runs
  double sample_seconds = 200e-6;  // that a sample spans at least
  int max_repetitions = 120;       // a sample: no more launches than fit behind a device's gate
  int max_rounds = 15;
  double hopeless = 1.5;  // a candidate whose second run takes that many times the least is not timed again
};

// The candidate with the least median over rounds in which all take turns, so that drift hits them alike; of those
// within half a percent of the least the first, lest noise make two runs differ. Nothing where all fail.
std::optional<std::size_t> find_fastest(std::size_t count, CandidateTimer& timer, const SearchLimits& limits = {});

// Algorithms as text by key. Safe to use from several threads; several processes may share the folder.
class AlgorithmCache {
 public:
  // `owner` is what the algorithms are valid for: library version and device. Empty folder: this process alone.
  AlgorithmCache(const std::filesystem::path& folder, const std::string& owner);

  // What is known for the key, or what `search` finds, which is called at most once at a time and its answer kept
  // unless it is empty. Keys and algorithms hold neither tabs nor line ends.
  std::string find(const std::string& key, const std::function<std::string()>& search);
  // Drops what is known for the key, in this process (a library that refuses it, say).
  void forget(const std::string& key);
  std::size_t size() const;

 private:
  void read();
  void append(const std::string& key, const std::string& algorithm) const;

  std::filesystem::path file_;  // empty: none
  mutable std::mutex mutex_;
  std::map<std::string, std::string> known_;
};

}  // namespace assay::ops
