#include "harness/kineto/job.h"

#include "harness/core/error.h"
#include "harness/core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace assay::kineto {
namespace {

double epoch_seconds(const RankTrace& trace, double seconds) {
  return 1e-9 * static_cast<double>(trace.base_ns) + seconds;
}
double begin_of(const RankTrace& trace) { return epoch_seconds(trace, trace.steps.front().start); }
double end_of(const RankTrace& trace) {
  return epoch_seconds(trace, trace.steps.back().start + trace.steps.back().total);
}

std::string range_of(const RankTrace& trace) {
  return fmt::format("{} to {}", trace.steps.front().number, trace.steps.back().number);
}

void set_ranks(std::vector<RankTrace>& traces) {
  std::map<int, std::string> files;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    RankTrace& trace = traces[i];
    for (const auto& [rank, file] : files)
      if (file == trace.file) throw UsageError(fmt::format("{}: is given twice: a trace is of one rank", file));
    if (!trace.rank) trace.rank = static_cast<int>(i);
    if (trace.world > 0 && *trace.rank >= trace.world)
      throw UsageError(fmt::format("{}: distributedInfo: is of rank {} of {}", trace.file, *trace.rank, trace.world));
    const auto [other, first] = files.emplace(*trace.rank, trace.file);
    if (!first) throw UsageError(fmt::format("{}: is of rank {}, as {} is", trace.file, *trace.rank, other->second));
  }
  std::ranges::sort(traces, {}, &RankTrace::rank);
}

// Throws unless the traces can be of one job.
void check_one_job(const std::vector<RankTrace>& traces) {
  // Clocks of different hosts are set alike by NTP; one host has one clock.
  constexpr double between_hosts = 60;
  const RankTrace& first = traces.front();
  for (const RankTrace& one : traces) {
    const auto refuse = [&](const std::string& why) {
      throw UsageError(fmt::format("{}: is of another job than {}: {}", one.file, first.file, why));
    };
    if (one.world != first.world) refuse(fmt::format("of {} ranks, not {}", one.world, first.world));
    if (one.backend != first.backend)
      refuse(fmt::format("its backend is {}, not {}", in_quotes(one.backend), in_quotes(first.backend)));
    if (one.gpu != first.gpu) refuse(one.gpu ? "it has kernels" : "it has no kernels");
    const double apart = std::max(begin_of(one) - end_of(first), begin_of(first) - end_of(one));
    if (apart > (one.host == first.host ? 0 : between_hosts))
      refuse(fmt::format("its steps are {:.3g} s apart from them", apart));
  }
}

// Leaves the steps that all ranks have.
void keep_common_steps(std::vector<RankTrace>& traces, std::vector<std::string>& remarks) {
  std::map<std::int64_t, std::size_t> times;
  for (const RankTrace& trace : traces)
    for (const TracedStep& step : trace.steps) ++times[step.number];
  std::erase_if(times, [&](const auto& one) { return one.second != traces.size(); });
  if (times.empty())
    throw UsageError(fmt::format("{}: has steps {}, none of those of {}: {}", traces.back().file,
                                 range_of(traces.back()), traces.front().file, range_of(traces.front())));
  std::size_t left_out = 0;
  for (RankTrace& trace : traces)
    left_out += std::erase_if(trace.steps, [&](const TracedStep& step) { return !times.contains(step.number); });
  if (left_out > 0)
    remarks.push_back(
        fmt::format("{} left out: not all ranks have them", plural(static_cast<std::int64_t>(left_out), "step")));
}

watch::Step watched(const TracedStep& step) {
  watch::Step one;
  one.end = step.start + step.total, one.total = step.total;
  one.data_wait = step.data, one.communication = step.communication;
  one.backward = step.backward, one.optimizer = step.optimizer, one.checkpoint = step.checkpoint;
  one.parts = true;
  return one;
}

GpuParts gpu_parts_of(const RankTrace& trace) {
  GpuParts mean{*trace.rank};
  const auto count = static_cast<double>(trace.steps.size());
  for (const TracedStep& step : trace.steps) {
    mean.compute += step.compute / count, mean.communication += step.communication / count;
    mean.copies += step.copies / count, mean.data += step.data / count, mean.host += step.host / count;
  }
  return mean;
}

// The calls of one collective that several ranks made together, rank by rank. By their numbers where all have them;
// else by their order, which needs as many calls on each. Empty if they do not pair.
std::vector<std::vector<const CollectiveCall*>> paired(const std::vector<const std::deque<CollectiveCall>*>& ranks) {
  std::vector<std::vector<const CollectiveCall*>> calls;
  const auto numbered = [](const std::deque<CollectiveCall>* rank) {
    return std::ranges::all_of(*rank, [](const CollectiveCall& call) { return call.sequence >= 0; });
  };
  if (std::ranges::all_of(ranks, numbered)) {
    std::map<std::int64_t, std::vector<const CollectiveCall*>> by_number;
    for (const auto* rank : ranks)
      for (const CollectiveCall& call : *rank) by_number[call.sequence].push_back(&call);
    for (auto& [number, together] : by_number)
      if (together.size() == ranks.size()) calls.push_back(std::move(together));
    return calls;
  }
  for (const auto* rank : ranks)
    if (rank->size() != ranks.front()->size()) return {};
  for (std::size_t i = 0; i < ranks.front()->size(); ++i) {
    calls.emplace_back();
    for (const auto* rank : ranks) calls.back().push_back(&(*rank)[i]);
  }
  return calls;
}

void add_collectives(Job& job) {
  std::map<std::string, std::vector<std::size_t>> kinds;  // the ranks that call each
  for (std::size_t r = 0; r < job.ranks.size(); ++r)
    for (const auto& [name, calls] : job.ranks[r].collectives) kinds[name].push_back(r);
  for (const auto& [name, places] : kinds) {
    if (places.size() < 2) continue;
    std::vector<const std::deque<CollectiveCall>*> ranks;
    for (const std::size_t r : places) ranks.push_back(&job.ranks[r].collectives.at(name));
    const auto calls = paired(ranks);
    if (calls.empty()) {
      job.remarks.push_back(
          fmt::format("{}: not all ranks made as many calls, so its skew is not known", one_line(name)));
      continue;
    }
    TracedCollective one{name};
    const auto count = static_cast<double>(calls.size());
    std::map<std::size_t, double> last;
    for (const auto& together : calls) {
      const auto [least, most] =
          std::ranges::minmax_element(together, {}, [](const CollectiveCall* call) { return call->duration; });
      one.transfer += 1e-9 * static_cast<double>((*least)->duration) / count;
      one.skew += 1e-9 * static_cast<double>((*most)->duration - (*least)->duration) / count;
      last[places[static_cast<std::size_t>(least - together.begin())]] += 1 / count;
    }
    for (const auto& [place, share] : last)
      if (share > one.last_share) one.last_share = share, one.last = *job.ranks[place].rank;
    one.calls = count / static_cast<double>(job.steps.count);
    job.collectives.push_back(std::move(one));
  }
  std::ranges::stable_sort(job.collectives, std::ranges::greater(),
                           [](const TracedCollective& one) { return one.calls * (one.transfer + one.skew); });
}

// Of a step: a trace holds what ran in its steps, and little else.
void add_uses(Job& job, const std::vector<std::size_t>& steps) {
  std::map<std::string, TracedUse> sums;
  const auto ranks = static_cast<double>(job.ranks.size());
  for (std::size_t r = 0; r < job.ranks.size(); ++r)
    for (const TracedUse& use : job.ranks[r].uses) {
      TracedUse& sum = sums[use.name];
      sum.name = use.name;
      sum.calls += use.calls / static_cast<double>(steps[r]) / ranks;
      sum.seconds += use.seconds / static_cast<double>(steps[r]) / ranks;
      if (!use.work) continue;
      if (!sum.work) sum.work.emplace();
      sum.work->add(*use.work, 1 / static_cast<double>(steps[r]) / ranks);
    }
  for (auto& [name, use] : sums) job.uses.push_back(std::move(use));
  std::ranges::stable_sort(job.uses, std::ranges::greater(), &TracedUse::seconds);
}

}  // namespace

double Job::started() const { return begin_of(ranks.front()); }
double Job::seconds() const { return end_of(ranks.front()) - started(); }

GpuParts Job::mean_gpu_parts() const {
  GpuParts mean;
  const auto count = static_cast<double>(gpu_parts.size());
  for (const GpuParts& rank : gpu_parts) {
    mean.compute += rank.compute / count, mean.communication += rank.communication / count;
    mean.copies += rank.copies / count, mean.data += rank.data / count, mean.host += rank.host / count;
  }
  return mean;
}

Job job_of(std::vector<RankTrace> traces) {
  set_ranks(traces);
  check_one_job(traces);
  Job job;
  std::vector<std::size_t> all_steps;
  std::string no_work;
  for (const RankTrace& trace : traces) {
    all_steps.push_back(trace.steps.size());
    for (const std::string& remark : trace.remarks) job.remarks.push_back(fmt::format("{}: {}", trace.file, remark));
    if (no_work.empty() && !trace.no_work.empty()) no_work = fmt::format("{}: {}", trace.file, trace.no_work);
  }
  if (!no_work.empty()) job.remarks.push_back(no_work);
  keep_common_steps(traces, job.remarks);
  job.ranks = std::move(traces);
  job.gpu = job.ranks.front().gpu;
  job.world = std::max(job.ranks.front().world, *job.ranks.back().rank + 1);
  if (const auto have = static_cast<int>(job.ranks.size()); have < job.world)
    job.remarks.push_back(fmt::format("{} of {} ranks: nothing is known of the others", have, job.world));
  std::vector<watch::RankSteps> steps;
  for (const RankTrace& trace : job.ranks) {
    steps.push_back({*trace.rank, {}});
    for (const TracedStep& step : trace.steps) steps.back().steps.push_back(watched(step));
    if (job.gpu) job.gpu_parts.push_back(gpu_parts_of(trace));
  }
  job.steps = watch::steps_of_trace(steps);
  // By their numbers in the trace.
  if (watch::Stalls& stalls = job.steps.stalls; stalls.count > 0)
    for (std::int64_t* place : {&stalls.first, &stalls.last})
      *place = job.ranks.front().steps[static_cast<std::size_t>(*place - 1)].number;
  add_collectives(job);
  add_uses(job, all_steps);
  job.found = diagnose(job);
  job.sound = not_the_cause(job);
  return job;
}

}  // namespace assay::kineto
