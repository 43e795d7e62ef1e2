// assay gate-test: a test of `assay gate` itself, in a process that it can kill.
#include "cli/command.h"
#include "harness/core/error.h"
#include "harness/fitness/gate/own_tests.h"
#include "harness/json/members.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

namespace assay::cli {

namespace {

struct GateTestOptions {
  std::string name, folder, fault, expect;
};

ExitCode run(const GateTestOptions& options) {
  if (options.fault == "hang")
    while (true) ::pause();
  if (options.fault == "crash") std::abort();
  if (options.name == "disk") return gate::disk_holds(options.folder, options.fault) ? ExitCode::ok : ExitCode::failed;
  if (options.name != "audit") throw UsageError(fmt::format("gate-test: no test {}", options.name));
  fmt::print("{}", dump_document(json_of(gate::inspect_machine(options.expect))));
  return ExitCode::ok;
}

}  // namespace

Command gate_test_command(CLI::App& root) {
  auto options = std::make_shared<GateTestOptions>();
  CLI::App* app = root.add_subcommand("gate-test", "Started by assay gate for each of its own tests");
  app->add_option("name", options->name, "audit or disk")->required();
  app->add_option("fault", options->fault, "hang, crash, flip, full");
  app->add_option("--folder", options->folder, "Where the disk test writes");
  app->add_option("--expect", options->expect, "What the machine should have");
  return {app, [options] { return run(*options); }};
}

}  // namespace assay::cli
