// Launches, orders, watches, records, relaunches.
#include "harness/run/supervisor.h"

#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/core/host.h"
#include "harness/record/flags.h"
#include "harness/run/case_message.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <set>
#include <utility>

namespace assay {

namespace {

constexpr std::size_t max_timeline_entries = 200000;
constexpr auto blame_delay = std::chrono::milliseconds(1000);

std::unique_ptr<ChannelServer> make_server(const Agents* agents) {
  ChannelServer::Listen where;
  if (agents) {
    where.hosts = agents->own_addresses();
    for (const AllocatedHost& host : agents->allocation().hosts) where.other_hosts = where.other_hosts || !host.here;
  }
  return std::make_unique<ChannelServer>(where);
}

Clock::time_point after(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

void check_sender(const Record& part, int rank) {
  if (part.ranks.size() != 1 || part.ranks.front().rank != rank) throw Error("record of another rank");
}

}  // namespace

Supervisor::Supervisor(SupervisorOptions options, Progress& progress, RunSink& sink)
    : options_(std::move(options)),
      progress_(progress),
      sink_(sink),
      loop_(make_server(options_.agents), *this),
      signals_(
          "the workers", [this](const std::string& line) { progress_.note(line); },
          [this] {
            if (group_) group_->kill_all();
          }) {
  adopt_orphans();
  std::signal(SIGPIPE, SIG_IGN);
}

Supervisor::~Supervisor() { group_.reset(); }

bool Supervisor::start_workers(const Job& first) {
  const int ranks = first.order.world.ranks;
  ChannelServer& server = loop_.server();
  server.expect(ranks);
  ranks_.assign(static_cast<std::size_t>(ranks), {});
  group_worked_ = false;
  breakdown_.reset();
  shared_.clear();
  oom_kills_ = oom_kill_count();
  LaunchRequest request;
  request.kind = ranks == 1 ? LauncherKind::local : options_.several_ranks;
  request.ranks = ranks;
  request.oversubscribed = flag::has(first.order.flags, flag::oversubscribed);
  request.environment = {{"ASSAY_SUPERVISOR", server.address()},
                         {"ASSAY_TOKEN", server.token()},
                         {"ASSAY_DEVICE", std::string(name_of(options_.device))},
                         {"ASSAY_CACHE", options_.cache_dir.string()},
                         {"ASSAY_RUN", sink_.run_dir().string()},
                         {"ASSAY_MPI_THREADS", first.order.family->workload ? "serialized" : "single"}};
  if (options_.trace) request.environment["ASSAY_TRACE"] = "1";
  if (options_.device != DeviceKind::cpu) {
    // CUDA's default order is by speed. Ordered by PCI address, GPUs are numbered as by nvidia-smi, and the CPUs near
    // each GPU are known.
    if (!std::getenv("CUDA_DEVICE_ORDER")) request.environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
    request.environment["ASSAY_START_LIMIT"] = fmt::format("{}", options_.launch_limit_seconds);
  }
  if (options_.share_gpu && ranks > 1) request.environment["ASSAY_SHARE_GPU"] = "1";
  Seating seating = seat_ranks(options_.slots, options_.hosts, {ranks, options_.device, options_.share_gpu, ""},
                               options_.agents, [this] {
                                 signals_.read();
                                 progress_.tick();
                                 sink_.keep_alive();
                                 return signals_.interrupted();
                               });
  placement_ = std::move(seating.placement);
  request.seats = placement_.seats;
  no_seats_ = !seating.missing.empty();
  if (no_seats_) {
    fail(FailureKind::lost_host, seating.missing);
    breakdown_->hosts = seating.lost;
  }
  if (no_seats_ || signals_.interrupted()) return false;
  for (const auto& [name, value] : environment_of(*first.order.family, first.order.params))
    request.environment[name] = value;
  try {
    group_ = start_group(request, options_.agents);
  } catch (const Error& error) {
    fail(FailureKind::launch, error.what());
  }
  return group_ != nullptr;
}

void Supervisor::end_group(bool orderly) {
  if (!group_) return;
  if (orderly) {
    send_to_all(message::End{});
    // Reads what they send at the end, the span of the whole run among it.
    const auto until = after(10);
    const auto connected = [](const RankState& rank) { return rank.connected; };
    while (Clock::now() < until && std::any_of(ranks_.begin(), ranks_.end(), connected)) poll_round(100);
    breakdown_.reset();
    group_->wait_end(10);
  }
  group_->kill_all();
  group_.reset();
  loop_.server().expect(0);
}

void Supervisor::on(int rank, const message::Phase& phase) {
  RankState& state = state_of(rank);
  state.phase = phase.name;
  state.phase_since = Clock::now();
  group_worked_ = true;
  if (rank == 0) progress_.phase(phase.name);
}

void Supervisor::on(int rank, const message::Heartbeat& heartbeat) {
  state_of(rank).answered = true;
  state_of(rank).heartbeat = heartbeat;
}

void Supervisor::on(int rank, const message::Injected& injected) {
  if (const auto fault = from_word<Fault>(injected.name)) state_of(rank).injected.insert(*fault);
}

void Supervisor::on(int rank, const message::Finished& finished) {
  if (finished.index != case_index_) return;
  check_sender(finished.record, rank);
  group_worked_ = true;
  state_of(rank).part = finished.record;
}

void Supervisor::on(int rank, const message::Abort& abort) {
  if (abort.index && *abort.index != case_index_) return;
  if (abort.record) check_sender(*abort.record, rank);
  group_worked_ = group_worked_ || abort.record;
  if (breakdown_) return;
  const FailureKind kind = abort.record && abort.record->failure ? abort.record->failure->kind
                           : abort.index                         ? FailureKind::exception
                                                                 : FailureKind::launch;
  breakdown_ = Breakdown{.kind = kind,
                         .reason = abort.record ? abort.record->reason : abort.reason,
                         .part = abort.record,
                         .rank = rank,
                         .reported = Clock::now()};
}

void Supervisor::on(int rank, const message::Share& share) {
  shared_.share(rank, share, loop_.server(), static_cast<int>(ranks_.size()));
}

void Supervisor::on(int rank, const message::Timeline& timeline) {
  if (timeline_entries_ >= max_timeline_entries) return;
  trace::RankTimeline& kept = timelines_[rank];
  kept.rank = rank;
  kept.host = state_of(rank).host;
  for (trace::Entry entry : timeline.entries) {
    entry.start_ns -= clock_ahead_ns(rank);  // in this host's time, so that ranks line up
    kept.entries.push_back(std::move(entry));
  }
  timeline_entries_ += timeline.entries.size();
  if (timeline_entries_ >= max_timeline_entries)
    note(fmt::format("trace: {} spans are kept, later ones are dropped", timeline_entries_));
}

void Supervisor::on_message(int rank, const Message& message) {
  std::visit([&](const auto& one) { on(rank, one); }, message);
}

void Supervisor::on_refused(const message::Refused& refusal) {
  if (breakdown_) return;
  fail(FailureKind::refused, refusal.reason);
  if (static_cast<std::size_t>(refusal.rank) < ranks_.size()) breakdown_->hosts = {host_name(refusal.rank)};
}

void Supervisor::on_hello(int rank, const message::Hello& hello) {
  RankState& state = state_of(rank);
  state.connected = true;
  state.host = hello.host;
  const auto host = static_cast<std::size_t>(host_of(rank));
  if (host >= options_.slots.size() || options_.slots[host].here) state.pid = hello.pid;
  group_->add_worker(rank, hello.pid);
  shared_.send_all(rank, loop_.server());
}

void Supervisor::on_closed(int rank) {
  state_of(rank).connected = false;
  blame_ended(rank);
}

void Supervisor::poll_round(int timeout_ms) {
  const bool heard = loop_.round(timeout_ms, {&signals_, group_.get()});
  blame_lost_host();
  // A worker's messages count before its end.
  if (!heard && group_->reap()) blame_ended(group_->first_ended().value_or(-1));
  progress_.tick();
  sink_.keep_alive();
}

void Supervisor::send_to_all(const Message& message) {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (!loop_.server().send(static_cast<int>(rank), message)) blame_ended(static_cast<int>(rank));
}

bool Supervisor::failed_for_good() const {
  return breakdown_ &&
         (!breakdown_->reported || ranks_.size() == 1 || Clock::now() - *breakdown_->reported >= blame_delay);
}

bool Supervisor::all_finished() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const RankState& rank) { return rank.part.has_value(); });
}

int Supervisor::host_of(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  return index < placement_.seats.size() ? placement_.seats[index].host : 0;
}

std::string Supervisor::host_name(int rank) const {
  return options_.hosts[static_cast<std::size_t>(host_of(rank))].name;
}

std::int64_t Supervisor::clock_ahead_ns(int rank) const {
  return options_.agents ? options_.agents->clock_ahead_ns(host_of(rank)) : 0;
}

void Supervisor::check_deadline(Clock::time_point deadline, double limit) {
  const Clock::time_point now = Clock::now();
  if (breakdown_ || now < deadline) return;
  if (case_index_ >= 0)
    blame_late(now, limit);
  else
    blame_missing(limit);
}

Supervisor::Wait Supervisor::wait_hellos() {
  const auto deadline = after(options_.launch_limit_seconds);
  for (;;) {
    if (signals_.interrupted()) return Wait::interrupted;
    if (failed_for_good()) return Wait::failed;
    if (std::all_of(ranks_.begin(), ranks_.end(), [](const RankState& rank) { return rank.connected; }))
      return Wait::done;
    poll_round(500);
    check_deadline(deadline, options_.launch_limit_seconds);
  }
}

Supervisor::Wait Supervisor::run_case(const Job& job, int index) {
  case_index_ = index;
  asked_.reset();
  std::set<std::string> hosts;
  for (RankState& rank : ranks_) {
    hosts.insert(rank.host);
    rank.phase.clear();
    rank.injected.clear();
    rank.part.reset();
  }
  CaseOrder order = job.order;
  order.world.nodes = static_cast<int>(hosts.size());
  order.peaks = options_.peaks;
  send_to_all(to_message(order, index));
  const auto deadline = after(job.timeout_seconds);
  for (;;) {
    // A complete record is kept, whatever else happened.
    if (all_finished()) {
      std::vector<Record> parts;
      for (RankState& rank : ranks_) parts.push_back(std::move(*rank.part));
      Record whole = merge_parts(std::move(parts));
      whole.started = earlier(whole.started, clock_ahead_ns(0));
      deliver(job, std::move(whole));
      return breakdown_ ? Wait::failed : Wait::done;
    }
    if (signals_.interrupted()) return Wait::interrupted;
    if (failed_for_good()) return Wait::failed;
    poll_round(500);
    check_deadline(deadline, job.timeout_seconds);
  }
}

// A batch system that ends a job signals all of its processes at once: a worker may end before this process has read
// its own signal.
bool Supervisor::ended_by_interrupt() {
  if (!breakdown_->exit_status_wanted || !group_) return signals_.interrupted();
  group_->wait_end(2.0, breakdown_->rank);
  const auto status = group_->wait_status(breakdown_->rank);
  const bool by_signal = status && signals_.contains(ending_signal(*status, group_->through_launcher()));
  return read_until(signals_, by_signal ? 0.5 : 0, [this] { return signals_.interrupted(); });
}

void Supervisor::deliver(const Job& job, Record record) {
  std::set<Fault> injected;
  for (const RankState& rank : ranks_) injected.insert(rank.injected.begin(), rank.injected.end());
  flag_faults(record, job.order.faults, injected);
  progress_.finish(record);
  if (auto peak = measured_peak(record)) options_.peaks.push_back(std::move(*peak));
  options_.sweeps.learn(record);
  sink_.record(std::move(record));
}

bool Supervisor::skipped(const Job& job) {
  const auto sweep = job.order.labels.find("sweep");
  const auto past = sweep == job.order.labels.end()
                        ? std::nullopt
                        : options_.sweeps.past(job.order.key, sweep->second, job.order.world.ranks);
  if (!past) return false;
  Record record = blank_record(job.order, options_.device);
  record.ranks = {{0, options_.slots.front().name, "", std::nullopt}};
  record.status = Status::skipped;
  record.reason = *past;
  deliver(job, std::move(record));
  return true;
}

bool Supervisor::run(std::vector<Job> jobs) {
  if (signals_.interrupted()) return false;
  int fruitless = 0;           // launches in a row that never reached the first phase of a case
  std::optional<int> held_up;  // the rank, of several with GPUs, that the last case waited for until its limit
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Job& job = jobs[i];
    progress_.begin(job.order.key, job.order.world.ranks, job.estimated_seconds);
    if (skipped(job)) continue;
    begun_ = Clock::now();
    begun_at_ = utc_now();
    case_index_ = -1;
    Wait wait = Wait::done;
    if (!group_) wait = start_workers(job) ? wait_hellos() : Wait::failed;
    if (wait == Wait::done) wait = run_case(job, static_cast<int>(i));
    const std::optional<int> before = std::exchange(held_up, std::nullopt);
    if (wait == Wait::done && !signals_.interrupted()) continue;
    // A launcher that ends a job reaches its hosts in any order: a signal to this process may still be on its way.
    if (wait == Wait::failed)
      read_until(signals_, options_.agents && !no_seats_ ? 1.5 : 0, [this] { return signals_.interrupted(); });
    if (wait == Wait::failed && !signals_.interrupted()) {
      const bool worked = group_worked_;
      std::optional<Record> record;
      if (!all_finished() && !ended_by_interrupt()) record = broken_record(job);
      end_group(false);
      fruitless = worked ? 0 : fruitless + 1;
      if (record) {
        deliver(job, *record);
        const Failure failure = record->failure.value_or(Failure());
        const auto rank = static_cast<std::size_t>(failure.rank.value_or(0));
        const bool on_gpu = rank < placement_.seats.size() && placement_.seats[rank].gpu.has_value();
        if (failure.kind == FailureKind::timeout && on_gpu && ranks_.size() > 1) held_up = failure.rank;
        const bool again = held_up && held_up == before;
        if (fruitless >= 2 || no_seats_ || again) i = deliver_rest(jobs, i, *record);
      }
    }
    if (signals_.interrupted()) {
      end_group(false);
      return false;
    }
  }
  end_group(true);
  return !signals_.interrupted();
}

// A cause that keeps workers from starting would keep later ones from it, too; and a GPU that two cases in a row have
// waited for would hold up the next.
std::size_t Supervisor::deliver_rest(const std::vector<Job>& jobs, std::size_t index, const Record& broken) {
  while (++index < jobs.size()) {
    const Job& job = jobs[index];
    Record same = blank_record(job.order, options_.device);
    same.ranks = broken.ranks;
    same.world_nodes = broken.world_nodes;
    same.status = Status::error;
    same.reason = broken.reason;
    same.failure = broken.failure;
    if (flag::has(broken.flags, flag::timed_out)) same.flags.emplace_back(flag::timed_out);
    progress_.begin(same.key, same.world_ranks, job.estimated_seconds);
    deliver(job, std::move(same));
  }
  return index;
}

std::vector<trace::RankTimeline> Supervisor::release_timelines() {
  std::vector<trace::RankTimeline> all;
  for (auto& [rank, timeline] : std::exchange(timelines_, {})) all.push_back(std::move(timeline));
  return all;
}

}  // namespace assay
