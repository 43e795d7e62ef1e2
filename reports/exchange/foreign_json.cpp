// The JSON of Google Benchmark, pytest-benchmark and SuperBench. These files come from many versions: unknown members
// are left out.
#include "harness/core/error.h"
#include "harness/core/utc.h"
#include "harness/json/json.h"
#include "reports/exchange/foreign.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

namespace assay::report {

namespace {

// "2026-01-31T12:00:00+01:00" or "...12:00:00.25" in UTC without fractions; empty if it is no such time.
std::string in_utc(const std::string& text) {
  std::tm parts{};
  const char* rest = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (!rest) rest = strptime(text.c_str(), "%Y-%m-%d %H:%M:%S", &parts);
  if (!rest) return "";
  if (*rest == '.')
    for (++rest; *rest >= '0' && *rest <= '9';) ++rest;
  std::time_t moment = timegm(&parts);
  int hours = 0, minutes = 0;
  if ((*rest == '+' || *rest == '-') && std::sscanf(rest + 1, "%2d:%2d", &hours, &minutes) == 2)
    moment -= (*rest == '-' ? -60 : 60) * (60 * hours + minutes);
  return utc_text(moment);
}

// From names such as "kernel-launch/event_time" or "bert_models/fp32_train_step_time": SuperBench has no units.
bool lower_is_better(std::string_view name) {
  constexpr std::array<std::string_view, 5> signs = {"time", "latency", "lat", "error", "ms"};
  return std::any_of(signs.begin(), signs.end(), [&](std::string_view sign) {
    const auto at = name.rfind(sign);
    return at != name.npos && (at == 0 || !std::isalpha(static_cast<unsigned char>(name[at - 1])));
  });
}

}  // namespace

ForeignFile read_gbench(const std::string& text, const std::string& file) {
  const Json json = parse_foreign_json(text, file);
  const Json& all = need_list(json, "/benchmarks", file, "Google Benchmark");
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
  }
  for (const auto& [place, name] : aggregates)
    if (!measured.contains(name))
      figures.not_read(place, name + " has only aggregates: run with --benchmark_report_aggregates_only=false");
  return figures.take();
}

ForeignFile read_pytest_benchmark(const std::string& text, const std::string& file) {
  const Json json = parse_foreign_json(text, file);
  ForeignFigure like;
  like.time = in_utc(text_member(json, "/datetime"));
  like.machine = text_member(json, "/machine_info/node");
  like.commit = text_member(json, "/commit_info/id");
  like.metric = "time", like.unit = "s", like.better = Better::lower;
  FigureCollector figures;
  std::size_t number = 0;
  for (const Json& one : need_list(json, "/benchmarks", file, "pytest-benchmark")) {
    const std::string place = fmt::format("benchmarks/{}", number++);
    like.name = text_member(one, "/fullname").empty() ? text_member(one, "/name") : text_member(one, "/fullname");
    const Json& data = member(one, "/stats/data");
    const auto median = number_member(one, "/stats/median");
    if (like.name.empty())
      figures.not_read(place, "has no name");
    else if (member(one, "/has_error") == Json(true))
      figures.add_without(like, Status::error, "it has an error");
    else if (data.is_array() && !data.empty())
      for (const Json& value : data)
        figures.add(like, value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN());
    else if (median)
      figures.add(like, *median);
    else
      figures.add_without(like, Status::error, "it has no time");
  }
  return figures.take();
}

ForeignFile read_superbench(const std::string& text, const std::string& file) {
  FigureCollector figures;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string place = fmt::format("line {}", number);
    const Json json = parse_foreign_json(line, fmt::format("{}: {}", file, place));
    if (!json.is_object() || !json.contains("node"))
      throw UsageError(fmt::format("{}: {}: not a machine of SuperBench: it has no member \"node\"", file, place));
    for (const auto& [name, value] : json.items()) {
      if (name == "node") continue;
      if (name.empty()) {
        figures.not_read(place, "a member has no name");
        continue;
      }
      ForeignFigure figure;
      figure.machine = text_member(json, "/node");
      figure.name = name;
      if (name.substr(name.rfind('/') + 1).starts_with("return_code")) {
        const std::optional<double> code = value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
        figure.check = Check{"return_code", code == 0.0, code, 0, {}};
        const std::string reason = code ? fmt::format("return code {:g}", *code) : "its return code is unknown";
        figures.add_without(figure, code == 0.0 ? Status::ok : Status::error, code == 0.0 ? "" : reason);
      } else if (value.is_number()) {
        figure.metric = "value";
        figure.unit = "1";
        figure.better = lower_is_better(name) ? Better::lower : Better::higher;
        figures.add(figure, value.get<double>());
      } else if (value.is_null()) {
        figures.add_without(figure, Status::error, "it has no figure: null or NaN");
      } else {
        figures.not_read(place, fmt::format("{} is {}, not a number", name, kind_of(value)));
      }
    }
  }
  return figures.take();
}

}  // namespace assay::report
