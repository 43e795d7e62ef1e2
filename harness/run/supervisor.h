// The supervisor's loop: one worker group a world size, one case after another, and what happens when a worker dies.
#pragma once

#include "harness/channel/channel.h"
#include "harness/hosts/agents.h"
#include "harness/hosts/seating.h"
#include "harness/hosts/worker_group.h"
#include "harness/run/end_signals.h"
#include "harness/run/execute.h"
#include "harness/run/lateness.h"
#include "harness/run/progress.h"
#include "harness/run/shared_values.h"
#include "harness/trace/trace.h"

#include <chrono>
#include <functional>
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
  std::vector<HostInfo> hosts;       // the same, as they say of themselves
  Agents* agents = nullptr;          // theirs; nothing where this host alone takes part
  DeviceKind device = DeviceKind::cpu;
  std::filesystem::path cache_dir;
  std::filesystem::path run_dir;  // told to the workers
  // Called with what workers write below the run directory; may throw.
  std::function<void(const std::string& name, std::string_view text, bool anew)> keep_file;
  std::function<void()> go_on;  // called about every second while the run goes on
  bool trace = false;
  bool share_gpu = false;  // ranks may share GPUs
  // A rank that says nothing for so long is taken for dead; heartbeats come every two seconds.
  double heartbeat_limit_seconds = 30;
  double launch_limit_seconds = 60;
};

// Runs jobs and hands over one record for each. What breaks a worker costs the case at hand; the group is started anew
// for the rest. SIGINT, SIGTERM, SIGHUP (unless it was ignored already: nohup), SIGUSR1 and SIGUSR2 (which batch
// systems send ahead of a time limit) end the run between two records; a second SIGINT ends the process at once.
class Supervisor {
 public:
  // Called with each finished record. What it throws ends the run after the workers were ended.
  using Sink = std::function<void(Record)>;

  // `peaks` grows while records are sunk; each case is sent what it holds by then. References must outlive this.
  Supervisor(SupervisorOptions options, LauncherKind several_ranks, const std::vector<MeasuredPeak>& peaks,
             Progress& progress, Sink sink);
  ~Supervisor();

  // All of one world size. False when the run was interrupted.
  bool run(std::vector<Job> jobs);
  bool interrupted() const { return interrupted_; }
  // What ranks collected under --trace, by rank.
  std::vector<trace::RankTimeline> take_timelines();

 private:
  using Clock = std::chrono::steady_clock;

  // How a case ended other than by its record.
  struct Failure {
    std::string reason;
    std::optional<Record> part;  // of the rank that reported it
    bool unexplained = false;    // the launcher's status may say more
    int rank = -1;
    std::optional<Clock::time_point> told = std::nullopt;  // when that rank gave up with a word of its own
  };
  enum class Wait { done, failed, interrupted };

  // False when it cannot be started: failure_ says why.
  bool start_workers(const Job& first);
  void end_group(bool orderly);
  Wait wait_hellos();
  Wait run_case(const Job& job, int index);
  // One round of waiting; true when something ended the wait.
  void pump(int timeout_ms);
  void take(const ChannelServer::Event& event);
  void take_message(int rank, const Json& message);
  void watch_clocks(Clock::time_point deadline, double limit);
  // At a case's deadline: asks every rank where it is, and once they had time to answer says who is late.
  void find_the_late(Clock::time_point now, double limit);
  void watch_signals();
  // A launcher that ends a job reaches its hosts in any order: the signal to this one may still be on its way.
  void await_signal(double seconds);
  // A failure for which the end of a worker, or a lost host, is to blame.
  void blame_ended(int rank);
  void blame_lost_host();
  // Whether nothing that may still come in tells better why.
  bool failed_for_good() const;
  // How far the clock of a rank's host is ahead of this one.
  std::int64_t clock_ahead_ns(int rank) const;
  // Whether a rank's end is that of the whole run, which was asked for.
  bool fell_by_order();
  Record broken_record(const Job& job);
  // With what was injected of the faults that were asked for.
  void deliver(const Job& job, Record record);

  SupervisorOptions options_;
  LauncherKind several_ranks_;
  const std::vector<MeasuredPeak>& peaks_;
  Progress& progress_;
  Sink sink_;
  ChannelServer channel_;
  std::unique_ptr<WorkerGroup> group_;
  EndSignals signals_;
  bool interrupted_ = false;

  struct RankState {
    bool connected = false;
    std::string host;
    std::int64_t pid = 0;  // on this host; 0: on another
    std::string phase;
    Clock::time_point phase_since;
    Clock::time_point heard;
    std::uint64_t begun = 0, ended = 0;  // collectives entered and left, as its last heartbeat said
    std::string call;                    // the last one entered
    bool answered = false;               // since it was asked where it is
    std::set<Fault> injected;            // into the case at hand
    std::optional<Record> part;
  };
  std::vector<RankState> ranks_;
  Placement placement_;  // of the group's ranks
  SharedValues shared_;
  int case_index_ = -1;
  Clock::time_point begun_;                 // the case at hand, the start of its workers included
  std::string begun_at_;                    // the same as a record says it
  std::optional<Clock::time_point> asked_;  // every rank where it is, in this case
  bool group_worked_ = false;               // a case of this group got as far as a phase
  bool without_seats_ = false;              // no group can be had: hosts are lost for good
  std::optional<Failure> failure_;
  std::int64_t oom_kills_ = 0;
  std::map<int, trace::RankTimeline> timelines_;
  std::size_t timeline_entries_ = 0;
};

}  // namespace assay
