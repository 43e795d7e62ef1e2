// assay run: its flags, and --dry-run. harness/run runs the plan.
#include "harness/run/run.h"

#include "cli/catalogue.h"
#include "cli/command.h"
#include "cli/report.h"
#include "harness/core/configs.h"
#include "harness/core/streams.h"
#include "harness/core/units.h"
#include "harness/hosts/placement.h"
#include "harness/plan/machine.h"
#include "harness/process/process.h"
#include "harness/run/dry_run.h"
#include "harness/run/flags.h"

#include <fmt/format.h>

#include <memory>

namespace assay::cli {

namespace {

struct RunOptions {
  RunRequest request;
  // As typed.
  std::vector<std::string> labels, inject;
  std::string device = "auto", ranks, out, resume, timeout;
  Hosts hosts;
  bool dry_run = false, all = false;
};

RunRequest make_request(const RunOptions& options) {
  leave_binding_of_mpirun();
  RunRequest request = options.request;
  if (!options.ranks.empty()) request.plan.ranks = parse_ranks(options.ranks);
  if (!options.timeout.empty()) request.plan.timeout_seconds = parse_timeout("--timeout", options.timeout);
  request.labels = parse_labels(options.labels);
  request.faults = parse_faults(options.inject);
  const bool as_before = options.device == "auto" && !options.resume.empty();
  request.plan.device = as_before ? device_of_run(options.resume) : choose_device(options.device);
  request.plan.configs = configs_dir();
  request.limits = machine_limits();
  if (request.plan.device != DeviceKind::cpu) set_limits_of_gpus(request.limits);
  if (!options.out.empty()) request.out = options.out;
  if (!options.resume.empty()) request.resume = options.resume;
  if (request.out && request.resume)
    throw UsageError("--out and --resume exclude each other: a run is resumed in its own folder");
  request.allocation = options.hosts.allocation();
  request.command_line = command_line();
  request.report = [all = options.all](RunData run, bool drill) { report_finished_run(std::move(run), drill, all); };
  return request;
}

ExitCode run(const RunOptions& options) {
  if (options.request.plan.targets.empty() && options.resume.empty())
    throw UsageError("run: nothing to run: name a plan or a family (assay list shows them)");
  if (options.dry_run && !options.resume.empty())
    throw UsageError("run: --dry-run shows a plan; it cannot be combined with --resume");
  RunRequest request = make_request(options);
  if (request.plan.device == DeviceKind::cuda && !options.dry_run && request.allocation.takes_part())
    request.gpus = require_gpus(options.device);
  const std::vector<HostInfo> hosts = hosts_like_this(request);
  if (!request.each_host) set_limits_of_hosts(request, hosts);
  if (!options.dry_run) return run_plan(request, catalogue());
  // Only one of the processes that a launcher starts prints.
  if (request.allocation.rank == 0)
    show_text(dry_run_text(request, expand_plan(request.plan, catalogue(), request.limits), hosts));
  return ExitCode::ok;
}

}  // namespace

Command run_command(CLI::App& root) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* app = root.add_subcommand("run", "Measure plans or families, and check every answer");
  const auto list = [app](const char* name, std::vector<std::string>& into, const char* help, const char* type) {
    return app->add_option(name, into, help)->allow_extra_args(false)->type_name(type);
  };
  app->add_option(
         "targets", options->request.plan.targets,
         "Names of plans (assay list plans), plan files, families or models, whole or in slices as memory allows;\n"
         "words with \"=\" after a family or model are values of its parameters")
      ->type_name("PLAN|FAMILY|MODEL [PARAM=V1,V2,...]");
  list("--set", options->request.plan.sets,
       "Set parameters in every case of a family; may be repeated, the last one wins", "FAMILY.PARAM=V1,V2,...");
  app->add_option("--filter", options->request.plan.filter, "Run only cases whose key matches this regular expression")
      ->type_name("REGEX");
  app->add_option("--device", options->device, "auto, cpu or cuda; auto uses the GPU if there is one")
      ->type_name("KIND");
  app->add_option("--ranks", options->ranks, "Run at these world sizes instead of the plan's")->type_name("1,2,4");
  app->add_option("--out", options->out, "Create this run directory; default runs/<start>")->type_name("DIR");
  app->add_option("--resume", options->resume, "Complete this run: run only cases without a final record")
      ->type_name("DIR");
  options->hosts.add_to(*app, "Start on these hosts, one per line: HOST [slots=N], as for Open MPI's mpirun");
  list("--label", options->labels, "Label every record; may be repeated", "K=V");
  app->add_flag("--trace", options->request.trace, "Write a Chrome trace of all ranks");
  app->add_flag("--all", options->all, "Print every table at the end, not only one screen");
  app->add_flag("--dry-run", options->dry_run,
                "Print the expanded cases, their bytes, estimated time, and the place of each rank; run nothing");
  app->add_option("--timeout", options->timeout,
                  "Limit the time of each case, instead of a limit derived from its estimate")
      ->type_name("TIME");
  app->add_option("--ended", options->request.ended, "Where to write which hosts were lost, for who started this")
      ->group("");
  app->add_flag("--each-host", options->request.each_host, "Run the plan on every host separately");
  app->add_flag("--share-gpu", options->request.share_gpu, "Let ranks share a GPU; their results are not comparable");
  list("--inject", options->inject,
       "Break something on purpose: crash, hang, slow-rank, wrong-sum, bit-flip, slow-link, oom, corrupt-image, "
       "slow-loader, stall or oversubscribe",
       "FAULT");
  return {app, [options] { return run(*options); }};
}

}  // namespace assay::cli
