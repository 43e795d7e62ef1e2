// step_profile MODEL.json [precision=f32] [micro_batch=4] [seq=512] [checkpointing=none] [accumulate=1] [steps=3]
// Runs training steps on the CPU; prints where their time goes, and their planned and measured memory.
#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/core/rng.h"
#include "harness/json/json.h"
#include "harness/trace/trace.h"
#include "workloads/nn/training_step.h"
#include "workloads/resnet/resnet.h"
#include "workloads/transformer/transformer.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>

using namespace assay;

namespace {

double resident(const char* field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field)) return 1024.0 * std::stod(line.substr(line.find(':') + 1));
  return 0;
}

// CPU seconds of all threads: hardly disturbed by other programs if waiting threads sleep (OMP_WAIT_POLICY=passive).
double cpu_seconds() { return seconds_on(CLOCK_PROCESS_CPUTIME_ID); }

void fill(const nn::Inputs& inputs, std::int64_t classes) {
  const Rng rng(1, "profile");
  std::uint64_t at = 0;
  const auto draw = [&] { return static_cast<std::int32_t>(rng.below(at++, static_cast<std::uint64_t>(classes))); };
  for (std::int32_t& id : inputs.ids) id = draw();
  for (std::int32_t& target : inputs.targets) target = draw();
  for (float& pixel : inputs.images) pixel = static_cast<float>(rng.normal(at++));
  if (inputs.lengths.empty()) return;
  const auto seq = static_cast<std::int32_t>(inputs.ids.size() / inputs.lengths.size());
  std::fill(inputs.lengths.begin(), inputs.lengths.end(), seq);
}

int profile(int count, char** words) {
  const std::string path = words[1];
  std::map<std::string, std::string> settings = {{"precision", "f32"},      {"micro_batch", "4"}, {"seq", "512"},
                                                 {"checkpointing", "none"}, {"accumulate", "1"},  {"steps", "3"}};
  for (int i = 2; i < count; ++i) {
    const std::string word = words[i];
    settings[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  }
  const Json json = read_json(path);
  const auto model = json["family"] == "resnet"
                         ? resnet::make_resnet(resnet::read_config(json, path, path))
                         : transformer::make_transformer(transformer::read_config(json, path, path));
  nn::StepOptions options;
  options.precision = nn::precision_from(settings["precision"]);
  options.batch = {.samples = std::stoll(settings["micro_batch"]),
                   .seq = model->images() ? 0 : std::stoll(settings["seq"])};
  options.accumulate = std::stoll(settings["accumulate"]);
  options.checkpointing = settings["checkpointing"] == "full" ? nn::Checkpointing::full : nn::Checkpointing::none;
  options.optimizer = model->images() ? ops::OptimizerKind::sgd : ops::OptimizerKind::adamw;
  const auto device = make_device(DeviceKind::cpu, 0);
  const auto comm = make_self_communicator();
  nn::TrainingStep step(*model, options, *device, ops::backend_for(*device), *comm);
  const double before = resident("VmRSS");
  step.allocate();
  step.initialise(1);
  for (std::int64_t m = 0; m < options.accumulate; ++m) fill(step.inputs(m), model->input().classes);
  fmt::print("planned {}\n", step.memory().text());
  trace::start_timeline();
  const int steps = std::stoi(settings["steps"]);
  std::vector<double> seconds;
  std::map<std::string, std::pair<double, int>> layers;
  const std::regex number("\\.[0-9]+(?=\\.|$)");
  for (int i = 0; i < steps; ++i) {
    trace::drain_timeline();
    const Clock::time_point start = Clock::now();
    const double cpu = cpu_seconds();
    const nn::StepResult result = step.step(1e-4);
    std::fflush(stdout);
    seconds.push_back(seconds_since(start));
    fmt::print(
        "step {}: {:.4f} s, CPU {:.4f} s, loss {:.4f}, norm {:.4f}, forward {:.4f} backward {:.4f} optimizer {:.4f}\n",
        i, seconds.back(), cpu_seconds() - cpu, result.loss, result.gradient_norm, result.forward, result.backward,
        result.optimizer);
    if (i == 0) continue;
    std::string phase;
    std::vector<std::pair<std::int64_t, std::string>> phases;
    const auto entries = trace::drain_timeline();
    for (const trace::Entry& entry : entries)
      if (entry.category == trace::Category::sample) phases.emplace_back(entry.start_ns, entry.name);
    std::sort(phases.begin(), phases.end());
    for (const trace::Entry& entry : entries) {
      if (entry.category != trace::Category::layer) continue;
      const auto at = std::upper_bound(phases.begin(), phases.end(), std::pair(entry.start_ns, std::string("~")));
      auto& [time, times] = layers[(at == phases.begin() ? std::string("?") : std::prev(at)->second) + " " +
                                   std::regex_replace(entry.name, number, ".N")];
      time += 1e-9 * static_cast<double>(entry.duration_ns) / (steps - 1);
      ++times;
    }
  }
  const double grown = resident("VmHWM") - before, planned = static_cast<double>(step.memory().total());
  fmt::print("measured growth {:.1f} MiB, planned {:.1f} MiB: {:+.2f} %\n", grown / 1048576, planned / 1048576,
             100 * (grown / planned - 1));
  std::vector<std::pair<std::string, std::pair<double, int>>> list(layers.begin(), layers.end());
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
  double total = 0;
  for (const auto& [name, sum] : list) total += sum.first;
  for (const auto& [name, sum] : list)
    if (sum.first > 0.002 * total)
      fmt::print("{:9.2f} ms {:5.1f} %  {:4d} x  {}\n", 1e3 * sum.first, 100 * sum.first / total,
                 sum.second / std::max(1, steps - 1), name);
  fmt::print("{}\n", step.implementations());
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) return fmt::print(stderr, "step_profile MODEL.json [name=value]...\n"), 2;
  try {
    return profile(count, words);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.code());
  }
}
