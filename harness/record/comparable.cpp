#include "harness/record/comparable.h"

#include "harness/json/json.h"
#include "harness/record/protocol.h"

#include <algorithm>

namespace assay {

namespace {

bool within(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

Attributes protocol_fields(const Record& record, const Scope& scope) {
  Attributes fields;
  if (!record.protocol.is_object()) return fields;
  for (const auto& [name, value] : record.protocol.items())
    if (name != "hash" && !within(scope.free_protocol, name)) fields[name] = scalar_text(value);
  return fields;
}

void add_differences(const Attributes& own, const Attributes& other, bool protocol, std::vector<Difference>& found) {
  std::set<std::string> names;
  for (const Attributes* side : {&own, &other})
    for (const auto& [name, value] : *side) names.insert(name);
  const auto value_of = [](const Attributes& side, const std::string& name) {
    const auto value = side.find(name);
    return value == side.end() ? std::nullopt : std::optional(value->second);
  };
  for (const std::string& name : names) {
    Difference one{protocol, name, value_of(own, name), value_of(other, name)};
    if (one.own != one.other) found.push_back(std::move(one));
  }
}

}  // namespace

std::string protocol_of(const Record& record) {
  if (record.protocol.is_object()) {
    const auto hash = record.protocol.find("hash");
    if (hash != record.protocol.end() && hash->is_string()) return hash->get<std::string>();
  }
  return protocol_hash(record.protocol.is_object() ? record.protocol.get() : Json::object());
}

std::string protocol_signature(const Record& record, const Scope& scope) {
  const auto has = [&](std::string_view name) { return record.protocol.contains(name); };
  if (!record.protocol.is_object() || std::ranges::none_of(scope.free_protocol, has)) return protocol_of(record);
  Json rest = Json::object();
  for (const auto& [name, value] : record.protocol.items())
    if (!within(scope.free_protocol, name)) rest[name] = value;
  return protocol_hash(rest);
}

Attributes bound_attributes(const Record& record, const Scope& scope) {
  Attributes bound;
  if (!scope.sides || record.schema > 1) bound = record.conditions;
  for (const auto& [name, value] : record.choices)
    if (!within(scope.free_choices, name)) bound.emplace(name, value);
  if (scope.bound_labels)
    for (const std::string& name : *scope.bound_labels)
      if (const auto label = record.labels.find(name); label != record.labels.end()) bound.insert(*label);
  return bound;
}

std::vector<Difference> differences(const Record& own, const Record& other, const Scope& scope) {
  std::vector<Difference> found;
  const std::string own_protocol = protocol_signature(own, scope), other_protocol = protocol_signature(other, scope);
  if (own_protocol != other_protocol) {
    add_differences(protocol_fields(own, scope), protocol_fields(other, scope), true, found);
    if (found.empty()) found.push_back({true, "hash", own_protocol, other_protocol});
  }
  add_differences(bound_attributes(own, scope), bound_attributes(other, scope), false, found);
  // Schema 1 knows fewer choices and no conditions: between sides, what only one of the two records says nothing.
  if (scope.sides && own.schema != other.schema)
    std::erase_if(found, [](const Difference& one) { return !one.protocol && (!one.own || !one.other); });
  return found;
}

}  // namespace assay
