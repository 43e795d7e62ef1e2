// Record to JSON and back. Numbers that are not finite are null on disk; what is null is unknown when read.
#include "harness/record/record.h"

#include "harness/core/error.h"
#include "harness/record/json_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace assay {

namespace {

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
Json number(const std::optional<double>& value) { return value ? number(*value) : Json(nullptr); }

template <typename T>
Json numbers(const std::vector<T>& values) {
  Json array = Json::array();
  for (const auto& value : values) array.push_back(number(value));
  return array;
}

Json to_json(const Metric& metric) {
  Json json;
  json["name"] = metric.name;
  json["value"] = number(metric.value);
  json["unit"] = metric.unit;
  json["ci95"] = metric.ci95 && std::isfinite(metric.ci95->low) && std::isfinite(metric.ci95->high)
                     ? Json::array({metric.ci95->low, metric.ci95->high})
                     : Json(nullptr);
  json["better"] = metric.better == Better::higher ? "higher" : "lower";
  json["of_peak"] = number(metric.of_peak);
  json["reference"] = number(metric.reference);
  return json;
}

Json to_json(const Check& check) {
  Json json;
  json["name"] = check.name;
  json["passed"] = check.passed;
  json["value"] = number(check.value);
  json["limit"] = number(check.limit);
  json["detail"] = check.detail;
  return json;
}

Json to_json(const Samples& samples) {
  Json json;
  json["unit"] = samples.unit;
  json["values"] = numbers(samples.values);
  json["at"] = numbers(samples.at);
  json["series"] = samples.series ? Json(*samples.series) : Json(nullptr);
  json["count"] = samples.count;
  json["repetitions"] = samples.repetitions;
  json["stopped_by"] = samples.stopped_by;
  json["disturbed"] = samples.disturbed;
  json["first_touch"] = numbers(samples.first_touch);
  return json;
}

Metric metric_from(const JsonReader& json) {
  Metric metric;
  metric.name = json.text("name");
  metric.value = json.maybe_real("value");
  metric.unit = json.text("unit");
  if (const std::vector<double> bounds = json.reals("ci95"); bounds.size() == 2) metric.ci95 = {bounds[0], bounds[1]};
  metric.better = json.text("better", "higher") == "lower" ? Better::lower : Better::higher;
  metric.of_peak = json.maybe_real("of_peak");
  metric.reference = json.maybe_real("reference");
  return metric;
}

Check check_from(const JsonReader& json) {
  Check check;
  check.name = json.text("name");
  check.passed = json.flag("passed", true);
  check.value = json.maybe_real("value");
  check.limit = json.maybe_real("limit");
  check.detail = json.texts("detail");
  return check;
}

Samples samples_from(const JsonReader& json) {
  Samples samples;
  samples.unit = json.text("unit", "s");
  samples.values = json.reals("values");
  samples.at = json.reals("at");
  if (json.has("series")) samples.series = json.text("series");
  samples.count = json.integer("count", static_cast<std::int64_t>(samples.values.size()));
  samples.repetitions = json.integer("repetitions", 1);
  samples.stopped_by = json.text("stopped_by");
  for (const double index : json.reals("disturbed"))
    if (index >= 0 && index <= std::numeric_limits<int>::max()) samples.disturbed.push_back(static_cast<int>(index));
  samples.first_touch = json.reals("first_touch");
  return samples;
}

Status status_from(const std::string& name) {
  for (const Status status : {Status::ok, Status::skipped, Status::failed, Status::error})
    if (name_of(status) == name) return status;
  throw Error(fmt::format("status: '{}' is none of ok, skipped, failed, error", name));
}

}  // namespace

std::string_view name_of(Status status) {
  switch (status) {
    case Status::ok: return "ok";
    case Status::skipped: return "skipped";
    case Status::failed: return "failed";
    case Status::error: break;
  }
  return "error";
}

std::string Identity::text() const {
  std::string joined;
  for (const std::string& host : hosts) joined += (joined.empty() ? "" : ",") + host;
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", key, device, ranks, nodes, joined, seed);
}

Identity Record::identity() const {
  std::set<std::string> hosts;
  for (const RankResult& rank : ranks)
    if (!rank.host.empty()) hosts.insert(rank.host);
  return {key, device, world_ranks, world_nodes, {hosts.begin(), hosts.end()}, seed};
}

Json Record::to_json() const {
  Json json;
  json["schema"] = record_schema;
  json["key"] = key;
  json["family"] = family;
  json["params"] = params.is_null() ? Json::object() : params;
  json["protocol"] = protocol.is_null() ? Json::object() : protocol;
  json["seed"] = seed;
  json["attempt"] = attempt;
  json["world"] = {{"ranks", world_ranks}, {"nodes", world_nodes}};
  json["ranks"] = Json::array();
  for (const RankResult& rank : ranks)
    json["ranks"].push_back(
        {{"rank", rank.rank}, {"host", rank.host}, {"device", rank.device}, {"median", number(rank.median)}});
  json["device"] = device;
  json["labels"] = labels.empty() ? Json::object() : Json(labels);
  json["status"] = name_of(status);
  json["reason"] = reason;
  json["comparable"] = comparable;
  json["flags"] = flags;
  json["samples"] = assay::to_json(samples);
  json["metrics"] = Json::array();
  for (const Metric& metric : metrics) json["metrics"].push_back(assay::to_json(metric));
  json["checks"] = Json::array();
  for (const Check& check : checks) json["checks"].push_back(assay::to_json(check));
  json["spans"] = Json::object();
  for (const auto& [name, value] : spans) json["spans"][name] = number(value);
  json["telemetry"] = Json::object();
  for (const auto& [name, series] : telemetry)
    json["telemetry"][name] = {{"unit", series.unit}, {"at", numbers(series.at)}, {"values", numbers(series.values)}};
  json["started"] = started;
  json["seconds"] = number(seconds);
  if (!log.empty()) json["log"] = log;
  return json;
}

Record Record::from_json(const Json& source) {
  const JsonReader json(source, "");
  const std::int64_t schema = json.integer("schema", 0);
  if (schema != record_schema)
    throw Error(fmt::format("schema {} is not known: this build reads schema {}", schema, record_schema));
  Record record;
  record.key = json.text("key");
  record.family = json.text("family");
  record.params = json.object("params");
  record.protocol = json.object("protocol");
  record.seed = json.unsigned_integer("seed", 0);
  record.attempt = json.small("attempt", 1);
  const JsonReader world = json.child("world");
  record.world_ranks = world.small("ranks", 1);
  record.world_nodes = world.small("nodes", 1);
  for (const JsonReader& rank : json.children("ranks"))
    record.ranks.push_back({rank.small("rank", 0), rank.text("host"), rank.text("device"), rank.maybe_real("median")});
  record.device = json.text("device", "cpu");
  const JsonReader labels = json.child("labels");
  for (const std::string& name : labels.names()) record.labels[name] = labels.text(name);
  record.status = status_from(json.text("status", "ok"));
  record.reason = json.text("reason");
  record.comparable = json.flag("comparable", true);
  record.flags = json.texts("flags");
  record.samples = samples_from(json.child("samples"));
  for (const JsonReader& metric : json.children("metrics")) record.metrics.push_back(metric_from(metric));
  for (const JsonReader& check : json.children("checks")) record.checks.push_back(check_from(check));
  const JsonReader spans = json.child("spans");
  for (const std::string& name : spans.names())
    if (const auto value = spans.maybe_real(name)) record.spans.emplace_back(name, *value);
  const JsonReader telemetry = json.child("telemetry");
  for (const std::string& name : telemetry.names()) {
    const JsonReader series = telemetry.child(name);
    record.telemetry[name] = {series.text("unit"), series.reals("at"), series.maybe_reals("values")};
  }
  record.started = json.text("started");
  record.seconds = json.maybe_real("seconds").value_or(0);
  record.log = json.text("log");
  return record;
}

}  // namespace assay
