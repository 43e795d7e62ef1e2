#include "workloads/estimate/sets.h"

#include "harness/core/error.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/plan/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace assay::estimate {

std::vector<std::pair<std::string, std::string>> pairs_of(const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::string>> pairs;
  std::set<std::string> given;
  for (const std::string& text : texts)
    for (const std::string& pair : split_commas(text)) {
      const std::string flag = "--set " + one_line(pair);
      const std::size_t equals = pair.find('=');
      if (equals == std::string::npos) throw UsageError(fmt::format("{}: must be name=value,name=value,...", flag));
      const std::string name = pair.substr(0, equals);
      if (!given.insert(name).second) throw UsageError(fmt::format("{}: {} is set twice", flag, name));
      pairs.emplace_back(name, pair.substr(equals + 1));
    }
  return pairs;
}

void set_params(const Schema& schema, const std::vector<std::pair<std::string, std::string>>& pairs, Params& params) {
  std::vector<std::string> names;
  for (const ParamSpec& spec : schema) names.push_back(spec.name);
  for (const auto& [name, value] : pairs) {
    const std::string flag = "--set " + one_line(name + "=" + value);
    const auto spec = std::ranges::find(schema, name, &ParamSpec::name);
    if (spec == schema.end())
      throw UsageError(fmt::format("{}: there is no {}{}", flag, in_quotes(name), suggestion(name, names)));
    Problems problems(flag);
    const auto values = read_values(*spec, std::string_view(value), problems);
    problems.raise();
    params.set(name, values->scalars.front());
  }
}

}  // namespace assay::estimate
