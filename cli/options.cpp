#include "cli/options.h"

#include "cli/explain.h"
#include "harness/core/streams.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace assay::cli {

const CLI::Validator not_empty([](std::string& value) { return value.empty() ? "needs a value" : std::string(); }, "");

CLI::Option* Runs::add_dirs_to(CLI::App& app, const char* name) {
  verb_ = verb_of(app);
  return app.add_option(name, dirs, "Run directories")->required()->type_name("DIR");
}

CLI::Option* Runs::add_to(CLI::App& app, const char* name) {
  CLI::Option* argument = add_dirs_to(app, name);
  app.add_flag("--injected", injected, "Treat records with injected faults as measurements");
  return argument;
}

RunSet Runs::read() const { return RunSet(read_runs(dirs), injected ? Injected::include : Injected::exclude); }

ExitCode Runs::code_of(const RunSet& runs) const {
  if (!runs.entries().empty()) return ExitCode::ok;
  say("assay: {}: no finished case in {}\n", verb_, fmt::join(dirs, ", "));
  return ExitCode::no_data;
}

void Prices::add_to(CLI::App& app) {
  app.add_option("--prices", file, "Prices of machines: JSON or a SkyPilot catalogue (CSV)")->type_name("FILE");
  app.add_option("--price", price, "Price of each whole machine in USD per hour")->type_name("USD");
}

void Hosts::add_to(CLI::App& app, const std::string& help) {
  app.add_option("--hostfile", hostfile, help)->type_name("FILE");
  app.add_option("--hosts", names, "Use only these hosts of the hostfile or the Slurm job, with these slots")
      ->type_name("HOST[:SLOTS],...");
  app.add_option("--only-passed", only_passed, "Use only the hosts that passed in this acceptance")->type_name("DIR");
}

Allocation Hosts::allocation() const {
  Allocation found = find_allocation(hostfile.empty() ? std::nullopt : std::optional<std::filesystem::path>(hostfile));
  if (!only_passed.empty()) found = assay::only_passed(std::move(found), only_passed);
  return names.empty() ? found : only_hosts(std::move(found), names);
}

void Outputs::add_to(CLI::App& app, std::initializer_list<std::string_view> more) {
  verb_ = verb_of(app);
  app.add_flag("--json{-}", json, "Print JSON, in base units, or write it to FILE")->take_last();
  for (const std::string_view form : more) {
    if (form == "--html") app.add_option("--html", html, "Write one self-contained HTML page")->type_name("FILE");
    if (form == "--md") app.add_option("--md", markdown, "Write Markdown (- for stdout)")->type_name("FILE");
    if (form == "--junit") app.add_option("--junit", junit, "Write JUnit XML, a test per judgement")->type_name("FILE");
  }
}

void Outputs::write_pages(const report::Document& html_page, const report::Document& markdown_page) const {
  if (!html.empty()) write(html, report::render_html(html_page));
  if (!markdown.empty()) write(markdown, report::render_markdown(markdown_page));
}

void Outputs::print(const report::Document& document) const { cli::print(document, all()); }

void Outputs::print(const std::string& text) const { cli::print(text, all()); }

}  // namespace assay::cli
