// JSON of other tools. These files come from many versions: unknown members are left out.
#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/figures/direction.h"
#include "harness/json/json.h"
#include "reports/exchange/foreign.h"

#include <fmt/format.h>

#include <limits>
#include <optional>

namespace assay::report {

namespace {

double number_or_nan(const Json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

// The numbers of a list; others are NaN.
std::vector<double> numbers_of(const Json& list) {
  std::vector<double> values;
  if (list.is_array())
    for (const Json& value : list) values.push_back(number_or_nan(value));
  return values;
}

void add_all(FigureCollector& figures, const ForeignFigure& like, const std::vector<double>& values) {
  for (const double value : values) figures.add(like, value);
}

// What a file says of the processor and the software of its machine.
Json pytest_environment(const Json& machine) {
  Json environment = Json::object();
  const auto copy = [&](const char* from, const char* to) {
    if (const Json& value = member(machine, from); !value.is_null()) environment[Json::json_pointer(to)] = value;
  };
  copy("/cpu/brand_raw", "/cpu/brand"), copy("/cpu/brand", "/cpu/brand");
  copy("/cpu/brand_raw", "/cpu/name"), copy("/cpu/brand", "/cpu/name");
  copy("/cpu/count", "/cpu/usable_cpus");
  for (const char* cache : {"l2_cache_size", "l3_cache_size"})
    copy(fmt::format("/cpu/{}", cache).c_str(), fmt::format("/cpu/{}", cache).c_str());
  copy("/cpu/hz_advertised_friendly", "/cpu/clock"), copy("/cpu/arch", "/cpu/architecture");
  copy("/python_version", "/libraries/python"), copy("/system", "/os/name"), copy("/release", "/os/kernel");
  return environment;
}

}  // namespace

ForeignFile read_pytest_benchmark(const ForeignInput& input) {
  const std::string text = input.text();
  const Json json = parse_foreign_json(text, input.file);
  FigureCollector figures;
  ForeignContext about;
  about.time = figures.time(text_member(json, "/datetime"), text, input.file);
  about.machine = text_member(json, "/machine_info/node");
  about.commit = text_member(json, "/commit_info/id");
  if (const std::string branch = text_member(json, "/commit_info/branch"); !branch.empty())
    about.facts["branch"] = branch;
  if (member(json, "/commit_info/dirty") == Json(true)) about.facts["dirty"] = "true";
  for (const char* fact : {"python_implementation", "python_compiler", "machine", "processor"})
    if (const std::string value = text_member(json, fmt::format("/machine_info/{}", fact)); !value.empty())
      about.facts[fact] = value;
  if (const std::string version = text_member(json, "/version"); !version.empty())
    about.facts["pytest_benchmark"] = version;
  if (Json environment = pytest_environment(member(json, "/machine_info")); !environment.empty())
    about.environment = std::move(environment);
  figures.measured(about);
  std::size_t number = 0;
  for (const Json& one : need_list(json, "/benchmarks", input.file, "pytest-benchmark")) {
    const std::string place = fmt::format("benchmarks/{}", number++);
    ForeignFigure like;
    like.metric = "time", like.unit = "s", like.better = Better::lower;
    like.name = text_member(one, "/fullname").empty() ? text_member(one, "/name") : text_member(one, "/fullname");
    if (const std::string group = text_member(one, "/group"); !group.empty()) like.labels["group"] = group;
    for (const char* count : {"rounds", "iterations"})
      if (const auto value = number_member(one, fmt::format("/stats/{}", count)))
        like.labels[count] = fmt::format("{:g}", *value);
    const std::vector<double> data = numbers_of(member(one, "/stats/data"));
    const auto median = number_member(one, "/stats/median");
    if (like.name.empty()) {
      figures.not_read(place, "has no name");
    } else if (member(one, "/has_error") == Json(true)) {
      figures.add_without(like, Status::error, "it has an error");
    } else if (!data.empty()) {
      add_all(figures, like, data);
    } else if (median) {
      // As of a normal distribution, in which a quartile is 0.674 standard deviations from the median.
      const auto q1 = number_member(one, "/stats/q1"), q3 = number_member(one, "/stats/q3"),
                 rounds = number_member(one, "/stats/rounds");
      if (q1 && q3 && rounds && *rounds > 1 && *q1 <= *median && *median <= *q3) {
        const double half = 1.959964 * 1.253314 * (*q3 - *q1) / (2 * 0.674490) / std::sqrt(*rounds);
        like.ci95 = Interval{*median - half, *median + half};
      }
      figures.add(like, *median);
    } else {
      figures.add_without(like, Status::error, "it has no time");
    }
  }
  return figures.take();
}

// {"results": [{"command": "sleep 1", "times": [...], "exit_codes": [0, ...], "parameters": {...}}]}
ForeignFile read_hyperfine(const ForeignInput& input) {
  const Json json = parse_foreign_json(input.text(), input.file);
  FigureCollector figures;
  std::size_t number = 0;
  for (const Json& one : need_list(json, "/results", input.file, "hyperfine")) {
    const std::string place = fmt::format("results/{}", number++);
    ForeignFigure like;
    like.name = text_member(one, "/command");
    if (like.name.empty()) {
      figures.not_read(place, "has no command");
      continue;
    }
    if (const Json& parameters = member(one, "/parameters"); parameters.is_object())
      for (const auto& [name, value] : parameters.items()) like.conditions[name] = scalar_text(value);
    std::optional<double> failed;
    for (const double code : numbers_of(member(one, "/exit_codes")))
      if (!failed && code != 0) failed = code;
    if (member(one, "/exit_codes").is_array()) like.check = Check{"exit_code", !failed, failed.value_or(0), 0, {}};
    if (failed) like.status = Status::error, like.reason = fmt::format("exit code {:g}", *failed);
    like.metric = "time", like.unit = "s", like.better = Better::lower;
    std::vector<double> times = numbers_of(member(one, "/times"));
    if (const auto median = number_member(one, "/median"); times.empty() && median) times = {*median};
    if (times.empty()) figures.add_without(like, Status::error, "it has no time");
    add_all(figures, like, times);
  }
  return figures.take();
}

// {"NAME": {"MEASURE": {"value": 1, "lower_value": 0.9, "upper_value": 1.1}}}
ForeignFile read_bmf(const ForeignInput& input) {
  const Json json = parse_foreign_json(input.text(), input.file);
  if (!json.is_object()) throw UsageError(fmt::format("{}: not Bencher Metric Format: it is no object", input.file));
  FigureCollector figures;
  for (const auto& [name, measures] : json.items()) {
    if (name.empty() || !measures.is_object()) {
      figures.not_read(in_quotes(name), fmt::format("is {}, not an object of measures", kind_of(measures)));
      continue;
    }
    for (const auto& [metric, one] : measures.items()) {
      const auto value = number_member(one, "/value"), low = number_member(one, "/lower_value"),
                 high = number_member(one, "/upper_value");
      ForeignFigure figure;
      figure.name = name;
      if (metric.empty() || !value) {
        figures.not_read(in_quotes(name), fmt::format("{} has no value", in_quotes(metric)));
        continue;
      }
      figure.metric = metric, figure.unit = "1", figure.better = guessed_better(metric), figure.guessed = true;
      if (low && high && *low <= *value && *value <= *high) figure.ci95 = Interval{*low, *high};
      figures.add(std::move(figure), *value);
    }
  }
  if (figures.empty())
    throw UsageError(fmt::format(
        "{}: not Bencher Metric Format: it has no {{\"NAME\": {{\"MEASURE\": {{\"value\": 1}}}}}}", input.file));
  return figures.take();
}

}  // namespace assay::report
