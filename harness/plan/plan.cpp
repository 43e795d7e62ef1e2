// Plans as run.json stores them.
#include "harness/plan/plan.h"

#include "harness/core/text.h"
#include "harness/json/members.h"
#include "harness/plan/estimate.h"
#include "harness/plan/plan_file.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay {

Json Plan::expanded() const {
  Json json = {{"schema", plan_schema}, {"name", name}, {"labels", Json::object()}, {"cases", Json::array()}};
  for (const auto& [label, value] : labels) json["labels"][label] = value;
  for (const PlannedCase& planned : cases) {
    Json one = {{"key", planned.key},
                {"family", planned.family->name},
                {"params", planned.params.to_json()},
                {"ranks", planned.ranks},
                {"seed", planned.seed}};
    if (Json protocol = json_of(planned.protocol); !protocol.empty()) one["protocol"] = std::move(protocol);
    if (planned.timeout_seconds > 0) one["timeout"] = planned.timeout_seconds;
    if (!planned.sweep.empty()) one["sweep"] = planned.sweep;
    if (!planned.unfit.empty()) one["unfit"] = planned.unfit;
    json["cases"].push_back(std::move(one));
  }
  return json;
}

namespace {

std::optional<PlannedCase> read_case(const Cursor& cursor, std::span<const Family> families, int cpus,
                                     DeviceKind device) {
  const auto name = cursor.need("family");
  const auto key = cursor.need("key");
  const auto params = cursor.need("params");
  const auto ranks = cursor.need("ranks");
  const auto seed = cursor.need("seed");
  if (!name || !key || !params || !ranks || !seed || !params->object()) return std::nullopt;
  const std::string family = name->text().value_or("");
  PlannedCase planned;
  planned.family = find_family(families, family);
  if (!planned.family) {
    name->error(fmt::format("this build has no family {}", in_quotes(family)));
    return std::nullopt;
  }
  std::vector<std::string> known;
  for (const ParamSpec& spec : planned.family->params) {
    known.push_back(spec.name);
    if (const auto value = params->find(spec.name))
      if (auto read = read_value(spec, *value)) planned.params.set(spec.name, std::move(*read));
  }
  params->only(known);
  planned.key = planned.params.key(family);
  if (key->text().value_or("") != planned.key)
    key->error(fmt::format("this build makes it {}", in_quotes(planned.key, 400)));
  planned.ranks = static_cast<int>(ranks->integer(1, max_ranks).value_or(1));
  planned.seed = read_seed(*seed);
  if (const auto protocol = cursor.find("protocol")) planned.protocol = read_protocol(*protocol);
  if (const auto timeout = cursor.find("timeout")) planned.timeout_seconds = timeout->number(0, 1e7).value_or(0);
  if (const auto sweep = cursor.find("sweep")) planned.sweep = sweep->text().value_or("");
  if (const auto unfit = cursor.find("unfit")) planned.unfit = unfit->text().value_or("");
  if (!cursor.problems().empty()) return std::nullopt;
  const World world{.ranks = planned.ranks, .cpus = cpus, .device = device};
  planned.estimate = planned.family->estimate(planned.params, world);
  planned.estimated_seconds = estimate_seconds(planned, world);
  return planned;
}

// The cases without their timeouts, and without the memory of the machine that planned a sweep.
Json work_of(const Json& expanded) {
  Json cases = expanded.value("cases", Json::array());
  for (Json& one : cases)
    if (one.is_object()) one.erase("timeout"), one.erase("unfit");
  return cases;
}

}  // namespace

Plan plan_from_expanded(const Json& expanded, const std::string& source, std::span<const Family> families, int cpus,
                        DeviceKind device) {
  Problems problems(source);
  const Cursor root(expanded, problems, "/plan");
  Plan plan;
  if (!root.object() || !root.schema(plan_schema)) problems.raise();
  if (const auto name = root.need("name")) plan.name = name->text().value_or("");
  if (const auto labels = root.find("labels"))
    for (const auto& [label, value] : labels->members()) plan.labels[label] = value.text().value_or("");
  if (const auto cases = root.need("cases"))
    for (const Cursor& element : cases->elements())
      if (auto planned = read_case(element, families, cpus, device)) plan.cases.push_back(std::move(*planned));
  problems.raise();
  return plan;
}

bool same_work(const Json& expanded_a, const Json& expanded_b) { return work_of(expanded_a) == work_of(expanded_b); }

}  // namespace assay
