// The supervisor finds out why a case broke and whose fault it is.
#include "harness/core/text.h"
#include "harness/device/cpu/cpu_list.h"
#include "harness/record/flags.h"
#include "harness/run/supervisor.h"

#include <csignal>
#include <fstream>
#include <set>
#include <utility>

namespace assay {

namespace {

constexpr std::size_t log_bytes = 4096;
constexpr auto answer_time = std::chrono::milliseconds(1500);  // for ranks that are asked how far they have come

bool mentions_memory(const std::string& text) {
  for (const char* word : {"bad_alloc", "Cannot allocate memory", "out of memory", "Out of memory"})
    if (text.find(word) != text.npos) return true;
  return false;
}

}  // namespace

std::int64_t oom_kill_count() {
  std::int64_t total = 0;
  for (const char* path : {"/proc/vmstat", "/sys/fs/cgroup/memory.events"}) {
    std::ifstream file(path);
    std::string name;
    for (std::int64_t value = 0; file >> name >> value;)
      if (name == "oom_kill") total += value;
  }
  return total;
}

void Supervisor::fail(FailureKind kind, std::string reason, int rank) {
  if (!breakdown_) breakdown_ = Breakdown{.kind = kind, .reason = std::move(reason), .rank = rank};
}

void Supervisor::fail_timed_out(const std::string& reason, int rank) {
  fail(FailureKind::timeout, "timeout: " + reason, rank);
}

// If a rank reported losing a peer, blame the peer that ended.
void Supervisor::blame_ended(int rank) {
  if (!breakdown_ || (breakdown_->reported && rank >= 0 && rank != breakdown_->rank))
    breakdown_ =
        Breakdown{.kind = FailureKind::crashed, .reason = "its worker ended", .exit_status_wanted = true, .rank = rank};
}

// The workers of a lost host end with it, and other ranks report losing them; either may be known first.
void Supervisor::blame_lost_host() {
  const auto lost = group_->lost();
  if (!lost || (breakdown_ && !breakdown_->exit_status_wanted && !breakdown_->reported)) return;
  breakdown_ = Breakdown{.kind = FailureKind::lost_host, .reason = lost->reason, .rank = lost->rank};
}

void Supervisor::on_silent(int rank, double seconds) {
  blame_lost_host();
  const RankState& state = state_of(rank);
  std::string reason = fmt::format("rank {} on {} sent no heartbeat for {:.3g} s", rank, state.host, seconds);
  if (state.pid > 0 && process_state(state.pid) == 'T') reason += ": its process is stopped";
  fail_timed_out(reason, rank);
}

void Supervisor::blame_missing(double limit) {
  std::string missing;
  std::set<std::string> hosts;
  int first = -1;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (!ranks_[rank].connected) {
      hosts.insert(host_name(static_cast<int>(rank)));
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
      if (first < 0) first = static_cast<int>(rank);
    }
  fail_timed_out(fmt::format("the workers did not start within {:.3g} s (missing: rank {})", limit, missing), first);
  if (hosts.size() > 1) breakdown_->hosts.assign(hosts.begin(), hosts.end());
}

void Supervisor::blame_late(Clock::time_point now, double limit) {
  if (!asked_) {
    asked_ = now;
    for (RankState& rank : ranks_) rank.answered = false;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      loop_.server().send(static_cast<int>(rank), message::Where{});
  }
  const bool all = std::all_of(ranks_.begin(), ranks_.end(), [](const RankState& rank) { return rank.answered; });
  if (!all && now - *asked_ < answer_time) return;
  std::vector<RankStatus> statuses;
  for (const RankState& rank : ranks_)
    statuses.push_back({rank.host, rank.part.has_value(), rank.answered, rank.phase,
                        std::chrono::duration<double>(now - rank.phase_since).count(),
                        rank.pid > 0 ? process_state(rank.pid) : '?', rank.heartbeat.begun, rank.heartbeat.ended,
                        rank.heartbeat.call});
  const Lateness late = find_late(statuses);
  fail_timed_out(fmt::format("not done after {:.3g} s: {}", limit, late.words), late.rank);
}

// Ends the group on the way, since only its end shows how a worker ended.
Record Supervisor::broken_record(const Job& job) {
  std::string ending, log;
  bool killed = false;
  if (group_) {
    if (breakdown_->exit_status_wanted)
      group_->wait_end(5.0, breakdown_->rank);  // mpirun needs a moment to end the others
    blame_lost_host();
    if (const auto status = group_->wait_status(breakdown_->rank); breakdown_->exit_status_wanted && status) {
      ending = describe_status(*status, group_->through_launcher());
      killed = ending_signal(*status, group_->through_launcher()) == SIGKILL;
    }
    group_->kill_all();
    log = group_->tail(log_bytes, breakdown_->rank);
  }
  Breakdown breakdown = *breakdown_;
  if (breakdown.exit_status_wanted && (mentions_memory(log) || (killed && oom_kill_count() > oom_kills_)))
    breakdown.kind = FailureKind::out_of_memory;

  CaseOrder order = job.order;
  order.world.nodes = placement_.hosts;  // even if some never connected, so that the case's identity stays the same
  Record record = breakdown.part ? *breakdown.part : blank_record(order, options_.device);
  if (breakdown.part) {
    record.started = earlier(record.started, clock_ahead_ns(breakdown.rank));
  } else {
    record.started = begun_at_;
    record.seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
  }
  record.world_nodes = order.world.nodes;
  record.ranks.clear();
  for (const RankSeat& seat : placement_.seats) {
    const HostInfo& host = options_.hosts[static_cast<std::size_t>(seat.host)];
    const auto at = static_cast<std::size_t>(seat.gpu.value_or(0));
    const GpuPlace gpu = seat.gpu && host.gpus && at < host.gpus->size() ? (*host.gpus)[at] : GpuPlace();
    record.ranks.push_back(
        {seat.rank, host.name, "", std::nullopt, gpu.uuid, gpu.pci, "", cpu_list_text(seat.cpus), seat.numa_node});
  }
  record.status = Status::error;
  record.metrics.clear();
  record.samples = {};
  record.reason = reason_of(breakdown, ending, log);
  record.failure = failure_of(breakdown);
  if (breakdown.kind == FailureKind::timeout) record.flags.emplace_back(flag::timed_out);
  record.log = log;
  if (!log.empty()) progress_.note(last_lines(log, 20));
  return record;
}

Failure Supervisor::failure_of(const Breakdown& breakdown) const {
  Failure failure{.kind = breakdown.kind};
  if (breakdown.rank >= 0) {
    failure.rank = breakdown.rank;
    failure.host = host_name(breakdown.rank);
  }
  if (breakdown.hosts.size() == 1) failure.host = breakdown.hosts.front();
  if (breakdown.hosts.size() > 1) failure.hosts = breakdown.hosts;
  return failure;
}

std::string Supervisor::reason_of(const Breakdown& breakdown, const std::string& ending, const std::string& log) const {
  std::string reason = ending.empty() ? breakdown.reason : ending;
  const auto culprit = static_cast<std::size_t>(std::max(breakdown.rank, 0));
  if (breakdown.rank >= 0 && ranks_.size() > 1 && reason.find("rank ") == reason.npos)
    reason = fmt::format("rank {}: {}", breakdown.rank, reason);
  if (const std::string phase = culprit < ranks_.size() ? ranks_[culprit].phase : "";
      !breakdown.part && !phase.empty() && reason.find("in " + phase) == reason.npos)
    reason += " in " + phase;
  if (breakdown.exit_status_wanted) {
    if (breakdown.kind == FailureKind::out_of_memory) reason = "out of memory: " + reason;
    if (!log.empty()) reason += fmt::format("; stderr: {}", one_line(last_lines(log, 1), 300));
  }
  return reason;
}

}  // namespace assay
