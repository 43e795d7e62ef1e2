// assay history ack, mute, unmute, expect: what people decide about events.
#include "harness/history/decide.h"
#include "cli/history/history.h"
#include "harness/core/streams.h"

#include <memory>

namespace assay::cli {

namespace {

struct DecisionFlags {
  std::string store;
  history::DecisionRequest given;
};

// A verb with the argument `target`; `decide` is what it does.
std::pair<Command, std::shared_ptr<DecisionFlags>> decision(CLI::App& history, const char* verb, const char* summary,
                                                            const char* target, const char* target_help,
                                                            std::string (*decide)(const std::filesystem::path&,
                                                                                  const history::DecisionRequest&)) {
  auto flags = std::make_shared<DecisionFlags>();
  CLI::App* app = history.add_subcommand(verb, summary);
  add_store_option(*app, flags->store);
  app->add_option(target, flags->given.target, target_help)->required();
  const auto run = [flags, decide] {
    const std::string sentence = decide(store_path(flags->store), flags->given);
    results_are_stored();
    show("{}\n", sentence);
    return ExitCode::ok;
  };
  return {Command(app, run), flags};
}

}  // namespace

Command history_ack_command(CLI::App& history) {
  auto [command, flags] = decision(history, "ack", "Say that somebody knows of an event: it no longer fails checks",
                                   "event", "An event's id, or how it begins", history::acknowledge);
  command.app->add_option("--reason", flags->given.reason, "Why")->required();
  return command;
}

Command history_mute_command(CLI::App& history) {
  auto [command, flags] = decision(history, "mute", "Let series, or an event, fail no check until a day", "pattern",
                                   "Part of series' names, a pattern (* and ?), or an event's id", history::mute);
  command.app->add_option("--until", flags->given.until, "Last night of the mute: 2026-01-31")->required();
  command.app->add_option("--reason", flags->given.reason, "Why")->required();
  return command;
}

Command history_unmute_command(CLI::App& history) {
  auto [command, flags] = decision(history, "unmute", "End a mute", "pattern", "As it was muted", history::unmute);
  command.app->add_option("--reason", flags->given.reason, "Why");
  return command;
}

Command history_expect_command(CLI::App& history) {
  auto [command, flags] = decision(history, "expect", "Say that series will change: such events fail no check",
                                   "pattern", "Part of series' names, or a pattern (* and ?)", history::expect);
  command.app->add_option("--until", flags->given.until, "Last night of the changes (two weeks from the newest)");
  command.app->add_option("--reason", flags->given.reason, "Why")->required();
  return command;
}

}  // namespace assay::cli
