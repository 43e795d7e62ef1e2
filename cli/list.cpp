// assay list: what can be run, and what it can be judged by.
#include "cli/catalogue.h"
#include "cli/command.h"
#include "cli/options.h"
#include "harness/core/configs.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/fitness/gate/catalogue.h"
#include "harness/json/configs.h"
#include "harness/json/members.h"
#include "harness/plan/listing.h"
#include "workloads/estimate/models.h"

#include <fmt/format.h>

#include <memory>

namespace assay::cli {

namespace {

struct ListOptions {
  std::string what;
  Outputs outputs;
};

// A file that cannot be used is an error if its kind is requested, else it is listed with the reason.
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

Json codes_json(bool requested) {
  try {
    return gate::load_catalogue(configs_dir() / "gate.json").codes_json();
  } catch (const UsageError& error) {
    if (requested) throw;
    return Json::array({{{"reason", error.what()}}});
  }
}

std::string codes_text(bool requested) {
  std::string text = "codes\n";
  for (const Json& code : codes_json(requested)) {
    const std::string reason = text_member(code, "/reason");
    text += reason.empty() ? fmt::format("  {:<15} {:<24} {}\n", text_member(code, "/code"), text_member(code, "/id"),
                                         text_member(code, "/meaning"))
                           : fmt::format("  {}\n", one_line(reason, 400));
  }
  return text;
}

struct Kind {
  std::string name;
  std::string folder;  // of configs, whose files are listed; empty: see below
  Json (*json)(bool requested) = nullptr;
  std::string (*text)(bool requested) = nullptr;
};

const Kind kinds[] = {
    {"families", "", [](bool) { return families_json(catalogue()); }, [](bool) { return families_text(catalogue()); }},
    {"plans", "plans"},
    {"models", "", models_json, models_text},
    {"hardware", "hardware"},
    {"floors", "floors"},
    {"levels", "accept"},
    {"codes", "", codes_json, codes_text}};

std::string files_text(const Kind& kind) {
  std::string text = kind.name + "\n";
  for (const ConfigFile& file : config_files(kind.folder))
    text += fmt::format("  {:<12} {}\n", one_line(file.name), one_line(file.description));
  return text;
}

ExitCode list(const ListOptions& options) {
  const bool requested = !options.what.empty();
  Json all = Json::object();
  std::string text;
  std::vector<std::string> names;
  for (const Kind& kind : kinds) {
    names.push_back(kind.name);
    if (requested && kind.name != options.what) continue;
    all[kind.name] = kind.json ? kind.json(requested) : json_of(config_files(kind.folder));
    text += kind.text ? kind.text(requested) : files_text(kind);
  }
  if (all.empty())
    throw UsageError(fmt::format("list: unknown kind \"{}\"{}", options.what, suggestion(options.what, names)));
  options.outputs.write_json([&] { return dump_document(all, 2); });
  options.outputs.print(text);
  return ExitCode::ok;
}

}  // namespace

Command list_command(CLI::App& root) {
  auto options = std::make_shared<ListOptions>();
  CLI::App* app = root.add_subcommand("list", "List families, plans, models, hardware, floors, levels, codes");
  app->add_option("what", options->what, "families, plans, models, hardware, floors, levels or codes; all by default")
      ->type_name("KIND");
  options->outputs.add_to(*app);
  return {app, [options] { return list(*options); }};
}

}  // namespace assay::cli
