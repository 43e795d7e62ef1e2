// Small hand-made records for the tests of the scaling report.
#pragma once

#include "harness/runs/run_set.h"
#include "reports/scaling/series.h"
#include "tests/support/runs.h"

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace assay::report::scaling {

// `arm`: the interval's factor to either side; no interval for 1.
inline std::optional<Interval> interval(double seconds, double arm) {
  return arm > 1 ? std::optional(Interval{seconds / arm, seconds * arm}) : std::nullopt;
}

// A step of `seconds` at `ranks` ranks.
inline Record step_record(const std::string& scaling, int ranks, double seconds, double arm = 1) {
  Record record = test::record_of("transformer/model=gpt2-tiny/micro_batch=4/accumulate=2/scaling=" + scaling,
                                  {test::seconds("step_time", seconds, interval(seconds, arm))});
  record.params = {{"model", "gpt2-tiny"}, {"micro_batch", 4}, {"accumulate", 2}, {"scaling", scaling}};
  record.protocol = {{"form", "steps"}};
  record.world_ranks = ranks;
  return record;
}

// Points at these ranks, each with an interval of a factor `arm` to either side.
inline Series series_of(Mode mode, const std::vector<int>& ranks, const std::function<double(double)>& time,
                        double arm = 1) {
  Series series;
  series.mode = mode;
  for (const int n : ranks) {
    const double seconds = time(n);
    series.points.push_back({n, 1, {seconds, interval(seconds, arm)}, {}, {}});
  }
  return series;
}

inline double amdahl_time(double n) { return 10 * (0.2 + 0.8 / n); }

inline Record collective_record(const std::string& op, int ranks, double bytes, double seconds, double arm = 1) {
  const auto whole = static_cast<std::int64_t>(bytes);
  Record record =
      test::record_of(fmt::format("collective/op={}/bytes={}/dtype=f32/inplace=false/batching=batched", op, whole),
                      {test::seconds("latency", seconds, interval(seconds, arm))});
  record.params = {{"op", op}, {"bytes", whole}, {"dtype", "f32"}, {"inplace", false}, {"batching", "batched"}};
  record.world_ranks = ranks;
  return record;
}

using test::run_of;

inline std::vector<RunData> one_run(std::vector<Record> records) {
  std::vector<RunData> runs;
  runs.push_back(run_of(std::move(records)));
  return runs;
}

}  // namespace assay::report::scaling
