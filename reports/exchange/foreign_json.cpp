// The JSON of Google Benchmark, pytest-benchmark, nccl-tests and SuperBench. Members that are absent or of another type
// are left out: these files come from many versions.
#include "harness/core/error.h"
#include "harness/core/utc.h"
#include "harness/json/json.h"
#include "reports/exchange/foreign.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>
#include <string_view>

namespace assay::report {

namespace {

Json parse_file(const std::string& text, const std::string& file) {
  try {
    return parse_untrusted(text);
  } catch (const Error& error) {
    throw UsageError(fmt::format("{}: {}", file, error.what()));
  }
}

// An array of objects at the pointer, which makes the file one of this tool's.
const Json& need_list(const Json& json, const char* pointer, const std::string& file, const char* tool) {
  const Json& list = member(json, pointer);
  if (!list.is_array()) throw UsageError(fmt::format("{}: not {}'s JSON: it has no list {}", file, tool, pointer));
  return list;
}

// Adds a value to the figure of this case and metric, or begins it.
void add_value(std::vector<ForeignFigure>& figures, const ForeignFigure& like, double value) {
  if (!std::isfinite(value)) return;
  const auto same = std::find_if(figures.begin(), figures.end(), [&](const ForeignFigure& one) {
    return one.name == like.name && one.metric == like.metric;
  });
  if (same != figures.end())
    same->values.push_back(value);
  else
    figures.push_back(like), figures.back().values = {value};
}

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

std::vector<ForeignFigure> read_gbench(const std::string& text, const std::string& file) {
  const Json json = parse_file(text, file);
  const Json& all = need_list(json, "/benchmarks", file, "Google Benchmark");
  ForeignFigure like;
  like.time = in_utc(text_member(json, "/context/date"));
  like.machine = text_member(json, "/context/host_name");
  std::vector<ForeignFigure> figures;
  for (const Json& one : all) {
    if (text_member(one, "/run_type") == "aggregate" || member(one, "/error_occurred") == Json(true)) continue;
    like.name = text_member(one, "/run_name").empty() ? text_member(one, "/name") : text_member(one, "/run_name");
    const std::string unit = text_member(one, "/time_unit");
    const double scale = unit == "s" ? 1 : unit == "ms" ? 1e-3 : unit == "us" ? 1e-6 : 1e-9;
    like.metric = "real_time", like.unit = "s", like.better = Better::lower;
    if (const auto time = number_member(one, "/real_time")) add_value(figures, like, scale * *time);
    like.better = Better::higher;
    for (const auto& [name, rate] : {std::pair{"items_per_second", "items/s"}, {"bytes_per_second", "B/s"}}) {
      like.metric = name, like.unit = rate;
      if (const auto value = number_member(one, std::string("/") + name)) add_value(figures, like, *value);
    }
  }
  return figures;
}

std::vector<ForeignFigure> read_pytest_benchmark(const std::string& text, const std::string& file) {
  const Json json = parse_file(text, file);
  ForeignFigure like;
  like.time = in_utc(text_member(json, "/datetime"));
  like.machine = text_member(json, "/machine_info/node");
  like.commit = text_member(json, "/commit_info/id");
  like.metric = "time", like.unit = "s", like.better = Better::lower;
  std::vector<ForeignFigure> figures;
  for (const Json& one : need_list(json, "/benchmarks", file, "pytest-benchmark")) {
    like.name = text_member(one, "/fullname").empty() ? text_member(one, "/name") : text_member(one, "/fullname");
    const Json& data = member(one, "/stats/data");
    if (data.is_array() && !data.empty()) {
      for (const Json& value : data)
        if (value.is_number()) add_value(figures, like, value.get<double>());
    } else if (const auto median = number_member(one, "/stats/median")) {
      add_value(figures, like, *median);
    }
  }
  return figures;
}

std::vector<ForeignFigure> read_nccl_tests(const std::string& text, const std::string& file) {
  constexpr double giga = 1e9;
  std::vector<ForeignFigure> figures;
  ForeignFigure like;
  like.unit = "B/s";
  const auto add = [&](const std::string& test, const char* place, double algbw, double busbw) {
    like.name = fmt::format("{}/{}", test, place);
    like.metric = "busbw", add_value(figures, like, giga * busbw);
    like.metric = "algbw", add_value(figures, like, giga * algbw);
  };
  if (const auto first = text.find_first_not_of(" \t\r\n"); first != std::string::npos && text[first] == '{') {
    const Json json = parse_file(text, file);
    for (const Json& row : need_list(json, "/results", file, "nccl-tests")) {
      const auto size = number_member(row, "/size");
      if (!size) continue;
      const std::string test = fmt::format("{}/{}/{}/bytes={:.0f}", std::filesystem::path(file).stem().string(),
                                           text_member(row, "/type"), text_member(row, "/redop"), *size);
      for (const char* place : {"out_of_place", "in_place"}) {
        const Json& half = member(row, std::string("/") + place);
        const auto algbw = number_member(half, "/alg_bw"), busbw = number_member(half, "/bus_bw");
        if (algbw && busbw && number_member(half, "/nwrong").value_or(0) == 0) add(test, place, *algbw, *busbw);
      }
    }
    return figures;
  }
  // size count type redop root, then time algbw busbw #wrong out of place and in place.
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    double size = 0, count = 0, root = 0;
    std::string type, redop;
    if (line.find('#') != std::string::npos || !(words >> size >> count >> type >> redop >> root)) continue;
    const std::string test =
        fmt::format("{}/{}/{}/bytes={:.0f}", std::filesystem::path(file).stem().string(), type, redop, size);
    for (const char* place : {"out_of_place", "in_place"}) {
      double time = 0, algbw = 0, busbw = 0;
      std::string wrong;
      if (!(words >> time >> algbw >> busbw >> wrong)) break;
      if (wrong == "0" || wrong == "N/A") add(test, place, algbw, busbw);
    }
  }
  if (figures.empty()) throw UsageError(fmt::format("{}: no table and no JSON of nccl-tests", file));
  return figures;
}

std::vector<ForeignFigure> read_superbench(const std::string& text, const std::string& file) {
  std::vector<ForeignFigure> figures;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Json json = parse_file(line, fmt::format("{}: line {}", file, number));
    if (!json.is_object() || !json.contains("node"))
      throw UsageError(
          fmt::format("{}: line {}: not a machine of SuperBench: it has no member \"node\"", file, number));
    ForeignFigure figure;
    figure.machine = text_member(json, "/node");
    for (const auto& [name, value] : json.items()) {
      if (!value.is_number() || name.find("return_code") != std::string::npos) continue;
      figure.name = name;
      figure.metric = "value";
      figure.unit = "1";
      figure.better = lower_is_better(name) ? Better::lower : Better::higher;
      figure.values = {value.get<double>()};
      if (std::isfinite(figure.values.front())) figures.push_back(figure);
    }
  }
  return figures;
}

}  // namespace assay::report
