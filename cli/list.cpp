// assay list: families, plans, models and other configurations.
#include "cli/catalogue.h"
#include "cli/command.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/json/configs.h"
#include "harness/json/members.h"
#include "harness/plan/listing.h"
#include "workloads/estimate/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

namespace assay::cli {

namespace {

struct ListOptions {
  std::string what;
  bool json = false;
};

std::string files_text(std::string_view folder) {
  std::string text = fmt::format("{}\n", folder);
  for (const ConfigFile& file : config_files(folder))
    text += fmt::format("  {:<12} {}\n", one_line(file.name), one_line(file.description));
  return text;
}

// A file that does not describe a model is an error if requested by name, else it is listed with the reason.
Json models_json(bool requested) {
  Json list = Json::array();
  for (const ConfigFile& file : config_files("models")) {
    try {
      list.push_back(estimate::model_json(file));
    } catch (const UsageError& error) {
      if (requested) throw;
      list.push_back({{"name", file.name}, {"path", file.path.string()}, {"reason", error.what()}});
    }
  }
  return list;
}

std::string models_text(bool requested) {
  std::string text = "models\n";
  for (const Json& model : models_json(requested)) text += estimate::model_text(model);
  return text + "  memory of a step: assay estimate MODEL\n";
}

ExitCode list(const ListOptions& options) {
  std::vector<std::string> kinds = {"families", "plans", "models", "hardware"};
  const bool requested = !options.what.empty();
  if (requested) {
    if (std::find(kinds.begin(), kinds.end(), options.what) == kinds.end())
      throw UsageError(fmt::format("list: unknown kind \"{}\"{}", options.what, suggestion(options.what, kinds)));
    kinds = {options.what};
  }
  Json all = Json::object();
  std::string text;
  for (const std::string& kind : kinds)
    if (options.json)
      all[kind] = kind == "families" ? families_json(catalogue())
                  : kind == "models" ? models_json(requested)
                                     : json_of(config_files(kind));
    else
      text += kind == "families" ? families_text(catalogue())
              : kind == "models" ? models_text(requested)
                                 : files_text(kind);
  fmt::print("{}", options.json ? dump_document(all, 2) : text);
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
