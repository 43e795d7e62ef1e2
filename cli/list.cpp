// assay list: what can be run, and what it can be judged by.
#include "cli/catalogue.h"
#include "cli/command.h"
#include "cli/list_kinds.h"
#include "cli/options.h"
#include "harness/core/configs.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/json/configs.h"
#include "harness/json/members.h"
#include "harness/plan/listing.h"
#include "reports/sizing/price_list.h"

#include <fmt/format.h>

#include <memory>

namespace assay::cli {

namespace {

struct ListOptions {
  std::string what, hardware, prices;
  Outputs outputs;
};

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

// Prices change more often than what can be run, so that they are listed on request only.
ExitCode list_prices(const ListOptions& options) {
  const Json prices = report::sizing::price_list(options.prices, options.hardware);
  options.outputs.write_json([&] { return dump_document({{"prices", prices}}, 2); });
  options.outputs.print(report::sizing::price_list_text(prices));
  return ExitCode::ok;
}

ExitCode list(const ListOptions& options) {
  if (options.what == "prices") return list_prices(options);
  if (!options.hardware.empty() || !options.prices.empty())
    throw UsageError("list: --hardware and --prices belong to `assay list prices`");
  const bool requested = !options.what.empty();
  Json all = Json::object();
  std::string text;
  std::vector<std::string> names = {"prices"};
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
  CLI::App* app = root.add_subcommand("list", "List families, plans, models, hardware, floors, levels, codes, prices");
  app->add_option("what", options->what,
                  "families, plans, models, hardware, floors, levels, codes or prices; all but prices by default")
      ->type_name("KIND");
  app->add_option("--hardware", options->hardware,
                  "With prices: only of machines with these GPUs, sheets by name or file")
      ->type_name("A,B");
  app->add_option("--prices", options->prices, "With prices: a file of yours, listed first as it wins over the others")
      ->type_name("FILE");
  options->outputs.add_to(*app);
  return {app, [options] { return list(*options); }};
}

}  // namespace assay::cli
