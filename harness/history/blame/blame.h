// Possible causes of an event: the facts that changed where it happened, and where else they changed.
#pragma once

#include "harness/history/series/tracked.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace assay::history {

struct Cause {
  std::string fact;           // "gpu.driver", "choice.isa", "commit"
  std::string before, after;  // empty: the fact was not there
  double p =
      1;  // Fisher's exact test, one-sided: changed or not against slowed or not; over machines, times over series
  std::string evidence = {};                    // "changed on 2 of 2 machines that changed speed, and on 0 of 1 others"
  std::vector<std::string> exonerated_by = {};  // machines where it changed and nothing slowed

  static void members(auto& self, auto& io) {
    io("fact", self.fact), io.null_if_empty("before", self.before), io.null_if_empty("after", self.after);
    io("p", self.p), io("evidence", self.evidence), io("exonerated_by", self.exonerated_by);
  }
};

struct Blame {
  std::vector<Cause> causes;      // best first; causes with equal p cannot be told apart
  std::vector<Cause> exonerated;  // changed elsewhere without effect
  std::vector<Cause> mediators;   // clock, power, throttling: they changed too, but what changed them?
  std::string sentence;  // "the driver (gpu.driver 580.65 -> 581.10), most likely" or "no recorded fact changed"
};

// The event to explain.
struct Effect {
  Night last_before = 0;
  Night first_after = 0;
  bool slower = true;
  std::vector<std::size_t> series;  // the series that changed: indices of tracked series
};

// Machines that ran none of the effect's cases count for nothing. `states`, in the order of `series`, show which
// other series changed.
Blame blame(const Effect& effect, const store::Contents& contents, std::span<const TrackedSeries> series,
            std::span<const SeriesState> states);

// P(at least `both` of `changed` among `slowed`), of `all`: the hypergeometric tail.
double fisher(std::size_t all, std::size_t slowed, std::size_t changed, std::size_t both);

}  // namespace assay::history
