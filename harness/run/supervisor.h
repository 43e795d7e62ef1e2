// The supervisor's loop: a worker group per world size, one case after another, and what happens when a worker dies.
#pragma once

#include "harness/channel/loop.h"
#include "harness/hosts/agents.h"
#include "harness/hosts/seating.h"
#include "harness/hosts/worker_group.h"
#include "harness/process/end_signals.h"
#include "harness/run/execute.h"
#include "harness/run/lateness.h"
#include "harness/run/progress.h"
#include "harness/run/shared_values.h"
#include "harness/run/sink.h"
#include "harness/run/sweep_stops.h"
#include "harness/trace/trace.h"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace assay {

struct Job {
  CaseOrder order;
  double timeout_seconds = 0;
  double estimated_seconds = 0;
};

struct SupervisorOptions {
  std::vector<AllocatedHost> slots;  // the hosts that take part, in the order in which they are filled
  std::vector<HostInfo> hosts;       // information about each slot's host
  Agents* agents = nullptr;          // the agents of these hosts; null if only this host takes part
  DeviceKind device = DeviceKind::cpu;
  LauncherKind several_ranks = LauncherKind::mpirun;
  std::filesystem::path cache_dir;
  std::vector<MeasuredPeak> peaks;  // measured in earlier parts of the run
  SweepStops sweeps = {};           // with what earlier parts of the run measured
  bool trace = false;
  bool share_gpu = false;  // ranks may share GPUs
  double launch_limit_seconds = 60;
};

// Processes that the kernel killed when memory ran out, on this machine and in this cgroup.
std::int64_t oom_kill_count();

// Runs jobs and hands a record of each to the sink. A worker that breaks costs the current case; a new group runs the
// rest. SIGINT, SIGTERM, SIGHUP (unless it was ignored from the start), SIGUSR1 and SIGUSR2 end the run between two
// records; a second SIGINT exits at once.
class Supervisor : private ChannelHandler {
 public:
  // `progress` and `sink` must outlive this.
  Supervisor(SupervisorOptions options, Progress& progress, RunSink& sink);
  ~Supervisor() override;

  // Runs jobs of one world size. False when the run was interrupted.
  bool run(std::vector<Job> jobs);
  // The timeline of each rank, under --trace.
  std::vector<trace::RankTimeline> release_timelines();

 private:
  using Clock = std::chrono::steady_clock;

  // How a case ended without its record.
  struct Breakdown {
    FailureKind kind = FailureKind::exception;
    std::string reason = {};
    std::optional<Record> part = std::nullopt;  // the part of the rank that reported the failure
    bool exit_status_wanted = false;            // how the worker ended may explain it
    int rank = -1;
    std::vector<std::string> hosts = {};                       // that are to blame, if that is not the rank's alone
    std::optional<Clock::time_point> reported = std::nullopt;  // when that rank reported it, if it did
  };
  enum class Wait { done, failed, interrupted };

  // False when the workers cannot be started; breakdown_ is then the reason.
  bool start_workers(const Job& first);
  void end_group(bool orderly);
  Wait wait_hellos();
  Wait run_case(const Job& job, int index);
  void poll_round(int timeout_ms);

  void on_hello(int rank, const message::Hello& hello) override;
  void on_message(int rank, const Message& message) override;
  void on_closed(int rank) override;
  void on_refused(const message::Refused& refusal) override;
  void on_silent(int rank, double seconds) override;
  void note(const std::string& line) override { progress_.note("assay: " + line); }
  std::string name_of_peer(int rank) const override { return "rank " + std::to_string(rank); }
  void on(int rank, const message::Phase& phase);
  void on(int rank, const message::Heartbeat& heartbeat);
  void on(int rank, const message::Injected& injected);
  void on(int rank, const message::Finished& finished);
  void on(int rank, const message::Abort& abort);
  void on(int rank, const message::Share& share);
  void on(int, const message::FileText& file) { sink_.file(file.name, file.text, file.replace); }
  void on(int rank, const message::Timeline& timeline);
  void on(int, const auto&) {}

  // The ranks that are missing or late at the deadline of a group's start or of a case.
  void check_deadline(Clock::time_point deadline, double limit);
  void blame_missing(double limit);
  // Asks every rank how far it has come, and blames the late ranks once all have had time to answer.
  void blame_late(Clock::time_point now, double limit);
  void fail(FailureKind kind, std::string reason, int rank = -1);
  void fail_timed_out(const std::string& reason, int rank);
  // Blames a worker that ended, or a lost host, unless something better is known.
  void blame_ended(int rank);
  void blame_lost_host();
  // Whether no message or exit status that is still on its way could name another cause.
  bool failed_for_good() const;
  bool all_finished() const;
  void send_to_all(const Message& message);
  int host_of(int rank) const;
  std::string host_name(int rank) const;
  // How far the clock of a rank's host is ahead of this host's.
  std::int64_t clock_ahead_ns(int rank) const;
  // Whether the worker was ended by a signal that ends the whole run.
  bool ended_by_interrupt();
  Record broken_record(const Job& job);
  // Why a case broke, given how its worker ended and what it printed last.
  std::string reason_of(const Breakdown& breakdown, const std::string& ending, const std::string& log) const;
  Failure failure_of(const Breakdown& breakdown) const;
  // Broken records of the jobs after `index`; the number of jobs.
  std::size_t deliver_rest(const std::vector<Job>& jobs, std::size_t index, const Record& broken);
  // Delivers a skip if the case lies past the end of its sweep.
  bool skipped(const Job& job);
  // Flags the faults that were injected.
  void deliver(const Job& job, Record record);

  SupervisorOptions options_;
  Progress& progress_;
  RunSink& sink_;
  ChannelLoop loop_;
  std::unique_ptr<WorkerGroup> group_;
  EndSignals signals_;

  struct RankState {
    bool connected = false;
    std::string host;
    std::int64_t pid = 0;  // 0: on another host
    std::string phase;
    Clock::time_point phase_since;
    message::Heartbeat heartbeat;  // the last heartbeat
    bool answered = false;         // since it was asked how far it has come
    std::set<Fault> injected;      // into the current case
    std::optional<Record> part;
  };
  RankState& state_of(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  std::vector<RankState> ranks_;
  Placement placement_;  // where the group's ranks run
  SharedValues shared_;
  int case_index_ = -1;
  Clock::time_point begun_;                 // when the current case began, with the start of its workers
  std::string begun_at_;                    // the same time, for its record
  std::optional<Clock::time_point> asked_;  // when every rank was asked how far it has come, in this case
  bool group_worked_ = false;               // a case of this group reached a phase
  bool no_seats_ = false;                   // no group can start: hosts are lost for good
  std::optional<Breakdown> breakdown_;
  std::int64_t oom_kills_ = 0;
  std::map<int, trace::RankTimeline> timelines_;
  std::size_t timeline_entries_ = 0;
};

}  // namespace assay
