// The verbs of the command line, in the groups of the help text.
#include "cli/command.h"

#include <initializer_list>
#include <memory>

namespace assay::cli {

namespace {

struct Group {
  const char* name;  // empty: started by other commands, not by users
  std::initializer_list<Verb> verbs;
};

// A verb has one word here and a file of its own.
const Group groups[] = {
    {"Measure", {run_command, list_command, env_command, bench_command, crosscheck_command}},
    {"Judge", {audit_command, gate_command, accept_command, check_command, floors_command, reference_command}},
    {"Understand", {watch_command, report_command, diagnose_command, compare_command, ab_command, history_command}},
    {"Plan", {estimate_command, size_command, project_command}},
    {"Files", {import_command, export_command}},
    {"", {worker_command, agent_command, each_host_command, remote_shell_command, gate_test_command}}};

constexpr const char* when_to_use =
    "To judge a machine: audit it when something looks wrong (seconds; it measures nothing), gate it before\n"
    "each job (at most the budget), accept a cluster when it is new or repaired (minutes to hours), and check\n"
    "runs that you already have, as in CI. `assay VERB --help` lists the flags.";

}  // namespace

Command with_verbs(CLI::App& app, std::initializer_list<Verb> verbs) {
  app.require_subcommand(1);
  auto table = std::make_shared<std::vector<Command>>();
  for (const Verb make : verbs) table->push_back(make(app));
  return {&app, [table] {
            for (const Command& verb : *table)
              if (verb.app->parsed()) return verb.run();
            return static_cast<int>(ExitCode::usage);  // not reached: a verb is required
          }};
}

std::vector<Command> add_verbs(CLI::App& root) {
  std::vector<Command> table;
  for (const Group& group : groups)
    for (const Verb make : group.verbs) {
      table.push_back(make(root));
      table.back().app->group(group.name);
    }
  root.footer(when_to_use);
  return table;
}

}  // namespace assay::cli
