// Small hand-made records of the scaling report's tests.
#pragma once

#include "reports/data/run_set.h"
#include "tests/support/runs.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace assay::report::scaling {

// `arm`: the interval's factor either way; no interval for 1.
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
