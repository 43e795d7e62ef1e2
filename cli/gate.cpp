// assay gate: is this machine fit for the next job? The flags, and what becomes of errors in other systems' exit codes.
#include "harness/fitness/gate/answer.h"

#include "cli/catalogue.h"
#include "cli/command.h"
#include "cli/options.h"
#include "harness/core/configs.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/core/words.h"
#include "harness/device/settings.h"
#include "harness/fitness/gate/allotment.h"
#include "harness/fitness/gate/job.h"
#include "harness/machine/expectation.h"

#include <fmt/format.h>

#include <memory>

namespace assay::cli {

namespace {

using gate::ExitStyle;

struct GateOptions {
  std::string budget, gpus, floors, hostfile, expect, policy, profile, inject, style = "assay";
  bool list = false, alone = false, observe = false, reset_fuse = false;
  Outputs outputs;
};

int run(const GateOptions& options, ExitStyle style) {
  gate::Request request;
  request.start = Clock::now();
  request.remarks.push_back(gate::leave_environment(command_line()));
  gate::refuse_untrusted(options.floors, {{"--expect", options.expect}, {"--policy", options.policy}});
  request.catalogue = gate::load_catalogue(configs_dir() / "gate.json");
  if (options.list) {
    options.outputs.write_json([&] { return list_json(request.catalogue); });
    options.outputs.print(list_text(request.catalogue));
    return 0;
  }
  if (!options.policy.empty()) {
    request.policy = gate::read_policy(options.policy, request.catalogue);
    gate::apply(*request.policy, request.catalogue);
  }
  if (options.reset_fuse) {
    const gate::FuseAnswer was = gate::reset_fuse(request.policy);
    options.outputs.write_json([&] { return reset_json(was); });
    options.outputs.print(reset_text(was));
    return 0;
  }
  for (const DeviceKind device : {DeviceKind::cpu, DeviceKind::cuda}) refuse_other_precision(device);
  const auto* profile = options.profile.empty() ? nullptr : &request.catalogue.use_profile(options.profile);
  request.profile = options.profile;
  request.budget = gate::budget_of(options.budget, profile);
  request.observe = options.observe, request.expect = options.expect;
  if (!request.expect.empty()) (void)read_expectation(request.expect);
  request.gpus = options.gpus;
  request.families = family_names();
  if (!request.gpus.empty()) (void)gate::gpu_words("gate: --gpus", request.gpus);
  if (!options.floors.empty()) request.floors = fitness::find_floors(options.floors);
  if (!options.inject.empty()) request.inject = &request.catalogue.to_inject(options.inject);
  if (request.inject && *request.inject->inject == "slow-rank" && !request.floors)
    throw UsageError(fmt::format("gate: --inject {}: without --floors nothing is too slow", request.inject->id));
  const auto job = options.alone ? std::nullopt : gate::find_job(options.hostfile);
  if (job && job->part == Part::bystander) {
    say("assay: gate: rank {}: rank 0 judges the hosts of {}\n", job->rank, job->origin);
    return 0;
  }
  if (!job && !options.alone) request.remarks.push_back(gate::why_only_here());
  const gate::Answer answer = job ? run_job_gate(request, *job, options.hostfile) : run_gate(request);
  options.outputs.write_json([&] { return answer_json(request, answer); });
  options.outputs.print(answer_text(request, answer, style));
  return options.observe ? 0 : gate::exit_code(answer.decision.verdict, style);
}

// A check that could not run is "unknown" to Nagios and node-problem-detector, whose code for that is not ours.
int run_in_style(const GateOptions& options) {
  const ExitStyle style = from_word<ExitStyle>(options.style).value_or(ExitStyle::assay);
  if (style == ExitStyle::assay || options.list) return run(options, style);
  try {
    return run(options, style);
  } catch (const Error& error) {
    show_text(gate::unknown_text(error.what(), style));
    return gate::exit_code(Fitness::unknown, style);
  }
}

}  // namespace

Command gate_command(CLI::App& root) {
  auto options = std::make_shared<GateOptions>();
  CLI::App* app = root.add_subcommand("gate", "Decide within a budget whether this machine is fit for the next job");
  const auto option = [&](const char* flag, std::string& to, const char* type, const char* help) {
    app->add_option(flag, to, help)->type_name(type)->check(not_empty);
  };
  option("--budget", options->budget, "TIME", "Time until the verdict; tests still running are killed (30s)");
  option("--profile", options->profile, "NAME", "Budget and tests of a moment: prolog, epilog, health or idle");
  option("--gpus", options->gpus, "ID,...",
         "The job's GPUs, by index or UUID; default: as the launcher says, else all");
  option("--floors", options->floors, "FILE", "Judge figures too, by a floors file or one of configs/floors");
  option("--expect", options->expect, "FILE", "Judge what the machine has, by a file of what it should have");
  option("--policy", options->policy, "FILE", "What drains at this site, and how many machines at most");
  option("--hostfile", options->hostfile, "FILE",
         "Judge these hosts and what is between them; so do the tasks of srun");
  app->add_flag("--alone", options->alone, "Judge this host alone, although srun has started tasks on several");
  app->add_flag("--observe", options->observe, "Judge and remember, but exit with 0");
  app->add_flag("--reset-fuse", options->reset_fuse, "Let the gates of --policy drain again after too many drains");
  option("--inject", options->inject, "FAULT", "Show a fault instead of this machine's state; --list has all");
  app->add_option("--exit-style", options->style, "Print and exit as node-problem-detector or Nagios expects")
      ->check(CLI::IsMember(all_words<ExitStyle>()))
      ->capture_default_str();
  app->add_flag("--list", options->list, "List what can be found, with codes");
  options->outputs.add_to(*app);
  return {app, [options] { return run_in_style(*options); }};
}

}  // namespace assay::cli
