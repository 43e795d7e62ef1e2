// A cheap test before the two keys.
#pragma once

#include "harness/history/detect/noise.h"

#include "harness/statistics/distributions.h"

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace assay::history {

inline constexpr double gate_p = 0.02;

// Whether key 2 may come near passing, with noise known only as of the last estimate: cheap, as each value is scored
// once.
class Gate {
 public:
  Gate() = default;  // everything passes
  // Scores the values from index `first` on.
  Gate(Reference reference, std::size_t first) : reference_(std::move(reference)), first_(first) {}

  // `values`: all up to now.
  void score(std::span<const double> values) {
    if (!reference_) return;
    while (first_ + sums_.size() <= values.size())
      sums_.push_back(sums_.back() + reference_->score(values[first_ + sums_.size() - 1]));
  }
  // Tests the last m scored nights, whose mean has this variance.
  bool passes(std::size_t m, double variance) const {
    if (!reference_) return true;
    const double mean = (sums_.back() - sums_[sums_.size() - 1 - m]) / static_cast<double>(m);
    static const double bound = normal_quantile(1 - gate_p / 2);
    return mean * mean > bound * bound * variance;
  }

 private:
  std::optional<Reference> reference_;
  std::size_t first_ = 0;
  std::vector<double> sums_ = {0};
};

}  // namespace assay::history
