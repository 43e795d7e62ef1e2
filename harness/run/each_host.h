// --each-host: the plan's cases on every host separately, all hosts at once, into one run directory.
#pragma once

#include "harness/channel/loop.h"
#include "harness/hosts/agents.h"
#include "harness/plan/plan.h"
#include "harness/process/end_signals.h"
#include "harness/record/record.h"
#include "harness/run/progress.h"
#include "harness/run/sink.h"

#include <chrono>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace assay {

struct EachHostOrder {
  const Plan* plan = nullptr;
  DeviceKind device = DeviceKind::cpu;
  std::map<std::string, std::string> labels;
  std::set<Fault> faults;
  bool share_gpu = false;
  // If the hosts are one machine: the CPUs of each.
  std::vector<std::vector<int>> cpus = {};
  // Final records of the run that is resumed, by host.
  std::map<std::string, std::vector<Record>> before;
  double launch_limit_seconds = 60;
};

// On each host an agent starts one `assay each-host`, which runs the cases there with its own Supervisor and reports
// over the channel. A host that is lost or refuses costs its own cases: each becomes an `error` that names the host.
// Signals end the run between two records.
class EachHost : private ChannelHandler {
 public:
  // All must outlive this.
  EachHost(Agents& agents, const EachHostOrder& order, RunSink& sink);

  // False when the run was interrupted.
  bool run();
  // Hosts whose runs were lost, with why.
  const std::map<std::string, std::string>& lost() const { return lost_; }

 private:
  using Clock = std::chrono::steady_clock;

  struct Host {
    std::string name;
    int process = -1;  // its number at the agents
    bool connected = false;
    bool finished = false;              // done, or given up
    Clock::time_point waiting_since{};  // since when its connection is awaited
    std::string key;                    // the current case
    Clock::time_point begun{};
    int notes = 0;                         // that it sent
    std::map<Identity, std::size_t> left;  // cases without a final record: index in the plan
  };
  Host& host_at(int index) { return hosts_[static_cast<std::size_t>(index)]; }

  void start(int index);
  std::vector<std::string> shared_machine_flags() const;
  void poll_round();

  void on_hello(int index, const message::Hello& hello) override;
  void on_message(int index, const Message& message) override;
  void on_closed(int index) override;
  void on_refused(const message::Refused& refusal) override;
  void on_silent(int index, double seconds) override;
  void note(const std::string& line) override { live_.note("assay: " + line); }
  std::string name_of_peer(int index) const override;
  void on(int index, const message::Begin& begin);
  void on(int index, const message::Finished& finished) { keep(index, finished.record); }
  void on(int index, const message::Machine& machine) { sink_.machine(host_at(index).name, machine); }
  void on(int index, const message::FileText& file);
  void on(int index, const message::Note& note);
  void on(int index, const message::Abort& abort) { give_up(index, FailureKind::launch, abort.reason); }
  void on(int index, const message::End& end);
  void on(int, const auto&) {}

  void keep(int index, Record record);
  // Gives up hosts that were lost, ended or never started.
  void check_hosts();
  // The remaining cases of a host become errors.
  void give_up(int index, FailureKind kind, const std::string& why);
  Record broken_record(const Host& host, const PlannedCase& planned, const std::string& why) const;
  void draw();

  Agents& agents_;
  const EachHostOrder& order_;
  RunSink& sink_;
  LiveLine live_;
  ChannelLoop loop_;
  EndSignals signals_;
  std::vector<Host> hosts_;
  std::map<std::string, std::string> lost_;
  std::size_t done_ = 0;
  std::size_t all_ = 0;
  Clock::time_point started_{};
};

}  // namespace assay
