// assay history bisect: which commit was it?
#include "harness/history/blame/bisect.h"
#include "cli/history/history.h"
#include "harness/core/streams.h"
#include "harness/figures/printed.h"
#include "harness/history/event_json.h"

#include <memory>

namespace assay::cli {

namespace {

struct BisectFlags {
  std::string store, event;
  JudgeFlags judge;
  history::BisectCommands commands;
};

ExitCode run_bisect(const BisectFlags& flags) {
  flags.judge.options("history bisect");  // says first what is wrong with them
  store::Store store = store::Store::open_existing(store_path(flags.store));
  const history::Options options = flags.judge.options("history bisect", store, history::OtherSettings::counts);
  const history::History history = history::read_history(store, options);
  const auto known = history::known_changes(history);
  const history::Reported& event = history::reported_named(known, flags.event, "history bisect");
  history::BisectCommands asked = flags.commands;
  history::look_up(asked, event.document, history.series);
  const auto commands = history::bisect_commands(event.document, asked);
  for (const std::string& command : commands) show("{}\n", command);
  if (!commands.empty()) return ExitCode::ok;
  say("assay: history bisect: {}: the runs on both sides do not name different commits\n", event.id);
  return ExitCode::no_data;
}

}  // namespace

Command history_bisect_command(CLI::App& history) {
  auto flags = std::make_shared<BisectFlags>();
  CLI::App* app = history.add_subcommand("bisect", "Print the commands that find the commit of an event or a suspect");
  add_store_option(*app, flags->store);
  app->add_option("event", flags->event, "An event's or suspect's id, or how it begins")->required();
  app->add_option("--build", flags->commands.build, "Command that builds a checkout")->capture_default_str();
  app->add_option("--run", flags->commands.run, "Command that `assay ab` measures there")->capture_default_str();
  app->add_option("--metric", flags->commands.metric, "Figure that `assay ab` judges: time, lines, or NAME, see below");
  flags->judge.add_to(*app);
  app->footer(std::string("Exit codes: 3 the runs before and after the event do not name different commits.\n\n") +
              metric_grammar);
  return {app, [flags] { return run_bisect(*flags); }};
}

}  // namespace assay::cli
