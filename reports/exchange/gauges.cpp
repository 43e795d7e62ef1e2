#include "reports/exchange/gauges.h"

#include "reports/render/escape.h"

#include <fmt/format.h>

namespace assay::report {

std::string prometheus_labels(const std::vector<std::pair<const char*, std::string>>& labels) {
  std::string all;
  for (const auto& [name, value] : labels) {
    if (value.empty()) continue;
    all += fmt::format("{}{}=\"", all.empty() ? "" : ",", name);
    for (const char c : printable(value)) {
      if (c == '\\' || c == '"') all += '\\';
      all += c;
    }
    all += '"';
  }
  return all.empty() ? all : "{" + all + "}";
}

void PrometheusGauges::set(const std::string& name, const std::string& labels, double value, const char* help) {
  auto& one = all_[name];
  one.first = help;
  one.second[labels] = value;
}

std::string PrometheusGauges::text() const {
  std::string out;
  for (const auto& [name, one] : all_) {
    out += fmt::format("# HELP {} {}\n# TYPE {} gauge\n", name, one.first, name);
    for (const auto& [labels, value] : one.second) out += fmt::format("{}{} {}\n", name, labels, value);
  }
  return out;
}

}  // namespace assay::report
