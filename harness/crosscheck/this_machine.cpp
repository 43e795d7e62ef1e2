// The tools and this program, run as children.
#include "harness/core/error.h"
#include "harness/core/module.h"
#include "harness/core/program.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/crosscheck/crosscheck.h"
#include "harness/process/process.h"
#include "harness/process/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <csignal>
#include <utility>

namespace assay::crosscheck {

namespace fs = std::filesystem;

namespace {

constexpr double limit_seconds = 600;

Variables variables() {
  Variables all = inherited_variables();               // one host: the tools start no others
  all.try_emplace("CUDA_DEVICE_ORDER", "PCI_BUS_ID");  // as our workers have it
  return all;
}

std::string output_of(const std::vector<std::string>& command) {
  ProcessRun run;
  run.process = {.words = command, .variables = variables(), .death_signal = SIGTERM};
  run.limit_seconds = limit_seconds;
  run.ends_beyond = run.merged = true;
  FinishedProcess done = run_process(run);
  if (done.ended() && done.problem.empty()) return std::move(done.output);
  const std::string name = fs::path(command.front()).filename().string();
  if (done.stopped == Stopped::late)
    throw Error(fmt::format("crosscheck: {} has not ended after {}", name, format_seconds(limit_seconds)));
  if (done.stopped == Stopped::too_long)
    throw Error(
        fmt::format("crosscheck: {} printed more than {}", name, format_bytes(static_cast<double>(run.max_output))));
  const std::string tail = tail_of(done.output, 300);
  throw Error(
      fmt::format("crosscheck: {}: {}: {}", fmt::join(command, " "), done.problem, tail.substr(tail.rfind('\n') + 1)));
}

RunData run_here(const fs::path& plan) {
  const fs::path out = plan.parent_path() / "run";
  output_of({program_command().string(), "run", plan.string(), "--device", "cuda", "--out", out.string()});
  RunData run = read_run(out);
  fs::remove_all(out);
  return run;
}

}  // namespace

Machine this_machine() {
  return {.find = find_program,
          .gpus =
              [] {
                return Module::find("cuda").empty() ? CudaProbe{0, "this build has no CUDA module"} : probe_cuda();
              },
          .printed = output_of,
          .run = run_here};
}

}  // namespace assay::crosscheck
