// Keeps one case set up while Google Benchmark calls it with more and more iterations.
#pragma once

#include "harness/bench/bench.h"
#include "harness/plan/case.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace assay::bench {

class Session {
 public:
  // `request` must outlive the session.
  explicit Session(const BenchRequest& request);
  ~Session();

  // Sets up case `index`, unless it still is, after releasing the previous one. Returns why it cannot run here.
  std::optional<std::string> open(std::size_t index);
  // Measures about `iterations` repetitions (items, of a loader); returns a time in seconds per iteration.
  std::vector<double> measure(std::int64_t iterations);
  // The error in the answer of the last measure(); nullopt if the answer was right.
  std::optional<std::string> fault();
  // Metrics of the last measure().
  std::vector<Metric> metrics();
  // Implementation and instruction set, if the case reports them.
  std::string label() const;
  // Releases the case, also after an error.
  void close();

 private:
  struct Open;

  const BenchRequest& request_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Communicator> comm_;
  std::unique_ptr<Open> open_;
};

// The times of `iterations` iterations: each of `values` (seconds per repetition) is repeated for the `each` iterations
// that it covers; starts over from the first if there are too few.
std::vector<double> spread(const std::vector<double>& values, std::int64_t each, std::int64_t iterations);

}  // namespace assay::bench
