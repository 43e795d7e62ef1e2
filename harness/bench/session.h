// One case kept set up while Google Benchmark calls it with growing numbers of iterations.
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

  // Sets case `index` up, unless it still is; the one before is released first. Returns why it cannot run here.
  std::optional<std::string> open(std::size_t index);
  // Measures about `iterations` repetitions (items, of a loader); returns one time in seconds an iteration.
  std::vector<double> measure(std::int64_t iterations);
  // What was wrong with the answer of the last measure(); absent when it was right.
  std::optional<std::string> fault();
  // Figures of the last measure().
  std::vector<Metric> metrics();
  // Implementation and instruction set, where the case says them.
  std::string label() const;
  // Gives the case up after something broke.
  void close();

 private:
  struct Open;

  const BenchRequest& request_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Communicator> comm_;
  std::unique_ptr<Open> open_;
};

// The times of `iterations` iterations: each of `values` (seconds a repetition) stands for the `each` that it spanned;
// where there are fewer than asked for, they are taken again from the first.
std::vector<double> spread(const std::vector<double>& values, std::int64_t each, std::int64_t iterations);

}  // namespace assay::bench
