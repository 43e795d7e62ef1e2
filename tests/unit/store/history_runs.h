// Runs made by hand, with what the store needs: an id, a time, a host.
#pragma once

#include "harness/history/store/store.h"
#include "tests/support/runs.h"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace assay::test {

inline Record timed(const std::string& key, double seconds_per_call) {
  Record record =
      record_of(key, {seconds("time", seconds_per_call, Interval{0.98 * seconds_per_call, 1.02 * seconds_per_call})});
  record.protocol = Json{{"hash", "p1"}};
  record.choices = {{"isa", "avx512"}};
  return record;
}

inline RunData history_run(const std::string& id, const std::string& started, std::vector<Record> records,
                           const std::string& host = "box") {
  return run_of(std::move(records), id,
                {{"schema", 2},
                 {"id", id},
                 {"started", started},
                 {"finished", started},
                 {"git", {{"commit", "c-" + id}, {"dirty", false}}},
                 {"environment", {{"hostnames", {host}}, {"cpu", {{"name", "AMD Zen 4"}}}, {"load", 0.5}}}});
}

// A run of that night, counted from 2026-01-01.
inline RunData night_run(int night, double seconds_per_call, const std::string& host = "box") {
  return history_run(fmt::format("{}-{}", host, night), fmt::format("2026-01-{:02}T03:00:00Z", night + 1),
                     {timed("gemm/m=1", seconds_per_call), timed("gemm/m=2", 2 * seconds_per_call)}, host);
}

}  // namespace assay::test
