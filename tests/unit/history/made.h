// Histories made by hand: machines, cases, nights.
#pragma once

#include "harness/core/rng.h"
#include "harness/history/history.h"
#include "harness/history/series/kept.h"

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace assay::history::test {

inline constexpr Night first_night = 20000;  // 2024-10-04

// The store's contents, built night by night.
class Made {
 public:
  store::Contents contents;

  Made() { contents.facts.emplace_back(); }

  std::int32_t facts(store::Facts facts) {
    for (std::size_t i = 0; i < contents.facts.size(); ++i)
      if (contents.facts[i] == facts) return static_cast<std::int32_t>(i);
    contents.facts.push_back(std::move(facts));
    return static_cast<std::int32_t>(contents.facts.size()) - 1;
  }

  store::Run& run(const std::string& machine, int night, store::Facts known = {}, const std::string& commit = "") {
    store::Run run;
    run.number = static_cast<std::int64_t>(contents.runs.size()) + 1;
    run.id = machine + "-" + std::to_string(run.number);
    run.machine = machine;
    run.night = first_night + night;
    run.facts = facts(std::move(known));
    run.commit = commit;
    contents.runs.push_back(run);
    return contents.runs.back();
  }

  store::Series& series(const std::string& machine, const std::string& key, Better better = Better::higher,
                        const std::string& protocol = "p") {
    for (store::Series& one : contents.series)
      if (one.identity.machine == machine && one.identity.key == key && one.identity.protocol == protocol) return one;
    store::Series one;
    one.number = static_cast<std::int64_t>(contents.series.size()) + 1;
    one.identity.machine = machine;
    one.identity.key = key;
    one.identity.metric = "throughput";
    one.identity.unit = "FLOP/s";
    one.identity.better = better;
    one.identity.protocol = protocol;
    one.identity.family = key.substr(0, key.find('/'));
    one.name = key + " throughput";
    contents.series.push_back(one);
    return contents.series.back();
  }

  // A figure of the newest run.
  void point(store::Series& of, double figure, store::Facts choices = {}, bool disturbed = false) {
    const store::Run& run = contents.runs.back();
    of.points.push_back({run.number, run.night, std::log(figure), 0.01f, facts(std::move(choices)), disturbed});
  }
};

// 1 % of noise, the same on every call.
inline double noise(int series, int night) {
  return 0.01 * Rng(7, "noise").normal(static_cast<std::uint64_t>(series) * 10000 + static_cast<std::uint64_t>(night));
}

inline History history_of(const store::Contents& contents, Options options = {}) {
  History history;
  history.contents = contents;
  history.series = tracked_series(contents);
  history.groups = tracked_groups(history.series);
  history.options = options;
  std::string kept;
  history.analysis = analyse_from(kept, history.series, history.groups, options);
  return judged(std::move(history));
}

}  // namespace assay::history::test
