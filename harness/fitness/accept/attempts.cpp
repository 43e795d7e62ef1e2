#include "harness/fitness/accept/attempts.h"

#include "harness/core/streams.h"
#include "harness/core/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace assay::accept {

namespace fs = std::filesystem;

namespace {

constexpr double patience_seconds = 60;  // for a run that was asked to end

bool is_in(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

Attempts::Attempts(Request& request, Trials& trials, fs::path dir)
    : request_(request), trials_(trials), dir_(std::move(dir)) {}

Trial Attempts::trial_of(std::string_view stage, const Attempt& attempt, const std::vector<std::string>& hosts,
                         const std::string& filter, const std::set<int>& without) const {
  std::string slots;  // as many on each host: hosts with more would take the ranks of others
  for (const std::string& name : hosts)
    slots += fmt::format("{}{}:{}", slots.empty() ? "" : ",", name, request_.ranks_per_host);
  std::optional<int> ranks = request_.ranks_of(stage, hosts.size());
  Variables environment = variables_of_launcher();
  if (!without.empty() && ranks) {
    std::vector<std::string> left;
    for (int gpu = 0; gpu < *ranks; ++gpu)
      if (!without.contains(gpu)) left.push_back(std::to_string(gpu));
    ranks = static_cast<int>(left.size());
    environment["ASSAY_GPUS"] = joined(left, ",");
  }
  return {.plan = request_.level.plans.at(std::string(stage)),
          .filter = filter,
          .device = request_.state.device,
          .ranks = ranks,
          .hosts = request_.allocation.only_here() ? std::string() : slots,
          .hostfile = request_.state.hostfile,
          .each_host = runs_alone(stage),
          .out = dir_ / attempt.dir,
          .environment = std::move(environment),
          .grace_seconds = patience_seconds,
          .log = dir_ / (attempt.dir + ".log"),
          .on_errors = say_text};
}

const Attempt* Attempts::make(std::string_view stage, std::size_t number, const std::vector<std::string>& hosts,
                              const std::string& filter, const std::set<int>& without) {
  std::vector<Attempt>& attempts = request_.state.stages[std::string(stage)];
  if (attempts.size() <= number) {
    attempts.resize(number + 1);
    attempts[number].dir = number == 0 ? std::string(stage) : fmt::format("{}-{}", stage, number + 1);
    attempts[number].hosts = hosts;
    write_state(dir_, request_.state);
  }
  Attempt& one = attempts[number];
  while (!one.done) {
    std::vector<std::string> left = one.hosts;
    std::erase_if(left, [&](const std::string& name) { return one.lost.contains(name); });
    say("assay: {}: {}{}\n", one.dir, plural(left.size(), "host"),
        left.size() < request_.state.hosts.size() ? fmt::format(" ({})", one_line(joined(left))) : "");
    TrialResult result = std::move(trials_.run({trial_of(stage, one, left, filter, without)}).front());
    if (trials_.interrupted()) return nullptr;
    if (result.run) runs_.insert_or_assign(one.dir, std::move(*result.run));
    one.complete = result.complete;
    one.error = one.complete ? "" : one_line(last_lines(result.errors, 1), 1000);
    std::vector<std::string> lost;
    if (!one.complete && result.ended) lost = result.ended->lost;
    std::erase_if(lost, [&](const std::string& name) { return !is_in(left, name); });
    const bool others = lost.size() < left.size();
    if (others)
      for (const std::string& name : lost) one.lost[name] = one.error;
    one.done = lost.empty() || !others || !runs_alone(stage);
    write_state(dir_, request_.state);
  }
  return &one;
}

std::optional<RunData> Attempts::take_run(const Attempt& attempt) {
  if (auto known = runs_.extract(attempt.dir)) return std::move(known.mapped());
  std::error_code none;
  if (!fs::exists(dir_ / attempt.dir / "run.json", none)) return std::nullopt;
  return std::move(read_runs({dir_ / attempt.dir}).front());
}

}  // namespace assay::accept
