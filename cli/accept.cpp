// assay accept: a cluster from audit to training, in stages that are runs of this program, and one table at the end.
#include "harness/fitness/accept/accept.h"

#include "cli/catalogue.h"
#include "cli/command.h"
#include "cli/options.h"
#include "harness/core/clock.h"
#include "harness/core/files.h"
#include "harness/core/secrets.h"
#include "harness/core/streams.h"
#include "harness/fitness/accept/again.h"
#include "harness/fitness/accept/schedule.h"
#include "harness/fitness/accept/stages.h"
#include "harness/record/run_lock.h"
#include "harness/run/run.h"
#include "reports/acceptance/accept.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace assay::cli {

namespace {

namespace fs = std::filesystem;

struct AcceptOptions : accept::Options {
  Outputs outputs;
};

// The table in the acceptance's folder, where the user wants it too, and on the terminal.
void publish(const AcceptOptions& options, const fitness::Acceptance& table, bool with_serials, const fs::path& dir) {
  const report::Document document = report::accept_document(table);
  const std::string json = dump_document(report::accept_json(table, with_serials));
  replace_file(dir / "accept.json", json);
  replace_file(dir / "accept.csv", mask_secrets(report::accept_csv(table)));
  replace_file(dir / "accept.html", report::render_html(document));
  options.outputs.write_json([&] { return json; });
  results_are_stored();
  options.outputs.print(report::accept_screen(table, dir.string()));
}

ExitCode run_accept(const AcceptOptions& options) {
  accept::Request request = accept::make_request(options);
  // Only one of the processes that srun starts accepts.
  if (request.allocation.part != Part::supervisor) return ExitCode::ok;
  request.families = family_names();
  std::unique_ptr<RunLock> lock;
  ChildTrials trials("the stage under way", 5, [&lock] {
    if (lock) lock->refresh();
  });
  std::optional<fitness::AuditedFleet> audit;
  if (request.audits_first) {
    const Clock::time_point began = trials.now();
    audit = accept::audit_hosts(request, trials);
    request.state.seconds = std::chrono::duration<double>(trials.now() - began).count();
    if (!audit) return ExitCode::no_data;
    accept::settle(request, *audit);
  }
  const std::string schedule = accept::schedule_text(request, catalogue());
  if (options.dry_run) {
    show_text(schedule);
    return ExitCode::ok;
  }
  const fs::path dir = !options.resume.empty() ? fs::path(options.resume)
                       : !options.out.empty()  ? fs::path(options.out)
                                               : default_out("accept-");
  if (options.resume.empty()) accept::begin(dir, request.state);
  if (!options.again.empty()) accept::add_again(request, options.again, dir);
  if (audit) accept::keep_audit(request, *audit, dir);
  say_text(schedule);
  lock = std::make_unique<RunLock>(dir);
  const bool with_serials = request.state.with_serials;
  const accept::Result result = accept::run(std::move(request), trials, dir, cache_folder() / "accept-suspicions.json");
  publish(options, result.table, with_serials, dir);
  if (result.table.finished)
    say("assay: table: {}\n", (dir / "accept.html").string());
  else
    say("assay: not complete; continue with: assay accept --resume {}\n", dir.string());
  return result.code();
}

}  // namespace

Command accept_command(CLI::App& root) {
  auto options = std::make_shared<AcceptOptions>();
  CLI::App* app = root.add_subcommand("accept", "Accept a cluster: audit, every host, pairs, collectives, training");
  app->add_option("--hostfile", options->hostfile, "Hosts, one per line; default: those of the Slurm job, or this one")
      ->type_name("FILE");
  app->add_option("--only-passed", options->only_passed, "Accept only the hosts that passed in this acceptance")
      ->type_name("DIR");
  app->add_option("--topology", options->topology,
                  "Leaf switches, as in Slurm's topology.conf; default: what Slurm says")
      ->type_name("FILE")
      ->check(not_empty);
  app->add_option("--level", options->level, "quick or day, or a file like those in configs/accept")
      ->type_name("LEVEL|FILE");
  app->add_option("--floors", options->floors, "A floors file, or the name of one in configs/floors")
      ->type_name("FILE");
  app->add_option("--expect", options->expect, "File that says what each host should have")
      ->type_name("FILE")
      ->check(not_empty);
  app->add_option("--device", options->device, "auto, cpu or cuda; auto uses the GPUs that most hosts have")
      ->type_name("KIND");
  app->add_option("--out", options->out, "Folder to create; default runs/accept-<start>")->type_name("DIR");
  app->add_option("--resume", options->resume, "Continue this acceptance")->type_name("DIR");
  app->add_option("--again", options->again, "With --resume: accept this host once more, as after a repair")
      ->type_name("HOST");
  options->outputs.add_to(*app);
  app->add_flag("--with-serials", options->with_serials, "Show the GPUs' serial numbers");
  app->add_flag("--dry-run", options->dry_run, "Print stages, hosts and times; run nothing");
  return {app, [options] { return run_accept(*options); }};
}

}  // namespace assay::cli
