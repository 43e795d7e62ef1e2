// The JSON of pytest-benchmark and SuperBench. These files come from many versions: unknown members
// are left out.
#include "harness/core/error.h"
#include "harness/core/utc.h"
#include "harness/json/json.h"
#include "reports/exchange/foreign.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>

namespace assay::report {

namespace {

// From names such as "kernel-launch/event_time" or "bert_models/fp32_train_step_time": SuperBench has no units.
bool lower_is_better(std::string_view name) {
  constexpr std::array<std::string_view, 5> signs = {"time", "latency", "lat", "error", "ms"};
  return std::any_of(signs.begin(), signs.end(), [&](std::string_view sign) {
    const auto at = name.rfind(sign);
    return at != name.npos && (at == 0 || !std::isalpha(static_cast<unsigned char>(name[at - 1])));
  });
}

}  // namespace

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
