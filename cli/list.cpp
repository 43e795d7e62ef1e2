// assay list: families, plans, models and other configurations.
#include "cli/catalogue.h"
#include "cli/command.h"
#include "cli/configs.h"
#include "cli/models.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/json/json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>

namespace assay::cli {

namespace {

struct ListOptions {
  std::string what;
  bool json = false;
};

std::string_view name_of_type(ParamType type) {
  switch (type) {
    case ParamType::integer: return "integer";
    case ParamType::bytes: return "bytes";
    case ParamType::seconds: return "seconds";
    case ParamType::real: return "real";
    case ParamType::flag: return "flag";
    case ParamType::choice: return "choice";
    case ParamType::count: return "count";
    case ParamType::text: return "text";
  }
  return "?";
}

Json to_json(const ParamSpec& spec) {
  Json json = {{"name", spec.name}, {"type", name_of_type(spec.type)}, {"defaults", Json::array()}};
  for (const ParamValue& value : spec.defaults) json["defaults"].push_back(assay::to_json(value));
  if (!spec.cuda_defaults.empty()) {
    json["cuda_defaults"] = Json::array();
    for (const ParamValue& value : spec.cuda_defaults) json["cuda_defaults"].push_back(assay::to_json(value));
  }
  for (const auto& [value, kind] : spec.only_on) json["only_on"][value] = name_of(kind);
  if (!spec.allowed.empty()) json["allowed"] = spec.allowed;
  if (!spec.sweep.empty()) json["sweep"] = spec.sweep;
  if (spec.minimum) json["minimum"] = *spec.minimum;
  if (spec.maximum) json["maximum"] = *spec.maximum;
  if (!spec.devices.empty()) {
    json["devices"] = Json::array();
    for (const DeviceKind kind : spec.devices) json["devices"].push_back(kind == DeviceKind::cpu ? "cpu" : "cuda");
  }
  json["help"] = spec.help;
  return json;
}

Json families_json() {
  Json list = Json::array();
  for (const Family& family : catalogue()) {
    Json json = {{"name", family.name}, {"summary", family.summary}, {"workload", family.workload}};
    json["devices"] = Json::array();
    for (const DeviceKind kind : family.devices) json["devices"].push_back(kind == DeviceKind::cpu ? "cpu" : "cuda");
    json["params"] = Json::array();
    for (const ParamSpec& spec : family.params) json["params"].push_back(to_json(spec));
    list.push_back(std::move(json));
  }
  return list;
}

Json files_json(std::string_view folder) {
  Json list = Json::array();
  for (const ConfigFile& file : config_files(folder)) {
    Json json = {{"name", file.name}};
    if (!file.description.empty()) json["description"] = file.description;
    json["path"] = file.path.string();
    list.push_back(std::move(json));
  }
  return list;
}

std::string families_text() {
  std::string text = "families\n";
  for (const Family& family : catalogue()) {
    text += fmt::format("  {:<12} {}\n", family.name, family.summary);
    for (const ParamSpec& spec : family.params) {
      std::vector<std::string> defaults;
      for (const ParamValue& value : spec.defaults) defaults.push_back(to_string(value));
      std::string line = fmt::format("    {:<12} {:<8} {}", spec.name, name_of_type(spec.type), spec.help);
      if (!spec.allowed.empty()) line += fmt::format(" ({})", fmt::join(spec.allowed, ", "));
      text += fmt::format("{} [{}]\n", line, fmt::join(defaults, ", "));
    }
  }
  return text;
}

std::string files_text(std::string_view folder) {
  std::string text = fmt::format("{}\n", folder);
  for (const ConfigFile& file : config_files(folder))
    text += fmt::format("  {:<12} {}\n", one_line(file.name), one_line(file.description));
  return text;
}

// A file that does not describe a model is an error if requested by name, else it is listed with the reason.
Json models_json(const ListOptions& options) {
  Json list = Json::array();
  for (const ConfigFile& file : config_files("models")) {
    try {
      list.push_back(model_json(file));
    } catch (const UsageError& error) {
      if (!options.what.empty()) throw;
      list.push_back({{"name", file.name}, {"path", file.path.string()}, {"reason", error.what()}});
    }
  }
  return list;
}

std::string models_text(const ListOptions& options) {
  std::string text = "models\n";
  for (const Json& model : models_json(options)) text += model_text(model);
  return text + "  memory of a step: assay estimate MODEL\n";
}

Json json_of(const std::string& kind, const ListOptions& options) {
  if (kind == "families") return families_json();
  return kind == "models" ? models_json(options) : files_json(kind);
}

std::string text_of(const std::string& kind, const ListOptions& options) {
  if (kind == "families") return families_text();
  return kind == "models" ? models_text(options) : files_text(kind);
}

ExitCode list(const ListOptions& options) {
  std::vector<std::string> kinds = {"families", "plans", "models", "hardware"};
  if (!options.what.empty()) {
    if (std::find(kinds.begin(), kinds.end(), options.what) == kinds.end())
      throw UsageError(fmt::format("list: unknown kind \"{}\"{}", options.what, suggestion(options.what, kinds)));
    kinds = {options.what};
  }
  if (options.json) {
    Json all = Json::object();
    for (const std::string& kind : kinds) all[kind] = json_of(kind, options);
    fmt::print("{}", dump_document(all, 2));
    return ExitCode::ok;
  }
  std::string text;
  for (const std::string& kind : kinds) text += text_of(kind, options);
  fmt::print("{}", text);
  return ExitCode::ok;
}

}  // namespace

Command list_command(CLI::App& root) {
  auto options = std::make_shared<ListOptions>();
  CLI::App* app =
      root.add_subcommand("list", "List what can be run: families with their parameters, plans, models, hardware");
  app->add_option("what", options->what, "families, plans, models or hardware; all by default");
  app->add_flag("--json", options->json, "As JSON");
  return {app, [options] { return list(*options); }};
}

}  // namespace assay::cli
