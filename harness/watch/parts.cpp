#include "harness/watch/parts.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/host.h"
#include "harness/core/text.h"
#include "harness/json/members.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

namespace assay::watch {
namespace {

constexpr std::size_t max_steps = 4096;
constexpr const char* traces_folder = "traces";                // in the run directory
constexpr std::uintmax_t max_bytes = std::uintmax_t{1} << 30;  // of a file: 8 ranks take 5 MB

std::vector<double> numbers_of(const Step& step) {
  return {step.end,
          step.total,
          step.data_wait,
          step.backward,
          step.communication,
          step.optimizer,
          step.checkpoint,
          step.cpu,
          step.ready.value_or(-1),
          step.recorded ? 2.0
          : step.parts  ? 1.0
                        : 0.0,
          static_cast<double>(step.syncs),
          step.synced};
}

std::optional<Step> step_from(const std::vector<double>& of) {
  if (of.size() != 12 || !(of[1] >= 0) || !(of[10] >= 0 && of[10] < 1e9)) return std::nullopt;
  Step step{of[0], of[1], of[2], of[3], of[4], of[5], of[6], of[7]};
  if (of[8] >= 0) step.ready = of[8];
  step.parts = of[9] != 0, step.recorded = of[9] == 2, step.syncs = static_cast<int>(of[10]), step.synced = of[11];
  return step;
}

// These follow from the steps of all ranks; all others from the machine that a host is.
bool is_of_steps(const std::string& rule) { return rule == "imbalance" || rule == "comm-exposed" || rule == "stalls"; }

// The findings of the hosts, each with those that have it; what only the whole job can tell is judged again.
void add_findings(const std::vector<HostPart>& parts, const JobSteps& steps, const Surroundings& around,
                  std::vector<Diagnosis>& all) {
  for (const Diagnosis& one : diagnose(steps, around))
    if (is_of_steps(one.rule)) all.push_back(one);
  std::vector<std::string> rules;
  for (const HostPart& part : parts)
    for (const FoundPart& one : part.found)
      if (!is_of_steps(one.rule) && std::ranges::find(rules, one.rule) == rules.end()) rules.push_back(one.rule);
  for (const std::string& rule : rules) {
    std::vector<std::string> hosts;
    const FoundPart* worst = nullptr;
    for (const HostPart& part : parts)
      for (const FoundPart& one : part.found) {
        if (one.rule != rule) continue;
        hosts.push_back(part.host);
        if (!worst || one.gain > worst->gain) worst = &one;
      }
    // One host's gain is the job's only if it holds up the others, so it is still the most that there can be.
    const std::string where = hosts.size() == parts.size() && parts.size() > 1 ? "all hosts" : first_few(hosts, 3);
    all.push_back({rule, fmt::format("{}: {}", where, worst->says), worst->change, worst->gain});
  }
  std::ranges::stable_sort(all, [](const Diagnosis& a, const Diagnosis& b) { return a.gain > b.gain; });
}

}  // namespace

HostPart part_of(const WatchRequest& request, const Seen& seen, const std::vector<RankSteps>& steps,
                 const Traces& traces) {
  HostPart part;
  part.name = request.name.empty() ? name_of_job(request.words) : request.name;
  part.host = this_host(), part.command = one_line(joined(request.words, " "), 1000);
  part.started = seen.started, part.started_utc = seen.started_utc, part.seconds = seen.seconds;
  part.problem = seen.problem;
  part.items = request.items, part.unit = request.unit, part.flops = request.flops;
  if (seen.peak) part.peak = seen.peak->flops, part.peak_source = seen.peak->source;
  part.user = seen.use.user, part.system = seen.use.system, part.memory = seen.use.peak_memory;
  part.read = seen.use.read, part.written = seen.use.written, part.threads = seen.use.threads;
  part.gpus = seen.gpus.count;
  for (std::size_t i = 0; i < seen.ranks.size() && i < steps.size(); ++i) {
    const RankInfo& info = seen.ranks[i];
    const std::vector<Step>& all = steps[i].steps;
    RankPart rank{info.rank, info.world, info.threads, info.workers, info.torch, info.dtype, info.cuda, info.gpu_parts};
    const std::size_t begin = all.size() > max_steps ? all.size() - max_steps : 0;
    rank.first = static_cast<std::int64_t>(begin);
    for (std::size_t s = begin; s < all.size(); ++s) rank.steps.push_back(numbers_of(all[s]));
    for (const TraceFile& file : traces.files)
      if (file.rank == info.rank) rank.trace = fmt::format("{}/{}", traces_folder, file.path.filename().string());
    if (const auto why = traces.missing.find(info.rank); why != traces.missing.end()) rank.no_trace = why->second;
    part.ranks.push_back(std::move(rank));
  }
  for (const Diagnosis& one : seen.found) part.found.push_back({one.rule, one.says, one.change, one.gain});
  return part;
}

void keep_traces(const std::filesystem::path& run, const TraceReader& reader, Traces& traces) {
  std::vector<TraceFile> kept;
  for (TraceFile& file : traces.files) try {
      std::filesystem::create_directories(run / traces_folder);
      const std::filesystem::path copy = run / traces_folder / fmt::format("rank{}.json.gz", file.rank);
      reader.keep(file.path, copy);
      kept.push_back({file.rank, file.host, copy});
    } catch (const std::exception& error) {
      traces.missing[file.rank] = one_line(fmt::format("it was read, and could not be kept: {}", error.what()), 300);
    }
  traces.files = std::move(kept);
}

void write_part(const std::filesystem::path& run, const HostPart& part) {
  replace_file(run / part_file, dump_line(json_of(part)));
}

HostPart read_part(const std::filesystem::path& run) {
  const std::filesystem::path file = std::filesystem::is_directory(run) ? run / part_file : run;
  if (!std::filesystem::exists(file))
    throw UsageError(
        fmt::format("watch: --join {}: it has no {}: name runs that assay watch has written", run.string(), part_file));
  try {
    HostPart part = read_text<HostPart>(read_whole(file, max_bytes));
    part.run = file.parent_path();
    if (part.schema != part_schema) throw Error(fmt::format("schema {}, not {}", part.schema, part_schema));
    for (const RankPart& rank : part.ranks)
      for (const auto& step : rank.steps)
        if (!step_from(step)) throw Error(fmt::format("a step of rank {} is none", rank.rank));
    return part;
  } catch (const Error& error) {
    throw UsageError(fmt::format("watch: --join {}: {}", file.string(), error.what()));
  }
}

Joined join(const std::vector<HostPart>& parts) {
  Joined whole;
  std::map<int, std::string> host_of;
  int world = 0;
  std::int64_t& begin = whole.begin;
  for (const HostPart& part : parts)
    for (const RankPart& rank : part.ranks) {
      if (const auto [place, fresh] = host_of.emplace(rank.rank, part.host); !fresh)
        throw UsageError(fmt::format("watch: --join: rank {} is of {} and of {}", rank.rank, place->second, part.host));
      if (world != 0 && world != rank.world)
        throw UsageError(fmt::format("watch: --join: a job of {} and one of {} ranks", world, rank.world));
      world = rank.world, begin = std::max(begin, rank.first);
    }
  for (int rank = 0; rank < world; ++rank)
    if (!host_of.contains(rank)) whole.missing.push_back(rank);

  Seen& seen = whole.seen;
  std::vector<RankSteps> steps;
  Surroundings around;
  around.ranks = std::max(1, world), around.cpus = std::numeric_limits<int>::max();
  std::set<std::string> problems;
  const HostPart* lowest = &parts.front();
  for (const HostPart& part : parts) {
    whole.hosts.push_back(part.host);
    seen.seconds = std::max(seen.seconds, part.seconds);
    seen.use.user += part.user, seen.use.system += part.system, seen.use.threads += part.threads;
    const auto add = [](std::optional<double>& sum, const std::optional<double>& more) {
      if (more) sum = sum.value_or(0) + *more;
    };
    add(seen.use.peak_memory, part.memory), add(seen.use.read, part.read), add(seen.use.written, part.written);
    seen.gpus.count += part.gpus;
    if (!part.problem.empty()) problems.insert(fmt::format("{}: {}", part.host, part.problem));
    for (const RankPart& rank : part.ranks) {
      RankInfo info;
      info.rank = rank.rank, info.world = rank.world, info.threads = rank.threads, info.workers = rank.workers;
      info.torch = rank.torch, info.dtype = rank.dtype, info.cuda = rank.cuda, info.gpu_parts = rank.gpu_parts;
      info.host = part.host;
      if (seen.ranks.empty() || info.rank < seen.ranks.front().rank) lowest = &part;
      seen.ranks.push_back(info);
      if (const std::filesystem::path name = rank.trace; !name.empty())
        whole.traces.files.push_back({rank.rank, part.host, part.run / traces_folder / name.filename()});
      if (!rank.no_trace.empty()) whole.traces.missing[rank.rank] = rank.no_trace;
      RankSteps made{rank.rank, {}, part.host};
      for (std::size_t i = static_cast<std::size_t>(begin - rank.first); i < rank.steps.size(); ++i)
        made.steps.push_back(step_from(rank.steps[i]).value_or(Step{}));
      steps.push_back(std::move(made));
      around.cuda = around.cuda || rank.cuda, around.gpu_parts = around.gpu_parts || rank.gpu_parts;
    }
  }
  std::ranges::sort(seen.ranks, {}, &RankInfo::rank);
  std::ranges::sort(whole.traces.files, {}, &TraceFile::rank);
  seen.problem = joined(problems, "; ");
  seen.started = lowest->started, seen.started_utc = lowest->started_utc;
  const bool peaks = std::ranges::all_of(parts, [](const HostPart& part) { return part.peak.has_value(); });
  if (peaks) seen.peak = SheetPeak{0, lowest->peak_source};
  for (const HostPart& part : parts)
    if (peaks) seen.peak->flops += *part.peak;
  seen.steps = steps_of_job(steps);
  if (seen.steps) add_findings(parts, *seen.steps, around, seen.found);
  whole.request.name = lowest->name, whole.request.words = {lowest->command};
  whole.request.items = lowest->items, whole.request.unit = lowest->unit, whole.request.flops = lowest->flops;
  return whole;
}

}  // namespace assay::watch
