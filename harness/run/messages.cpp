// Channel messages.
#include "harness/run/messages.h"

#include "harness/core/error.h"
#include "harness/plan/plan_file.h"
#include "harness/record/json_reader.h"

namespace assay {

Params params_from_json(const Json& json) {
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

ProtocolOverrides overrides_from_json(const Json& json) {
  const JsonReader reader(json, "protocol");
  ProtocolOverrides overrides;
  overrides.max_seconds = reader.maybe_real("max_seconds");
  overrides.warmup_seconds = reader.maybe_real("warmup_seconds");
  overrides.target_relative_ci = reader.maybe_real("target_relative_ci");
  if (reader.has("min_samples")) overrides.min_samples = reader.small("min_samples", 0);
  if (reader.has("data")) overrides.data = reader.text("data");
  return overrides;
}

Json to_message(const CaseOrder& order, int index) {
  Json json = {{"type", "case"}, {"case", index}, {"family", order.family->name}, {"key", order.key}};
  json["params"] = order.params.to_json();
  json["world"] = {{"ranks", order.world.ranks}, {"nodes", order.world.nodes}, {"cpus", order.world.cpus}};
  json["seed"] = order.seed;
  json["attempt"] = order.attempt;
  json["protocol"] = to_json(order.protocol);
  json["labels"] = order.labels.empty() ? Json::object() : Json(order.labels);
  json["flags"] = order.flags;
  json["faults"] = Json::array();
  for (const Fault fault : order.faults) json["faults"].push_back(name_of(fault));
  json["peaks"] = Json::array();
  for (const MeasuredPeak& peak : order.peaks) json["peaks"].push_back(to_json(peak));
  return json;
}

CaseOrder order_from(const Json& message, std::span<const Family> families) {
  const JsonReader json(message, "");
  CaseOrder order;
  order.family = find_family(families, json.text("family"));
  if (!order.family) throw Error(fmt::format("family {} is not in this binary", json.text("family")));
  order.params = params_from_json(json.object("params"));
  order.key = json.text("key");
  const JsonReader world = json.child("world");
  order.world = {world.small("ranks", 1), world.small("nodes", 1), world.small("cpus", 1)};
  order.seed = json.unsigned_integer("seed", 0);
  order.attempt = json.small("attempt", 1);
  order.protocol = overrides_from_json(json.object("protocol"));
  const JsonReader labels = json.child("labels");
  for (const std::string& name : labels.names()) order.labels[name] = labels.text(name);
  order.flags = json.texts("flags");
  for (const std::string& name : json.texts("faults")) {
    const auto fault = fault_from(name);
    if (!fault) throw Error(fmt::format("fault {} is not known", name));
    order.faults.insert(*fault);
  }
  if (message.contains("peaks"))
    for (const Json& peak : message["peaks"]) order.peaks.push_back(peak_from_json(peak));
  return order;
}

Json to_message(const std::string& name, std::string_view text, bool anew) {
  return {{"type", "file"}, {"name", name}, {"text", text}, {"anew", anew}};
}

Json to_message(std::span<const trace::Entry> entries) {
  Json json = {{"type", "file"}, {"name", "timeline"}, {"entries", Json::array()}};
  for (const trace::Entry& entry : entries)
    json["entries"].push_back(Json::array({entry.name, static_cast<int>(entry.category), entry.payload, entry.start_ns,
                                           entry.duration_ns, entry.thread}));
  return json;
}

std::vector<trace::Entry> entries_from(const Json& message) {
  std::vector<trace::Entry> entries;
  if (!message.contains("entries") || !message["entries"].is_array()) throw Error("entries: not a list");
  for (const Json& row : message["entries"]) {
    if (!row.is_array() || row.size() != 6 || !row[0].is_string()) throw Error("entries: not a list of entries");
    for (std::size_t i = 1; i < 6; ++i)
      if (!row[i].is_number_integer()) throw Error("entries: not a list of entries");
    entries.push_back({row[0].get<std::string>(), static_cast<trace::Category>(row[1].get<std::uint32_t>()),
                       row[2].get<std::int64_t>(), row[3].get<std::int64_t>(), row[4].get<std::int64_t>(),
                       row[5].get<int>()});
  }
  return entries;
}

}  // namespace assay
