// assay watch: its flags. harness/watch starts the job, watches it and tells what limits it.
#include "harness/watch/watch.h"

#include "cli/command.h"
#include "cli/options.h"
#include "harness/core/units.h"
#include "harness/kineto/window.h"
#include "harness/machine/hardware.h"
#include "harness/run/flags.h"
#include "harness/run/run.h"
#include "reports/sizing/candidates.h"

#include <memory>

namespace assay::cli {

namespace {

struct WatchOptions {
  watch::WatchRequest request;
  std::string items, flops, for_time, out;
  std::vector<std::string> labels, join;
  Prices prices;
  bool no_window = false;
};

constexpr const char* watch_footer =
    "Runs CMD with this terminal and environment, passes signals on, and ends with its exit code (127, 126, 125 where\n"
    "it could not be started, as env). In Python processes the steps of torch.optim optimizers are timed: what waits\n"
    "for data, for other ranks, for checkpoints. SIGUSR1 shows where each rank is. Everything is printed to stderr.";

double parse_amount(const std::string& flag, const std::string& text) {
  const double value = parse_flag("watch: " + flag, text, parse_real);
  if (!(value > 0)) throw UsageError(fmt::format("watch: {}: {} is not above 0", flag, text));
  return value;
}

// The cheapest machines that have what the job needs of its GPUs, as `watch` asks for them.
std::optional<watch::CheapestGpu> cheapest_for(const report::PriceSource& prices, const watch::SmallerGpu& need) {
  const auto& sheets = shipped_hardware();
  const HardwareSheet* own = find_hardware(sheets, need.name);
  const auto peak = own ? own->peak.find(need.dtype) : std::map<std::string, double>::const_iterator();
  const double flops = own && peak != own->peak.end() ? need.share * peak->second : 0;
  if (flops <= 0) return std::nullopt;  // a smaller one might be too slow
  const auto found =
      report::sizing::cheapest_that_holds(prices.files, sheets, need.count, need.bytes, need.dtype, flops);
  if (!found) return std::nullopt;
  const auto& offer = found->offer;
  return watch::CheapestGpu{
      found->sheet == own,
      fmt::format("{} ({}) is the cheapest that holds its memory and 10 % more, at {:.2f} USD/h of {}", offer.machine,
                  found->sheet->name, offer.usd_per_hour, offer.date.empty() ? "unknown date" : offer.date)};
}

int run_watch(const WatchOptions& options) {
  watch::WatchRequest request = options.request;
  if (request.words.empty() && options.join.empty())
    throw UsageError("watch: no command: assay watch -- python train.py");
  if (!options.items.empty()) request.items = parse_amount("--items", options.items);
  if (!options.flops.empty()) request.flops = parse_amount("--flops", options.flops);
  if (!options.for_time.empty()) request.for_seconds = parse_timeout("watch: --for", options.for_time);
  request.labels = parse_labels(options.labels);
  if (options.prices.file) (void)report::load_prices(options.prices);  // a bad file is told before the job runs
  request.cheapest = [&options](const watch::SmallerGpu& need) {
    return cheapest_for(report::load_prices(options.prices), need);
  };
  if (!options.no_window) request.traces = kineto::trace_reader();
  request.out = options.out.empty() ? default_out() : std::filesystem::path(options.out);
  if (!options.out.empty() && std::filesystem::exists(request.out) && !std::filesystem::is_empty(request.out))
    throw UsageError(fmt::format("watch: --out {}: is not empty", options.out));
  request.command_line = command_line();
  if (!options.join.empty()) {
    if (!request.words.empty()) throw UsageError("watch: --join is of runs that have ended: it takes no command");
    return static_cast<int>(watch::show_joined(request, {options.join.begin(), options.join.end()}));
  }
  return watch::watch(request);
}

}  // namespace

Command watch_command(CLI::App& root) {
  auto options = std::make_shared<WatchOptions>();
  CLI::App* app = root.add_subcommand("watch", "Run your own job, and see what its steps wait for");
  app->add_option("--name", options->request.name, "What to call the job; by default its script")->type_name("NAME");
  app->add_option("--items", options->items, "What all ranks process in a step: its rate is then the figure")
      ->type_name("N");
  app->add_option("--unit", options->request.unit, "What these are: tokens, img, ...")
      ->capture_default_str()
      ->type_name("UNIT");
  app->add_option("--flops", options->flops, "FLOPs of a step of all ranks")->type_name("F");
  app->add_option("--for", options->for_time, "Watch for this time only, then let the job go on")->type_name("TIME");
  app->add_option("--prices", options->prices.file, "Prices of machines, for what a smaller one costs")
      ->type_name("FILE");
  app->add_flag("--no-window", options->no_window, "Do not record three steps by torch.profiler");
  app->add_option("--label", options->labels, "Label the record; may be repeated")
      ->allow_extra_args(false)
      ->type_name("K=V");
  app->add_option("--out", options->out, "Create this run directory; default runs/<start>")->type_name("DIR");
  app->add_option("--join", options->join, "Show a job on several hosts: the runs that the watch of each has written")
      ->type_name("DIR...");
  app->add_option("command", options->request.words, "The command and its words, behind --")->type_name("CMD...");
  app->footer(watch_footer);
  return {app, [options] { return run_watch(*options); }};
}

}  // namespace assay::cli
