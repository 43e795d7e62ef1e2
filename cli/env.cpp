// assay env: describes this machine, what will spoil measurements on it, and whether it has what it should.
#include "cli/command.h"
#include "cli/env_audit.h"
#include "cli/env_fleet.h"
#include "harness/core/configs.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/members.h"
#include "harness/machine/description.h"
#include "harness/machine/environment.h"
#include "harness/machine/expectation.h"
#include "harness/machine/spoilers.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

namespace assay::cli {

namespace {

struct EnvOptions {
  FleetOptions fleet;
  std::string expect, hostfile, timeout, log;
  bool audit = false;
};

// Flags that only make sense with others.
void require_fitting(const EnvOptions& options) {
  for (const auto& [given, flag] : {std::pair(!options.hostfile.empty(), "--hostfile"),
                                    {options.fleet.with_serials, "--with-serials"},
                                    {!options.timeout.empty(), "--timeout"},
                                    {!options.fleet.runs.empty(), "--runs"},
                                    {!options.log.empty(), "--log"}})
    if (given && !options.audit) throw UsageError(fmt::format("env: {} needs --audit", flag));
}

// The log of a machine says nothing of this one, so that what asks about this one or others does not go with it.
ExitCode log_only(const EnvOptions& options) {
  for (const auto& [given, flag] : {std::pair(!options.expect.empty(), "--expect"),
                                    {!options.hostfile.empty(), "--hostfile"},
                                    {options.fleet.with_serials, "--with-serials"}})
    if (given) throw UsageError(fmt::format("env: {} asks about a machine, and --log has only its messages", flag));
  return audit_log_file(options.log, options.fleet.json);
}

ExitCode env(const EnvOptions& options) {
  require_fitting(options);
  if (!options.log.empty()) return log_only(options);
  if (const auto hosts = options.audit ? hosts_to_audit(options.hostfile) : std::nullopt) {
    FleetOptions fleet = options.fleet;
    if (!options.expect.empty()) throw UsageError("env: --expect is about one host: leave it out with several");
    if (!options.timeout.empty()) fleet.timeout_seconds = parse_timeout("env: --timeout", options.timeout);
    return audit_hosts(*hosts, fleet);
  }
  if (!options.fleet.runs.empty()) throw UsageError("env: --runs compares hosts: name them in --hostfile");
  // Read the user's file first: report a bad file before measuring anything.
  const bool expecting = !options.expect.empty();
  const Root root = user_root();
  const auto expectation = expecting ? read_expectation(options.expect, root) : Expectation();

  const auto audit = options.audit ? std::optional(audit_now(root)) : std::nullopt;
  const Machine machine = audit ? audit->machine : probe_machine(root);
  const Json environment = environment_json(machine);
  const std::vector<HardwareSheet> sheets = load_hardware(configs_dir() / "hardware");
  const auto findings = audit ? audit->spoilers : find_spoilers(machine, present_circumstances(root));
  const auto missing = expecting ? shortfalls(expectation, machine, sheets, root) : std::vector<Shortfall>();

  if (options.fleet.json) {
    Json json = {{"schema", 1}};
    json.update(environment);
    json["findings"] = spoilers_json(findings);
    if (audit) {
      AuditedMachine audited = *audit;
      add_identities(audited, root, machine, options.fleet.with_serials);
      json["audit"] = json_of(audited);
    }
    if (expecting)
      json["expect"] = {{"file", options.expect}, {"held", missing.empty()}, {"shortfalls", json_of(missing)}};
    if (!expectation.left_out.empty()) json["expect"]["not_taken_over"] = expectation.left_out;
    fmt::print("{}", dump_document(json, 2));
  } else {
    fmt::print("{}", machine_text(machine, environment["libraries"], sheets));
    // The problems of an audit include the findings.
    audit ? print_audit(*audit) : print_spoilers(findings);
    if (expecting) fmt::print("{}", shortfalls_text(options.expect, expectation, missing));
  }
  if (!missing.empty() || (audit && has_fault(audit->problems))) return ExitCode::failed;
  // What is asked and was not looked at may not hold.
  return expectation.left_out.empty() ? ExitCode::ok : ExitCode::no_data;
}

}  // namespace

Command env_command(CLI::App& root) {
  auto options = std::make_shared<EnvOptions>();
  CLI::App* app = root.add_subcommand("env", "Describe this machine, and what will spoil measurements on it");
  app->add_flag("--json", options->fleet.json, "As JSON");
  app->add_option("--expect", options->expect, "File that says what the machine should have; exit 1 if it has less")
      ->type_name("FILE");
  app->add_flag("--audit", options->audit, "Look for what is broken or set up badly; exit 1 for a fault");
  app->add_option("--hostfile", options->hostfile,
                  "Audit these hosts and compare them; in a Slurm job its hosts are known")
      ->type_name("FILE");
  app->add_option("--log", options->log, "Audit this kernel's log instead of the machine (- for stdin)")
      ->type_name("FILE");
  app->add_option("--timeout", options->timeout, "Time limit of each host's audit (60s)")->type_name("TIME");
  app->add_flag("--with-serials", options->fleet.with_serials, "With the serial numbers of hosts and GPUs");
  app->add_option("--runs", options->fleet.runs,
                  "Runs with --each-host on these hosts, to say which figure a difference moves")
      ->type_name("DIR");
  return {app, [options, app] {
            if (app->count("--expect") > 0 && options->expect.empty()) throw UsageError("env: --expect needs a file");
            return env(*options);
          }};
}

}  // namespace assay::cli
