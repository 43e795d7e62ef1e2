// assay audit: what is broken or badly set up, on this machine or on many hosts.
#include "cli/audit_fleet.h"
#include "cli/audit_log.h"
#include "cli/command.h"
#include "cli/env.h"
#include "harness/core/units.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

namespace assay::cli {

namespace {

struct AuditOptions {
  AuditOptions() { here.audit = true; }

  Description here;
  std::string hostfile, names, timeout, log;
  std::vector<std::string> runs;
};

// Refuses flags that ask about a machine: a log has only its messages.
ExitCode log_only(const AuditOptions& options) {
  for (const auto& [given, flag] : {std::pair(!options.here.expect.empty(), "--expect"),
                                    {!options.hostfile.empty(), "--hostfile"},
                                    {!options.names.empty(), "--hosts"},
                                    {!options.timeout.empty(), "--timeout"},
                                    {!options.runs.empty(), "--runs"},
                                    {options.here.with_serials, "--with-serials"},
                                    {options.here.with_bmc, "--with-bmc-log"}})
    if (given) throw UsageError(fmt::format("audit: {} asks about a machine, and --log has only its messages", flag));
  return audit_log_file(options.log, options.here.outputs);
}

ExitCode run_audit(const AuditOptions& options) {
  if (!options.log.empty()) return log_only(options);
  const auto hosts = options.names.empty() ? hosts_to_audit(options.hostfile)
                                           : Hosts{options.hostfile, options.names, {}}.allocation();
  if (!hosts) {
    if (!options.runs.empty()) throw UsageError("audit: --runs compares hosts: name them in --hostfile");
    return options.here.run();
  }
  FleetOptions fleet{.with_serials = options.here.with_serials,
                     .with_bmc = options.here.with_bmc,
                     .expect = options.here.expect,
                     .runs = options.runs};
  if (!options.timeout.empty()) fleet.timeout_seconds = parse_timeout("audit: --timeout", options.timeout);
  return audit_hosts(*hosts, fleet, options.here.outputs);
}

}  // namespace

Command audit_command(CLI::App& root) {
  auto options = std::make_shared<AuditOptions>();
  CLI::App* app = root.add_subcommand("audit", "Find what is broken or badly set up, here or on many hosts");
  app->add_option("--hostfile", options->hostfile,
                  "Audit and compare these hosts; default: those of the Slurm job, or this one")
      ->type_name("FILE");
  app->add_option("--hosts", options->names, "Use only these hosts of the hostfile or the Slurm job")
      ->type_name("HOST,...");
  app->add_option("--log", options->log, "Audit this kernel's log instead of a machine (- for stdin)")
      ->type_name("FILE")
      ->check(not_empty);
  app->add_option("--timeout", options->timeout, "Time limit of each host's audit (60s)")->type_name("TIME");
  app->add_option("--runs", options->runs,
                  "Runs with --each-host on these hosts, to say which figure a difference moves")
      ->type_name("DIR");
  app->add_flag("--with-serials", options->here.with_serials, "Show the serial numbers of hosts and GPUs");
  app->add_flag("--with-bmc-log", options->here.with_bmc,
                "Add to the JSON the newest entries of the management controller's event log (ipmitool, as root)");
  options->here.add_to(*app);
  app->footer(
      "Measures nothing. Exit codes: 1 a fault, less than expected, or a host without an answer; 3 a log without a "
      "message of the kernel, or an expectation that could not be judged.");
  return {app, [options] { return run_audit(*options); }};
}

}  // namespace assay::cli
