// assay history bisect: which commit was it?
#include "cli/history/history.h"
#include "harness/core/streams.h"
#include "harness/json/json.h"
#include "reports/history/document.h"

#include <fmt/format.h>

#include <memory>

namespace assay::cli {

namespace {

struct BisectFlags {
  std::string store, event;
  history::BisectCommands commands;
};

ExitCode run_bisect(const BisectFlags& flags) {
  store::Store store = store::Store::open_existing(store_path(flags.store));
  const auto reported = history::reported_events(store.read());
  const history::Reported& event = history::reported_named(reported, flags.event, "history bisect");
  const auto commands = history::bisect_commands(text_member(event.document, "/from/commit"),
                                                 text_member(event.document, "/to/commit"), flags.commands);
  for (const std::string& command : commands) fmt::print("{}\n", command);
  if (!commands.empty()) return ExitCode::ok;
  say("assay: history bisect: {}: the runs on both sides do not name different commits\n", event.id);
  return ExitCode::no_data;
}

}  // namespace

Command history_bisect_command(CLI::App& history) {
  auto flags = std::make_shared<BisectFlags>();
  CLI::App* app = history.add_subcommand("bisect", "Prints the commands that find an event's commit");
  add_store_option(*app, flags->store);
  app->add_option("event", flags->event, "An event's id, or how it begins")->required();
  app->add_option("--build", flags->commands.build, "Command that builds a checkout")->capture_default_str();
  app->add_option("--run", flags->commands.run, "Command that `assay ab` measures there")->capture_default_str();
  app->footer("Exit codes: 3 the runs before and after the event do not name different commits.");
  return {app, [flags] { return run_bisect(*flags); }};
}

}  // namespace assay::cli
