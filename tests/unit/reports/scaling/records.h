// Small hand-made records of the scaling report's tests.
#pragma once

#include "reports/data/run_set.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

namespace assay::report::scaling {

// A step of `seconds` at `ranks` ranks; its interval is a factor `arm` either way, absent for 1.
inline Record step_record(const std::string& scaling, int ranks, double seconds, double arm = 1) {
  Record record;
  record.family = "transformer";
  record.params = {{"model", "gpt2-tiny"}, {"micro_batch", 4}, {"accumulate", 2}, {"scaling", scaling}};
  record.key = "transformer/model=gpt2-tiny/micro_batch=4/accumulate=2/scaling=" + scaling;
  record.protocol = {{"form", "steps"}};
  record.world_ranks = ranks;
  Metric step{"step_time", seconds, "s", {}, Better::lower, {}, {}};
  if (arm > 1) step.ci95 = Interval{seconds / arm, seconds * arm};
  record.metrics.push_back(step);
  return record;
}

inline Record collective_record(const std::string& op, int ranks, double bytes, double seconds, double arm = 1) {
  Record record;
  record.family = "collective";
  const auto whole = static_cast<std::int64_t>(bytes);
  record.params = {{"op", op}, {"bytes", whole}, {"dtype", "f32"}, {"inplace", false}, {"batching", "batched"}};
  record.key = fmt::format("collective/op={}/bytes={}/dtype=f32/inplace=false/batching=batched", op, whole);
  record.world_ranks = ranks;
  Metric latency{"latency", seconds, "s", {}, Better::lower, {}, {}};
  if (arm > 1) latency.ci95 = Interval{seconds / arm, seconds * arm};
  record.metrics.push_back(latency);
  return record;
}

inline RunData run_of(std::vector<Record> records, const std::string& name = "r", Json run = {{"schema", 1}}) {
  RunData data;
  data.dir = name;
  data.run = std::move(run);
  data.records = std::move(records);
  return data;
}

inline std::vector<RunData> one_run(std::vector<Record> records) {
  std::vector<RunData> runs;
  runs.push_back(run_of(std::move(records)));
  return runs;
}

}  // namespace assay::report::scaling
