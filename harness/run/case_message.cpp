#include "harness/run/case_message.h"

#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/plan/plan_file.h"
#include "harness/record/json_reader.h"

namespace assay {

namespace {

// Values keep their types.
Params params_from(const Json& json) {
  Params params;
  for (const auto& item : json.items()) {
    const Json& value = item.value();
    if (value.is_boolean())
      params.set(item.key(), value.get<bool>());
    else if (value.is_number_integer())
      params.set(item.key(), value.get<std::int64_t>());
    else if (value.is_number())
      params.set(item.key(), value.get<double>());
    else if (value.is_string())
      params.set(item.key(), value.get<std::string>());
    else
      throw Error(fmt::format("params.{}: neither number, text nor flag", item.key()));
  }
  return params;
}

ProtocolOverrides overrides_from(const Json& json) {
  const JsonReader reader(json, "protocol");
  ProtocolOverrides overrides;
  overrides.max_seconds = reader.maybe_real("max_seconds");
  overrides.warmup_seconds = reader.maybe_real("warmup_seconds");
  overrides.target_relative_ci = reader.maybe_real("target_relative_ci");
  if (reader.has("min_samples")) overrides.min_samples = reader.small("min_samples", 0);
  if (reader.has("data")) overrides.data = reader.text("data");
  return overrides;
}

}  // namespace

std::vector<std::string> names_of(const std::set<Fault>& faults) {
  std::vector<std::string> names;
  for (const Fault fault : faults) names.emplace_back(name_of(fault));
  return names;
}

std::set<Fault> faults_from(const std::vector<std::string>& names) {
  std::set<Fault> faults;
  for (const std::string& name : names) {
    const auto fault = fault_from(name);
    if (!fault) throw Error(fmt::format("unknown fault {}", in_quotes(name)));
    faults.insert(*fault);
  }
  return faults;
}

message::Case to_message(const CaseOrder& order, int index) {
  message::Case message;
  message.index = index;
  message.family = order.family->name;
  message.key = order.key;
  message.params = order.params.to_json();
  message.ranks = order.world.ranks;
  message.nodes = order.world.nodes;
  message.cpus = order.world.cpus;
  message.seed = order.seed;
  message.attempt = order.attempt;
  message.protocol = to_json(order.protocol);
  message.labels = order.labels;
  message.flags = order.flags;
  message.faults = names_of(order.faults);
  for (const MeasuredPeak& peak : order.peaks) message.peaks.push_back(to_json(peak));
  return message;
}

CaseOrder order_from(const message::Case& message, std::span<const Family> families) {
  CaseOrder order;
  order.family = find_family(families, message.family);
  if (!order.family) throw Error(fmt::format("family {} is not in this binary", in_quotes(message.family)));
  order.params = params_from(message.params);
  order.key = message.key;
  order.world = {message.ranks, message.nodes, message.cpus};
  order.seed = message.seed;
  order.attempt = message.attempt;
  order.protocol = overrides_from(message.protocol);
  order.labels = message.labels;
  order.flags = message.flags;
  order.faults = faults_from(message.faults);
  for (const Json& peak : message.peaks) order.peaks.push_back(peak_from_json(peak));
  return order;
}

}  // namespace assay
