// assay gate: is this machine fit for the next job? The flags, and what becomes of errors in other systems' exit codes.
#include "harness/fitness/gate/answer.h"

#include "cli/catalogue.h"
#include "cli/command.h"
#include "cli/options.h"
#include "harness/core/configs.h"
#include "harness/core/nearest.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/core/words.h"
#include "harness/device/settings.h"
#include "harness/fitness/gate/allotment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

namespace assay::cli {

namespace {

using gate::ExitStyle;

struct GateOptions {
  std::string budget = "30s", gpus, floors, inject, style = "assay";
  bool list = false;
  Outputs outputs;
};

double budget_of(const std::string& text) {
  constexpr double max_budget = 86400;
  const double seconds = parse_flag("gate: --budget", text, parse_seconds);
  if (seconds <= 0 || seconds > max_budget)
    throw UsageError(fmt::format("gate: --budget {}: must be above 0 and at most a day", one_line(text)));
  return seconds;
}

const gate::Code* fault_of(const gate::Catalogue& catalogue, const std::string& word) {
  const gate::Code* code = catalogue.find(word);
  if (code && code->inject) return code;
  std::vector<std::string> known;
  for (const gate::Code& one : catalogue.codes)
    if (one.inject) known.push_back(one.id);
  if (code) throw UsageError(fmt::format("gate: --inject {}: this one cannot be injected", in_quotes(word)));
  throw UsageError(fmt::format("gate: --inject {}: unknown fault{}; assay gate --list shows all", in_quotes(word),
                               suggestion(word, known)));
}

int run(const GateOptions& options, ExitStyle style) {
  gate::Request request;
  request.start = Clock::now();
  request.remark = gate::leave_environment(command_line());
  gate::refuse_untrusted(options.floors);
  request.catalogue = gate::load_catalogue(configs_dir() / "gate.json");
  if (options.list) {
    options.outputs.write_json([&] { return list_json(request.catalogue); });
    options.outputs.print(list_text(request.catalogue));
    return 0;
  }
  for (const DeviceKind device : {DeviceKind::cpu, DeviceKind::cuda}) refuse_other_precision(device);
  request.budget = budget_of(options.budget);
  request.gpus = options.gpus;
  request.families = family_names();
  if (!request.gpus.empty()) (void)gate::gpu_words("gate: --gpus", request.gpus);
  if (!options.floors.empty()) request.floors = fitness::find_floors(options.floors);
  if (!options.inject.empty()) request.inject = fault_of(request.catalogue, options.inject);
  if (request.inject && *request.inject->inject == "slow-rank" && !request.floors)
    throw UsageError(fmt::format("gate: --inject {}: without --floors nothing is too slow", request.inject->id));
  const gate::Answer answer = run_gate(request);
  options.outputs.write_json([&] { return answer_json(request, answer); });
  options.outputs.print(answer_text(request, answer, style));
  return gate::exit_code(answer.decision.verdict, style);
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
  app->add_option("--budget", options->budget, "Time until the verdict; tests still running are killed")
      ->type_name("TIME")
      ->capture_default_str();
  app->add_option("--gpus", options->gpus, "The job's GPUs, by index or UUID; default: as the launcher says, else all")
      ->type_name("ID,...")
      ->check(not_empty);
  app->add_option("--floors", options->floors, "Judge figures too, by a floors file or one of configs/floors")
      ->type_name("FILE")
      ->check(not_empty);
  app->add_option("--inject", options->inject, "Show a fault instead of this machine's state; --list has all")
      ->type_name("FAULT")
      ->check(not_empty);
  app->add_option("--exit-style", options->style, "Print and exit as node-problem-detector or Nagios expects")
      ->check(CLI::IsMember(all_words<ExitStyle>()))
      ->capture_default_str();
  app->add_flag("--list", options->list, "List what can be found, with codes");
  options->outputs.add_to(*app);
  return {app, [options] { return run_in_style(*options); }};
}

}  // namespace assay::cli
