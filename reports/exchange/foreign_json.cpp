// JSON of other tools. These files come from many versions: unknown members are left out.
#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/figures/direction.h"
#include "harness/figures/quantity.h"
#include "harness/json/json.h"
#include "reports/exchange/foreign.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

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

// A test case has a matrix of devices, in text; "N/A" is no pair. A test that did not run says why in "status".
ForeignFile read_nvbandwidth(const ForeignInput& input) {
  const Json json = parse_foreign_json(input.text(), input.file);
  FigureCollector figures;
  ForeignContext about;
  const Json& root = member(json, "/nvbandwidth");
  Json environment = Json::object();
  if (const Json& driver = member(root, "/Driver Version"); !driver.is_null())
    environment["drivers"]["nvidia"] = scalar_text(driver);
  if (const auto cuda = number_member(root, "/CUDA Runtime Version"))
    environment["libraries"]["cuda"] =
        fmt::format("{:.0f}.{:.0f}", std::floor(*cuda / 1000), std::fmod(*cuda, 1000) / 10);
  for (const char* version : {"version", "git_version"})
    if (const std::string value = text_member(root, fmt::format("/{}", version)); !value.empty())
      environment["libraries"]["nvbandwidth"] = value;
  if (const Json& devices = member(root, "/GPU Device list"); devices.is_array())
    for (const Json& device : devices) {
      // "0: NVIDIA H100 80GB HBM3 (00000008:01:00)"
      std::string name = scalar_text(device);
      name = name.substr(std::min(name.find(": ") + 2, name.size()));
      name = name.substr(0, name.find_first_of("(:"));
      while (name.ends_with(' ')) name.pop_back();
      environment["gpus"].push_back({{"name", name}});
    }
  if (!environment.empty()) about.environment = std::move(environment);
  figures.measured(about);
  ForeignWorld gpus;
  gpus.device = "cuda";
  const auto world = std::make_shared<const ForeignWorld>(gpus);
  const std::string error = text_member(root, "/error");
  for (const Json& one : need_list(json, "/nvbandwidth/testcases", input.file, "nvbandwidth")) {
    ForeignFigure like;
    like.name = text_member(one, "/name"), like.world = world;
    if (like.name.empty()) {
      figures.not_read("testcases", "a test has no name");
      continue;
    }
    const std::string status = text_member(one, "/status"), why = text_member(one, "/error");
    if (status != "Passed" && !status.empty()) {
      const bool skipped = status == "Waived" || status == "Not Found";
      std::string reason = why.empty() && !skipped ? error : why;
      figures.add_without(like, skipped ? Status::skipped : Status::error,
                          reason.empty() ? fmt::format("its status is {}", status) : reason);
      continue;
    }
    const std::string what = text_member(one, "/bandwidth_description");
    const std::size_t open = what.rfind('('), close = what.rfind(')');
    const auto unit =
        open < close && close != what.npos ? base_unit(what.substr(open + 1, close - open - 1)) : std::nullopt;
    const bool latency = unit ? unit->name == "s" : what.find("latency") != what.npos;
    like.metric = latency ? "latency" : "bandwidth";
    like.unit = unit ? unit->name : "1", like.better = latency ? Better::lower : Better::higher;
    if (!what.empty()) like.labels["description"] = what.substr(0, open);
    const auto add = [&](const std::string& place, const Json& value) {
      std::optional<double> number;
      if (value.is_string()) number = number_from(value.get_ref<const std::string&>());
      if (value.is_number()) number = value.get<double>();
      if (value == Json("N/A") || value.is_null()) return;
      ForeignFigure figure = like;
      figure.name += place;
      if (number)
        figures.add(std::move(figure), *number * (unit ? unit->scale : 1));
      else
        figures.add_without(std::move(figure), Status::error,
                            fmt::format("its figure is {}", in_quotes(scalar_text(value))));
    };
    const Json& matrix = member(one, "/bandwidth_matrix");
    if (!latency) add("", member(one, "/sum"));
    if (!matrix.is_array()) continue;
    for (std::size_t row = 0; row < matrix.size(); ++row)
      for (std::size_t column = 0; matrix[row].is_array() && column < matrix[row].size(); ++column)
        add(fmt::format("/row={}/column={}", row, column), matrix[row][column]);
  }
  if (figures.empty() && !error.empty()) {
    ForeignFigure whole;
    whole.name = "nvbandwidth";
    figures.add_without(whole, Status::error, error);
  }
  return figures.take();
}

}  // namespace assay::report
