// Checks, names of faults, and the metrics that most cases share.
#include "harness/plan/case.h"

#include "harness/core/text.h"
#include "harness/json/value.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace assay {

namespace {

constexpr std::size_t max_culprits = 20;

std::vector<std::string> first_culprits(std::vector<std::string> detail) {
  if (detail.size() > max_culprits) detail.resize(max_culprits);
  return detail;
}

}  // namespace

Json to_json(const std::set<Fault>& faults) {
  Json names = Json::array();
  for (const Fault fault : faults) names.push_back(name_of(fault));
  return names;
}

void read(const JsonValue& value, std::set<Fault>& to) {
  value.elements("a list of faults", [&](const JsonValue& element) {
    const std::string name(element.string());
    const auto fault = from_word<Fault>(name);
    if (!fault) throw Mismatch{"", fmt::format("unknown fault {}", in_quotes(name))};
    to.insert(*fault);
  });
}

bool Context::inject(Fault fault) {
  if (!inputs.faults.contains(fault)) return false;
  if (outputs.injected.insert(fault).second && services.on_inject) services.on_inject(fault);
  return true;
}

void Checks::at_most(std::string name, double value, double limit, std::vector<std::string> detail,
                     std::vector<Culprit> culprits) {
  // Written so that a NaN on either side fails.
  const bool passed = value <= limit;
  checks_.push_back({std::move(name), passed, value, limit, first_culprits(std::move(detail)), std::move(culprits)});
}

void Checks::that(std::string name, bool condition, std::vector<std::string> detail) {
  checks_.push_back({std::move(name), condition, std::nullopt, std::nullopt, first_culprits(std::move(detail))});
}

Metric value_metric(std::string name, std::optional<double> value, std::string unit, Better better) {
  Metric metric;
  metric.name = std::move(name);
  metric.value = value;
  metric.unit = std::move(unit);
  metric.better = better;
  return metric;
}

Metric rate_metric(std::string name, double amount, std::string unit, const Measurement& measurement) {
  Metric metric = value_metric(std::move(name), std::nullopt, std::move(unit), Better::higher);
  metric.work = amount;
  set_from_samples(metric, measurement.values.size(), measurement.summary);
  return metric;
}

Metric time_metric(std::string name, const Measurement& measurement, double calls) {
  Metric metric = value_metric(std::move(name), std::nullopt, "s");
  metric.work = calls;
  set_from_samples(metric, measurement.values.size(), measurement.summary);
  return metric;
}

}  // namespace assay
