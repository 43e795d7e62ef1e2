// airspeed velocity: the results of one commit and environment, in the two forms that it has written.
#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/figures/direction.h"
#include "harness/json/json.h"
#include "reports/exchange/foreign.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace assay::report {

namespace {

// The kind of a benchmark is the begin of its name: "suite.TimeSuite.time_sort", "mem_list", "peakmem_read", "track_x".
void set_kind(ForeignFigure& figure, const std::string& name) {
  const std::string last = name.substr(name.rfind('.') + 1);
  figure.better = Better::lower;
  if (last.starts_with("mem_") || last.starts_with("peakmem_")) {
    figure.metric = "memory", figure.unit = "B";
  } else if (last.starts_with("track_")) {
    figure.metric = "value", figure.unit = "1";
    figure.better = guessed_better(last.substr(6)), figure.guessed = true;
  } else {
    figure.metric = "time", figure.unit = "s";
  }
}

// A member of a benchmark's results: by the file's "result_columns", or by its name.
class AsvResult {
 public:
  AsvResult(const Json& value, const Json& columns) : value_(value), columns_(columns) {}

  const Json& column(const char* name) const {
    static const Json none;
    if (value_.is_object()) return member(value_, std::string("/") + name);
    if (!value_.is_array() || !columns_.is_array()) return none;
    const auto at =
        static_cast<std::size_t>(std::find(columns_.begin(), columns_.end(), Json(name)) - columns_.begin());
    return at < value_.size() ? value_[at] : none;
  }
  // The figure of each combination of parameters; a bare number is one.
  Json results() const {
    const Json& list = value_.is_number() || value_.is_null() ? value_ : column("result");
    return list.is_array() ? list : Json::array({list});
  }

 private:
  const Json& value_;
  const Json& columns_;
};

// "(10, 'a')" of the index in the product of the parameters' values.
std::string combination(const Json& parameters, std::size_t index) {
  if (!parameters.is_array() || parameters.empty()) return {};
  std::vector<std::string> words;
  for (std::size_t i = parameters.size(); i-- > 0;) {
    if (!parameters[i].is_array() || parameters[i].empty()) return fmt::format("({})", index);
    words.insert(words.begin(), scalar_text(parameters[i][index % parameters[i].size()]));
    index /= parameters[i].size();
  }
  return fmt::format("({})", fmt::join(words, ", "));
}

std::optional<double> at(const Json& list, std::size_t i) {
  return list.is_array() && i < list.size() && list[i].is_number() ? std::optional(list[i].get<double>())
                                                                   : std::nullopt;
}

ForeignContext context_of(const Json& json, FigureCollector& figures, const std::string& text,
                          const std::string& file) {
  ForeignContext about;
  about.machine = text_member(json, "/params/machine");
  about.commit = text_member(json, "/commit_hash");
  // "date" is the commit's; results say when they were measured.
  std::optional<double> measured;
  const Json& columns = member(json, "/result_columns");
  if (const Json& results = member(json, "/results"); results.is_object())
    for (const auto& [name, value] : results.items()) {
      const Json& started = AsvResult(value, columns).column("started_at");
      if (started.is_number()) measured = std::min(measured.value_or(INFINITY), started.get<double>());
    }
  const auto date = measured ? measured : number_member(json, "/date");
  if (date) about.time = figures.time(fmt::format("{:.0f}", *date), text, file);
  Json environment = Json::object();
  if (const Json& parameters = member(json, "/params"); parameters.is_object())
    for (const auto& [name, value] : parameters.items()) {
      if (name == "machine" || !value.is_primitive() || value.is_null()) continue;
      const std::string words = scalar_text(value);
      if (name == "cpu")
        environment["cpu"]["name"] = environment["cpu"]["brand"] = words;
      else if (name == "os")
        environment["os"]["name"] = words;
      else if (name == "python")
        environment["libraries"]["python"] = words;
      else if (!words.empty())
        about.facts[name] = words;
    }
  if (const Json& packages = member(json, "/requirements"); packages.is_object())
    for (const auto& [name, version] : packages.items())
      if (version.is_string() && version != Json("")) environment["libraries"][name] = version;
  if (const std::string name = text_member(json, "/env_name"); !name.empty()) about.facts["env_name"] = name;
  if (!environment.empty()) about.environment = std::move(environment);
  return about;
}

}  // namespace

ForeignFile read_asv(const ForeignInput& input) {
  const std::string text = input.text();
  const Json json = parse_foreign_json(text, input.file);
  const Json& results = member(json, "/results");
  if (!results.is_object())
    throw UsageError(fmt::format("{}: not asv's results of a commit: it has no object /results", input.file));
  FigureCollector figures;
  figures.measured(context_of(json, figures, text, input.file));
  for (const auto& [name, value] : results.items()) {
    const AsvResult result(value, member(json, "/result_columns"));
    const Json list = result.results();
    for (std::size_t i = 0; i < list.size(); ++i) {
      ForeignFigure figure;
      figure.name = name + combination(result.column("params"), i);
      if (name.empty()) continue;
      set_kind(figure, name);
      const Json& samples = result.column("samples");
      // NaN, which is read as null too, is how asv skips; a benchmark that failed is null.
      if (!list[i].is_number()) {
        figures.add_without(figure, Status::error, "it has no figure: it failed or was skipped");
        continue;
      }
      const double middle = list[i].get<double>();
      if (samples.is_array() && i < samples.size() && samples[i].is_array() && samples[i].size() > 1) {
        for (const Json& sample : samples[i])
          if (sample.is_number()) figures.add(figure, sample.get<double>());
        continue;
      }
      // It is a 99 % interval, which is wider than the one that it is taken for.
      const auto low = at(result.column("stats_ci_99_a"), i), high = at(result.column("stats_ci_99_b"), i);
      if (low && high && *low <= middle && middle <= *high && std::isfinite(*low) && std::isfinite(*high))
        figure.ci95 = Interval{*low, *high};
      figures.add(std::move(figure), middle);
    }
  }
  return figures.take();
}

}  // namespace assay::report
