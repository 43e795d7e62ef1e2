// assay bench: the micro-benchmarks under Google Benchmark, with Google Benchmark's flags.
#include "harness/bench/bench.h"
#include "cli/catalogue.h"
#include "cli/command.h"
#include "harness/core/configs.h"
#include "harness/device/cpu/team.h"
#include "harness/device/device.h"
#include "harness/device/settings.h"
#include "harness/plan/machine.h"
#include "harness/run/run.h"

#include <algorithm>

namespace assay::cli {

namespace {

// The defaults of every micro-benchmark family that a CPU can run.
std::vector<PlannedCase> default_cases() {
  PlanRequest request;
  request.device = DeviceKind::cpu;
  request.ranks = {1};
  request.configs = configs_dir();
  const auto is_command = [](const ParamSpec& spec) { return spec.shell == ParamSpec::Shell::command; };
  for (const Family& family : catalogue())
    if (!family.workload && std::ranges::none_of(family.params, is_command) &&
        std::ranges::find(family.devices, DeviceKind::cpu) != family.devices.end())
      request.targets.push_back(family.name);
  return expand_plan(request, catalogue(), machine_limits()).cases;
}

}  // namespace

Command bench_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand("bench", "Run the micro-benchmarks under Google Benchmark, with its flags");
  app->set_help_flag();  // Google Benchmark explains its flags itself
  app->prefix_command();
  return {app, [app] {
            refuse_other_precision(DeviceKind::cpu);
            cpu::restart_on(cpu::rank_cpus());  // it measures in this process
            BenchRequest request;
            request.flags = app->remaining();
            request.cases = default_cases();
            request.device = [] { return make_device(DeviceKind::cpu, 0); };
            request.cache_dir = cache_folder();
            return run_benchmarks(request);
          }};
}

}  // namespace assay::cli
