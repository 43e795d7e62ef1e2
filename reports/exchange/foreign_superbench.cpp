// SuperBench's results-summary.jsonl: a machine per line, a figure or a return code per member. It has no units.
#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/figures/direction.h"
#include "harness/json/json.h"
#include "reports/exchange/foreign.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <regex>
#include <sstream>
#include <utility>

namespace assay::report {

namespace {

std::string unquoted(std::string_view text) {
  const bool quoted = text.size() > 1 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front();
  return std::string(quoted ? text.substr(1, text.size() - 2) : text);
}

// The directions that SuperBench's rules state: a rule of the function variance is broken by figures far above the
// baseline ("lambda x:x>0.05": lower is better) or far below it. Of YAML only what such files have is read: a rule is
// the lines below its name, "criteria: ..." and the list "metrics:" among them.
class SuperbenchRules {
 public:
  SuperbenchRules(const std::string& text, const std::string& file) : file_(file) {
    std::istringstream lines(text);
    int number = 0;
    for (std::string line; std::getline(lines, line);) read_line(line, ++number);
    finish();
    if (!text.empty() && rules_.empty())
      throw UsageError(fmt::format("{}: has no rule with criteria: \"lambda x:x>0.05\" and metrics", file));
  }

  std::optional<Better> better(const std::string& name) const {
    for (const auto& [pattern, better] : rules_)
      if (std::regex_search(name, pattern)) return better;
    return std::nullopt;
  }

 private:
  void read_line(const std::string& line, int number) {
    const std::string text(trim(line));
    if (text.empty() || text.front() == '#') return;
    const std::size_t indent = line.find_first_not_of(' ');
    if (text.starts_with("- ")) {
      if (in_metrics_) patterns_.emplace_back(unquoted(trim(std::string_view(text).substr(2))), number);
      return;
    }
    const std::size_t colon = text.find(':');
    const std::string key = text.substr(0, colon),
                      value(colon == text.npos ? "" : trim(std::string_view(text).substr(colon + 1)));
    if (indent < indent_ || (value.empty() && key != "metrics" && key != "statistics")) finish();
    indent_ = indent;
    in_metrics_ = key == "metrics";
    if (key == "function") function_ = unquoted(value);
    if (key == "criteria") criteria_ = unquoted(value);
  }

  void finish() {
    const std::size_t more = criteria_.find('>'), less = criteria_.find('<');
    if (function_ == "variance" && (more == criteria_.npos) != (less == criteria_.npos))
      for (const auto& [pattern, number] : patterns_) {
        constexpr std::size_t max_pattern = 300;
        try {
          if (pattern.size() > max_pattern) throw std::regex_error(std::regex_constants::error_complexity);
          rules_.emplace_back(std::regex(pattern, std::regex::optimize),
                              more != criteria_.npos ? Better::lower : Better::higher);
        } catch (const std::regex_error&) {
          throw UsageError(fmt::format("{}: line {}: {} is no pattern", file_, number, in_quotes(pattern)));
        }
      }
    patterns_.clear(), function_.clear(), criteria_.clear();
    in_metrics_ = false;
  }

  std::string file_;
  std::vector<std::pair<std::regex, Better>> rules_;
  std::string function_, criteria_;
  std::vector<std::pair<std::string, int>> patterns_;
  std::size_t indent_ = 0;
  bool in_metrics_ = false;
};

}  // namespace

ForeignFile read_superbench(const ForeignInput& input) {
  const std::string& file = input.file;
  const SuperbenchRules rules(input.rules, input.rules_file);
  std::map<std::string, std::optional<Better>> ruled;  // by name: patterns are slow
  FigureCollector figures;
  std::map<std::string, int> machines;
  std::istringstream lines(input.text());
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (trim(line).empty()) continue;
    const std::string place = fmt::format("line {}", number);
    const Json json = parse_foreign_json(line, fmt::format("{}: {}", file, place));
    if (!json.is_object() || !json.contains("node"))
      throw UsageError(fmt::format("{}: {}: not a machine of SuperBench: it has no member \"node\"", file, place));
    ForeignContext about;
    about.machine = scalar_text(json["node"]);
    about.part = machines[about.machine]++;
    if (about.part == 1) figures.remark(fmt::format("{} comes more than once: each time is a run", about.machine));
    figures.measured(about);
    for (const auto& [name, value] : json.items()) {
      if (name == "node") continue;
      if (name.empty()) {
        figures.not_read(place, "a member has no name");
        continue;
      }
      ForeignFigure figure;
      figure.name = name;
      if (name.substr(name.rfind('/') + 1).starts_with("return_code")) {
        const std::optional<double> code = value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
        figure.check = Check{"return_code", code == 0.0, code, 0, {}};
        const std::string reason = code ? fmt::format("return code {:g}", *code) : "its return code is unknown";
        figures.add_without(figure, code == 0.0 ? Status::ok : Status::error, code == 0.0 ? "" : reason);
      } else if (value.is_number()) {
        const auto [known, fresh] = ruled.try_emplace(name);
        if (fresh && name.size() < 1000) known->second = rules.better(name);
        figure.metric = "value", figure.unit = "1";
        figure.guessed = !known->second;
        figure.better = known->second.value_or(guessed_better(name));
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
