// Made-up noise between nights.
#pragma once

#include "harness/core/rng.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace assay::history {

// Random numbers one after another.
class Stream {
 public:
  Stream(std::uint64_t seed, std::string_view purpose) : rng_(seed, purpose) {}
  double uniform() { return rng_.uniform(index_++); }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  double normal() { return rng_.normal(index_++); }
  bool chance(double p) { return uniform() < p; }
  double exponential();
  int whole(int low, int high);  // low to high, both included
  double student(int freedom);   // Student's t

 private:
  Rng rng_;
  std::uint64_t index_ = 0;
};

enum class Kind {
  iid,      // independent, normal
  ar,       // autoregressive, correlation .5
  t3,       // independent, Student's t with 3 degrees of freedom
  outl,     // autoregressive, correlation .2, and one night in 14 an outlier of 3 to 10 standard deviations
  mixed,    // a stand-in for benchmarks on real machines: every series has its own mixture, described at mixed_noise()
  modes,    // a second level 3 to 5 standard deviations away, entered about every 50 nights for 1 to 14
  common,   // independent between nights, but correlated .3 between the series of a night
  ar3,      // autoregressive, correlation .3
  drift,    // normal, on a line that rises or falls by up to 10 standard deviations a year
  weekday,  // normal; two nights of seven are 1 to 4 standard deviations away
};

std::string_view name_of(Kind kind);

// Noise of one series, of a robust standard deviation of about 1. `common` is what all series of the kind `common`
// share.
std::vector<double> noise_of(Kind kind, std::size_t length, std::uint64_t seed, const std::vector<double>& common = {});

}  // namespace assay::history
