#include "harness/watch/watch.h"

#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/core/utc.h"
#include "harness/device/cpu/limits.h"
#include "harness/device/cpu/team.h"
#include "harness/sensors/outside_cpu.h"
#include "harness/watch/gpus.h"
#include "harness/watch/machine_rules.h"
#include "harness/watch/parts.h"
#include "harness/watch/places.h"
#include "harness/watch/python.h"
#include "harness/watch/record.h"
#include "harness/watch/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <set>

namespace assay::watch {
namespace {

constexpr int period_ms = 1000;       // signals, ranks that come and the job's end wake it before
constexpr double look_seconds = 1.0;  // between looks at loaders, nodes and GPUs.
// Between looks at all other processes, of which there may be many: the more, the rarer, up to the maximum, so that
// they take this part of a CPU.
constexpr double outside_seconds = 5.0, max_outside_seconds = 15.0, outside_share = 0.0005;
constexpr double hang_steps = 10;        // no step for so many medians,
constexpr double min_hang_seconds = 10;  // and for so long, and the job hangs
constexpr double stack_seconds = 0.5;    // that a rank has to write its stack
// Instead of min_hang_seconds while a profiler may be writing its trace.
constexpr double min_recorded_hang_seconds = 120;

// The fraction of these CPUs that the job used in 95 % of its readings at most.
std::optional<double> cpus_p95(const std::map<std::string, Series>& series, int cpus) {
  const auto found = series.find("job_cpu");
  std::vector<double> used;
  if (found != series.end())
    for (const auto& value : found->second.values)
      if (value) used.push_back(*value);
  if (used.empty() || cpus < 1) return std::nullopt;
  return quantile(used, 0.95) / cpus;
}

// What is looked at besides the job's own telemetry, about once a second: its loaders, and who else computes.
class Looks {
 public:
  Looks() : outside_(Root(), cpu::rank_cpus()), places_(Root()) {
    outside_.begin();
    throttled_ = cpu::throttled_cpu_seconds();
  }

  void look(double seconds, const std::vector<std::unique_ptr<Rank>>& ranks) {
    std::vector<Reading> unused;
    if (seconds >= next_outside_) {
      const double before = seconds_on(CLOCK_THREAD_CPUTIME_ID);
      outside_.read(seconds, unused);
      // All processes are read, so it is done more rarely where there are many.
      const double rare = std::min((seconds_on(CLOCK_THREAD_CPUTIME_ID) - before) / outside_share, max_outside_seconds);
      next_outside_ = seconds + std::max(std::clamp(seconds / 2, look_seconds, outside_seconds), rare);
    }
    for (const auto& rank : ranks) {
      if (rank->gone()) continue;
      if (rank->info().workers > 0) look_for_workers(seconds, *rank);
      places_.look(seconds, rank->info());
      gpus_.add(rank->info());
    }
    gpus_.read(seconds);
  }

  JobGpus& gpus() { return gpus_; }
  const Places& places() const { return places_; }

  std::optional<OutsideCpu> outside(double from, double to) { return outside_.in_window(from, to); }
  std::optional<double> quota(double seconds) const {
    const auto now = cpu::throttled_cpu_seconds();
    if (!now || !throttled_ || seconds <= 0) return std::nullopt;
    return std::max(0.0, *now - *throttled_) / seconds;
  }
  Workers workers(int asked) const {
    Workers workers{asked, {}, 0};
    if (asked == 0 || worker_seconds_ <= 0) return workers;
    workers.cpu_each = worker_cpu_ / worker_seconds_;
    workers.blocked = static_cast<double>(blocked_) / static_cast<double>(looks_);
    return workers;
  }

 private:
  // The rank's children that used most are the workers of its loader.
  void look_for_workers(double seconds, const Rank& rank) {
    const Pid pid = rank.info().pid;
    const auto children = root_.text(fmt::format("proc/{0}/task/{0}/children", pid));
    std::map<Pid, double> used;
    std::vector<double> most;
    for (const std::string& word : assay::words(children.value_or(""))) {
      const Pid child = to_integer(word).value_or(0);
      const auto process = read_process(root_, child);
      if (!process) continue;
      used[child] = tick_ * static_cast<double>(process->ticks);
      ++looks_;
      blocked_ += process->state == 'D' ? 1 : 0;
      const auto before = children_[pid].find(child);
      if (before != children_[pid].end()) most.push_back(used[child] - before->second);
    }
    std::ranges::sort(most, std::greater());
    most.resize(std::min(most.size(), static_cast<std::size_t>(rank.info().workers)));
    for (const double cpu : most) {
      worker_cpu_ += cpu;
      worker_seconds_ += seconds - looked_at_[pid];
    }
    children_[pid] = std::move(used);
    looked_at_[pid] = seconds;
  }

  Root root_;
  OutsideCpuSensor outside_;
  std::optional<double> throttled_;
  double next_outside_ = 0;
  double tick_ = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::map<Pid, std::map<Pid, double>> children_;
  std::map<Pid, double> looked_at_;
  double worker_cpu_ = 0, worker_seconds_ = 0;
  std::int64_t looks_ = 0, blocked_ = 0;
  Places places_;
  JobGpus gpus_;
};

class Watcher {
 public:
  explicit Watcher(const WatchRequest& request) : request_(request) {}

  int run() {
    std::string folder;
    try {
      folder = hook_folder();
      meeting_.emplace();
    } catch (const Error& error) {
      remarks_.push_back(fmt::format("Not seen: steps: {}.", error.what()));
    }
    if (folder.empty()) remarks_.emplace_back("Not seen: steps: the hooks are not installed.");
    const std::string address = meeting_ ? meeting_->address() : "";
    try {
      if (request_.traces.read) traces_.emplace(std::filesystem::temp_directory_path() / "assay-traces");
    } catch (const std::exception& error) {
      remarks_.push_back(fmt::format("Not seen: recorded steps: {}.", error.what()));
    }
    job_.emplace(request_.words, variables_with_hook(folder, address, traces_ ? traces_->path().string() : ""),
                 signals_);
    started_ = Clock::now();
    if (!job_->problem().empty()) {
      say("assay: watch: {}\n", job_->problem());
      return job_->code();
    }
    started_utc_ = utc_text(std::time(nullptr));
    try {
      telemetry_.emplace(Root(), job_->pid(), started_);
      looks_.emplace();
    } catch (const std::exception& error) {
      remarks_.push_back(fmt::format("Not seen: what its processes use: {}.", error.what()));
    }
    while (!job_->has_ended()) turn();
    finish(true);
    return job_->end_alike();
  }

 private:
  void turn() {
    std::vector<pollfd> fds{{signals_.fd(), POLLIN, 0}};
    if (meeting_) fds.push_back({meeting_->fd(), POLLIN, 0});
    const double left = request_.for_seconds && !told_ ? *request_.for_seconds - seconds_since(started_) : 1e9;
    ::poll(fds.data(), fds.size(), std::clamp(static_cast<int>(1000 * std::min(left, 1.0)) + 1, 1, period_ms));
    while (const auto came = signals_.next()) {
      if (came->signal == SIGUSR1)
        show_standing();
      else if (ForegroundSignals::is_passed_on(came->signal) && !came->from_terminal)
        job_->pass_on(came->signal);
    }
    try {
      look();
    } catch (const std::exception& error) {
      // The job goes on, whatever the watcher lacks.
      if (remarks_.size() < 5) remarks_.push_back(fmt::format("Not seen: {}.", error.what()));
    }
  }

  void look() {
    if (told_) return;
    const double seconds = seconds_since(started_);
    if (meeting_)
      for (auto& rank : meeting_->accept(static_cast<int>(ranks_.size()))) ranks_.push_back(std::move(rank));
    for (auto& rank : ranks_) {
      if (rank->take()) last_step_ = seconds, hang_told_ = false;
      pollfd end{rank->connection(), POLLIN, 0};
      if (!rank->gone() && ::poll(&end, 1, 0) > 0) rank->has_gone();
    }
    if (looks_ && seconds - looked_at_ >= look_seconds) looks_->look(looked_at_ = seconds, ranks_);
    if (hangs(seconds)) {
      hang_told_ = true;
      say("assay: watch: no step for {}: the job may hang\n", format_seconds(seconds - last_step_));
      show_ranks();
    }
    if (request_.for_seconds && seconds >= *request_.for_seconds) {
      for (auto& rank : ranks_) rank->tell_to_stop();
      finish(false);
    }
  }

  bool hangs(double seconds) const {
    if (hang_told_ || ranks_.empty() || ranks_.front()->steps().size() < 3) return false;
    std::vector<double> all;
    const auto& steps = ranks_.front()->steps();
    for (std::size_t i = steps.size() - std::min<std::size_t>(steps.size(), 100); i < steps.size(); ++i)
      all.push_back(steps[i].total);
    const bool recorded = std::ranges::any_of(
        ranks_, [](const auto& rank) { return !rank->gone() && rank->recording().state == Recording::State::runs; });
    return seconds - last_step_ >
           std::max(recorded ? min_recorded_hang_seconds : min_hang_seconds, hang_steps * median(all));
  }

  void show_ranks() {
    std::vector<Standing> ranks;
    for (const auto& rank : ranks_)
      if (!rank->gone())
        ranks.push_back({rank->info().rank, rank->steps().size() + 1, rank->entered(), rank->collective(),
                         rank->stack(stack_seconds)});
    std::ranges::sort(ranks, {}, &Standing::rank);
    for (const std::string& line : standing_lines(ranks)) say("{}\n", line);
  }

  void show_standing() {
    if (ranks_.empty()) return say("assay: watch: no steps yet\n");
    for (auto& rank : ranks_) rank->take();
    show_ranks();
    if (const auto steps = steps_of_job(all_steps())) say_text(bars(*steps));
  }

  std::vector<RankSteps> all_steps() const {
    std::vector<RankSteps> all;
    for (const auto& rank : ranks_) all.push_back({rank->info().rank, rank->steps()});
    return all;
  }

  Surroundings surroundings(const Seen& seen) const {
    Surroundings around;
    around.ranks = std::max<int>(1, static_cast<int>(ranks_.size()));
    around.cpus = static_cast<int>(cpu::rank_cpus().size());
    around.job_cpus = seen.use.cpu_seconds() / std::max(seen.seconds, 1e-9);
    around.memory = seen.use.peak_memory;
    if (const auto limits = cpu::memory_limits(); limits.usable() > 0)
      around.memory_room = static_cast<double>(limits.usable());
    if (seen.outside) {
      around.outside = seen.outside->cpus;
      std::vector<std::string> names;
      for (const auto& process : seen.outside->processes) names.push_back(process.name);
      around.outside_names = first_few(names, 3);
    }
    int workers = 0;
    for (const auto& rank : ranks_) {
      around.threads = std::max(around.threads, rank->info().threads);
      around.cuda = around.cuda || rank->info().cuda;
      around.gpu_parts = around.gpu_parts || rank->info().gpu_parts;
      workers = std::max(workers, rank->info().workers);
    }
    around.workers.asked = workers;
    if (looks_) {
      around.quota = looks_->quota(seen.seconds);
      around.workers = looks_->workers(workers);
      around.places = looks_->places().ranks();
    }
    around.gpus = seen.gpus;
    around.cpus_p95 = cpus_p95(seen.series, around.cpus);
    auto need = smaller_gpu(seen.gpus);
    if (need && request_.cheapest) {
      if (!ranks_.empty()) need->dtype = ranks_.front()->info().dtype;
      around.cheapest = request_.cheapest(*need);
    }
    return around;
  }

  std::string why_no_steps() const {
    if (const std::string why = why_not_hooked(request_.words); !why.empty()) return why;
    if (!ranks_.empty()) return "fewer than four steps of an optimizer were made";
    return "no process of the job made a step of a torch.optim optimizer where the hooks are";
  }

  // Tells what was seen and keeps it, once; never throws.
  void finish(bool ended) {
    if (told_ && !ended) return;
    const bool tell = !told_;
    told_ = true;
    try {
      Seen seen;
      if (telemetry_ && tell) {
        JobWatch::Watched watched = telemetry_->stop();  // the job is not reaped yet
        seen.use = watched.use, seen.series = std::move(watched.series);
      }
      seen.seconds = seconds_since(started_);
      if (tell)
        for (auto& rank : ranks_) rank->take();
      if (ended) job_->reap();
      if (!tell) return;
      tell_and_keep(seen, ended);
      traces_.reset();  // a signal may end this process
    } catch (const std::exception& error) {
      say("assay: watch: {}\n", error.what());
      if (ended) job_->reap();
    }
  }

  void tell_and_keep(Seen& seen, bool ended) {
    seen.started = std::chrono::duration<double>(started_.time_since_epoch()).count();
    seen.started_utc = started_utc_;
    if (ended && job_->signal() != 0)
      seen.problem = fmt::format("killed by signal {}", job_->signal());
    else if (ended && job_->code() != 0)
      seen.problem = fmt::format("ended with code {}", job_->code());
    for (const auto& rank : ranks_) seen.ranks.push_back(rank->info());
    seen.steps = steps_of_job(all_steps());
    if (looks_) {
      seen.outside = looks_->outside(0, seen.seconds);
      seen.gpus = looks_->gpus().take();
      seen.series.insert(looks_->gpus().series().begin(), looks_->gpus().series().end());
    }
    if (!seen.ranks.empty() && seen.gpus.count > 0) {
      seen.peak = peak_of_gpu(seen.gpus.name, seen.ranks.front().dtype);
      if (seen.peak) seen.peak->flops *= seen.gpus.count;
    }
    const Surroundings around = surroundings(seen);
    if (seen.steps) seen.found = diagnose(*seen.steps, around);
    Traces traces;
    if (traces_) traces = traces_of(ranks_, traces_->path());
    if (seen.steps) add_window(request_.traces, traces.files, around.cuda, seen);
    seen.watcher_cpus = seconds_on(CLOCK_PROCESS_CPUTIME_ID) / std::max(seen.seconds, 1e-9);
    Shown shown{.name = request_.name.empty() ? name_of_job(request_.words) : request_.name,
                .seconds = seen.seconds,
                .use = seen.use,
                .steps = seen.steps,
                .why_no_steps = why_no_steps(),
                .cuda = around.cuda,
                .gpu_parts = around.gpu_parts,
                .found = seen.found,
                .items = request_.items,
                .unit = request_.unit,
                .flops = request_.flops,
                .remarks = remarks_};
    if (seen.steps && seen.peak && request_.flops)
      shown.mfu = *request_.flops / seen.steps->summary.median / seen.peak->flops;
    if (seen.steps) shown.sound = not_the_cause(*seen.steps, around);
    show_window(seen, traces.stood_still, shown);
    std::set<std::string> absent;
    for (const RankInfo& rank : seen.ranks)
      for (const auto& [name, why] : rank.absent) absent.insert(fmt::format("Not seen: {}: {}.", name, why));
    shown.remarks.insert(shown.remarks.end(), absent.begin(), absent.end());
    if (const RankInfo* first = seen.ranks.empty() ? nullptr : &seen.ranks.front();
        first && first->world > static_cast<int>(seen.ranks.size()))
      shown.remarks.push_back(
          fmt::format("{} of {} were seen here. All hosts together: assay watch --join DIR..., with each host's run",
                      plural(static_cast<std::int64_t>(seen.ranks.size()), "rank"), first->world));
    try {
      write_record(request_, seen, record_of(request_, seen));
      keep_traces(request_.out, request_.traces, traces);
      write_part(request_.out, part_of(request_, seen, all_steps(), traces));
      shown.run = request_.out.string();
    } catch (const std::exception& error) {
      shown.remarks.push_back(fmt::format("No record: {}", error.what()));
    }
    for (const std::string& remark : traces.remarks()) shown.remarks.push_back(remark);
    say_text(end_text(shown));
  }

  const WatchRequest& request_;
  ForegroundSignals signals_;
  std::optional<Meeting> meeting_;
  std::optional<ForegroundProcess> job_;
  Clock::time_point started_;
  std::string started_utc_;
  std::optional<JobWatch> telemetry_;
  std::optional<Looks> looks_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<std::string> remarks_;
  std::optional<TemporaryFolder> traces_;
  double looked_at_ = 0, last_step_ = 0;
  bool hang_told_ = false, told_ = false;
};

}  // namespace

ExitCode show_joined(const WatchRequest& given, const std::vector<std::filesystem::path>& runs) {
  std::vector<HostPart> parts;
  for (const auto& run : runs) parts.push_back(read_part(run));
  Joined job = join(parts);
  WatchRequest& request = job.request;
  if (!given.name.empty()) request.name = given.name;
  request.labels = given.labels, request.out = given.out, request.command_line = given.command_line;
  Seen& seen = job.seen;
  const bool cuda = std::ranges::any_of(seen.ranks, &RankInfo::cuda);
  if (seen.steps) add_window(given.traces, job.traces.files, cuda, seen);
  Shown shown{.name = request.name,
              .seconds = seen.seconds,
              .use = seen.use,
              .steps = seen.steps,
              .why_no_steps = "no rank of these made three steps that all of them kept",
              .found = seen.found,
              .items = request.items,
              .unit = request.unit,
              .flops = request.flops};
  for (const RankInfo& rank : seen.ranks)
    shown.cuda = shown.cuda || rank.cuda, shown.gpu_parts = shown.gpu_parts || rank.gpu_parts;
  if (seen.steps && seen.peak && request.flops)
    shown.mfu = *request.flops / seen.steps->summary.median / seen.peak->flops;
  Record record = record_of(request, seen);
  record.labels["hosts"] = joined(job.hosts);
  if (job.begin > 0)
    shown.remarks.push_back(record.flags.emplace_back(
        fmt::format("of the steps from {} on: of those before not every rank's are kept", job.begin + 2)));
  std::vector<std::string> missing;
  for (const int rank : job.missing) missing.push_back(std::to_string(rank));
  if (!missing.empty())
    shown.remarks.push_back(
        record.flags.emplace_back(fmt::format("not all: {} of {} ranks are in none of these runs: {}", missing.size(),
                                              missing.size() + seen.ranks.size(), first_few(missing, 8))));
  write_record(request, seen, record);
  show_window(seen, 0, shown);
  for (const std::string& remark : job.traces.remarks()) shown.remarks.push_back(remark);
  shown.run = request.out.string();
  show_text(end_text(shown));
  return !missing.empty() || !seen.steps ? ExitCode::no_data : ExitCode::ok;
}

int watch(const WatchRequest& request) {
  try {
    return Watcher(request).run();
  } catch (const std::exception& error) {
    say("assay: watch: {}\n", error.what());
    return not_started;
  }
}

}  // namespace assay::watch
