// Google Benchmark's JSON, from many versions: unknown members are left out.
#include "harness/core/error.h"
#include "harness/core/utc.h"
#include "harness/figures/mentions.h"
#include "harness/json/json.h"

#include <set>
#include <vector>

namespace assay {

namespace {

// With `every`, also the CPU time and the user's counters, which have no unit.
ForeignFile read_benchmarks(const Json& json, const Json& all, bool every) {
  ForeignFigure like;
  like.time = in_utc(text_member(json, "/context/date"));
  like.machine = text_member(json, "/context/host_name");
  FigureCollector figures;
  std::set<std::string> measured;
  std::vector<std::pair<std::string, std::string>> aggregates;  // place, name
  std::size_t number = 0;
  for (const Json& one : all) {
    const std::string place = fmt::format("benchmarks/{}", number++);
    like.name = text_member(one, "/run_name").empty() ? text_member(one, "/name") : text_member(one, "/run_name");
    if (like.name.empty()) {
      figures.not_read(place, "has no name");
      continue;
    }
    if (text_member(one, "/run_type") == "aggregate") {
      aggregates.emplace_back(place, like.name);
      continue;
    }
    measured.insert(like.name);
    const std::string error = text_member(one, "/error_message"), skip = text_member(one, "/skip_message");
    if (member(one, "/error_occurred") == Json(true) || !error.empty()) {
      figures.add_without(like, Status::error, error.empty() ? "it says no more than that an error occurred" : error);
      continue;
    }
    if (member(one, "/skipped") == Json(true) || !skip.empty()) {
      figures.add_without(like, Status::skipped, skip);
      continue;
    }
    const std::string unit = text_member(one, "/time_unit");
    const double scale = unit == "s" ? 1 : unit == "ms" ? 1e-3 : unit == "us" ? 1e-6 : 1e-9;
    like.metric = "real_time", like.unit = "s", like.better = Better::lower;
    const auto time = number_member(one, "/real_time");
    if (!time || number_member(one, "/iterations") == 0.0) {
      figures.add_without(like, Status::error, time ? "it ran no iteration" : "it has no real_time");
      continue;
    }
    figures.add(like, scale * *time);
    like.better = Better::higher;
    for (const auto& [name, rate] : {std::pair{"items_per_second", "items/s"}, {"bytes_per_second", "B/s"}}) {
      like.metric = name, like.unit = rate;
      if (const auto value = number_member(one, std::string("/") + name)) figures.add(like, *value);
    }
    for (const auto& [name, value] : one.items()) {
      if (!every || !value.is_number() || name == "real_time" || name.ends_with("s_per_second")) continue;
      const bool cpu_time = name == "cpu_time";
      like.metric = name, like.unit = cpu_time ? "s" : "", like.better = cpu_time ? Better::lower : Better::higher;
      figures.add(like, value.get<double>() * (cpu_time ? scale : 1));
    }
  }
  for (const auto& [place, name] : aggregates)
    if (!measured.contains(name))
      figures.not_read(place, name + " has only aggregates: run with --benchmark_report_aggregates_only=false");
  return figures.take();
}

}  // namespace

ForeignFile read_gbench(const std::string& text, const std::string& file) {
  const Json json = parse_foreign_json(text, file);
  return read_benchmarks(json, need_list(json, "/benchmarks", file, "Google Benchmark"), false);
}

void each_gbench_mention(const Json& benchmarks, const MentionSink& add) {
  for (const ForeignFigure& one : read_benchmarks(nullptr, benchmarks, true).figures) {
    Mention found{fmt::format("gbench:{}:{}", one.name, one.metric)};
    found.case_name = one.name, found.metric = one.metric;
    if (!one.unit.empty()) found.unit = one.unit, found.better = one.better;
    if (one.status != Status::ok) found.not_a_number = fmt::format("{}: {}", name_of(one.status), one.reason);
    for (const double value : one.values) found.value = value, add(Mention(found));
    if (one.values.empty()) add(std::move(found));
  }
}

}  // namespace assay
