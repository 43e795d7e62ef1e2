// Record to JSON. Numbers that are not finite are null on disk.
#include "harness/record/record.h"

#include "harness/core/error.h"

#include <fmt/format.h>

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

// Five digits: hundreds of hosts make a hundred thousand figures of one line.
Json to_json(const Matrix& matrix) {
  Json rows = Json::array();
  for (std::size_t row = 0; row < matrix.ranks.size(); ++row) {
    Json& figures = rows.emplace_back(Json::array());
    for (std::size_t column = 0; column < matrix.ranks.size(); ++column) {
      const double value = matrix.at(row, column);
      figures.push_back(std::isfinite(value) ? Json(std::stod(fmt::format("{:.5g}", value))) : Json(nullptr));
    }
  }
  return {{"metric", matrix.metric},
          {"unit", matrix.unit},
          {"better", matrix.better == Better::higher ? "higher" : "lower"},
          {"ranks", matrix.ranks},
          {"values", std::move(rows)}};
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

}  // namespace

void check_schema(std::int64_t schema) {
  if (schema < 1 || schema > record_schema)
    throw Error(fmt::format("schema {} is not known: this build reads schemas 1 and {}", schema, record_schema));
}

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

Identity Identity::on_any_host() const {
  Identity same = *this;
  same.hosts.clear();
  return same;
}

Identity Identity::unplaced() const {
  Identity same = on_any_host();
  same.nodes = 1;
  return same;
}

Identity Record::identity() const {
  std::set<std::string> hosts;
  for (const RankResult& rank : ranks)
    if (!rank.host.empty()) hosts.insert(rank.host);
  return {key, device, world_ranks, world_nodes, {hosts.begin(), hosts.end()}, seed};
}

std::optional<std::string> Record::attribute(const std::string& name) const {
  for (const Attributes* these : {&conditions, &choices, &labels})
    if (const auto found = these->find(name); found != these->end()) return found->second;
  return std::nullopt;
}

Attributes Record::attributes() const {
  Attributes all = conditions;
  all.insert(choices.begin(), choices.end());
  all.insert(labels.begin(), labels.end());
  return all;
}

bool Record::injected() const {
  return std::any_of(flags.begin(), flags.end(), [](const std::string& flag) { return flag.starts_with("injected:"); });
}

Json Record::to_json() const {
  Json json;
  json["schema"] = record_schema;
  json["key"] = key;
  json["family"] = family;
  json["params"] = params.is_null() ? Json::object() : params.get();
  json["protocol"] = protocol.is_null() ? Json::object() : protocol.get();
  json["seed"] = seed;
  json["attempt"] = attempt;
  json["world"] = {{"ranks", world_ranks}, {"nodes", world_nodes}};
  json["ranks"] = Json::array();
  for (const RankResult& rank : ranks) {
    Json part = {{"rank", rank.rank}, {"host", rank.host}, {"device", rank.device}, {"median", number(rank.median)}};
    if (!rank.uuid.empty()) part["uuid"] = rank.uuid;
    if (!rank.pci.empty()) part["pci"] = rank.pci;
    part["cpus"] = rank.cpus.empty() ? Json(nullptr) : Json(rank.cpus);
    part["numa_node"] = rank.numa_node ? Json(*rank.numa_node) : Json(nullptr);
    if (rank.pace) part["pace"] = number(rank.pace);
    json["ranks"].push_back(std::move(part));
  }
  json["device"] = device;
  json["conditions"] = conditions;
  json["choices"] = choices;
  json["labels"] = labels;
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
  if (matrix) json["matrix"] = assay::to_json(*matrix);
  json["started"] = started;
  json["seconds"] = number(seconds);
  if (!log.empty()) json["log"] = log;
  return json;
}

}  // namespace assay
