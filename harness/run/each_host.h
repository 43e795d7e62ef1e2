// --each-host: the plan's cases on every host by itself, all hosts at once, into one run directory.
#pragma once

#include "harness/channel/channel.h"
#include "harness/hosts/agents.h"
#include "harness/plan/plan.h"
#include "harness/record/record.h"
#include "harness/run/end_signals.h"
#include "harness/run/progress.h"

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace assay {

struct EachHostOrder {
  const Plan* plan = nullptr;
  DeviceKind device = DeviceKind::cpu;
  std::map<std::string, std::string> labels;
  std::set<Fault> faults;
  bool share_gpu = false;
  // Where hosts are one machine: the CPUs that each may use.
  std::vector<std::vector<int>> cpus = {};
  // Of a resumed run, by host: final records.
  std::map<std::string, std::vector<Record>> before;
  double heartbeat_limit_seconds = 30;
  double launch_limit_seconds = 60;
};

// What reaches the one who keeps the run directory. Each may throw, which ends the run.
struct EachHostSinks {
  std::function<void(Record)> record;
  // Environment and findings of a host, before its first record: {"name", "environment", "findings"}.
  std::function<void(Json)> host;
  std::function<void(const std::string& name, std::string_view text, bool anew)> file;
  std::function<void()> go_on;  // called about every second while the run goes on
};

// On each host one process of `assay each-host`, started by its agent, which runs the cases there with a Supervisor of
// its own and tells of them over the channel. A host that is lost, or refuses, costs its own cases: each becomes an
// `error` that names it. SIGINT and SIGTERM end the run between two records.
class EachHost {
 public:
  // All must outlive this.
  EachHost(Agents& agents, const EachHostOrder& order, EachHostSinks sinks);

  // False when the run was interrupted.
  bool run();

 private:
  using Clock = std::chrono::steady_clock;
  struct Host {
    std::string name;
    int process = -1;  // Agents' number
    bool connected = false;
    bool finished = false;  // it has said that it is done, or was given up
    Clock::time_point heard{};
    std::string key;  // at hand
    Clock::time_point begun{};
    std::map<Identity, std::size_t> left;  // cases without a final record: place in the plan
  };

  void start(std::size_t host);
  void send_order(std::size_t host);
  std::vector<std::string> shared_machine_flags() const;
  void pump();
  void take(const ChannelServer::Event& event);
  void take_message(std::size_t host, const Json& message);
  template <typename Call>
  void sink(const Call& call);
  void keep(std::size_t host, Record record);
  void watch();
  // The cases that are left of a host become errors.
  void give_up(std::size_t host, const std::string& why);
  void note(const std::string& text) { live_.note(text); }
  void tick();

  Agents& agents_;
  const EachHostOrder& order_;
  EachHostSinks sinks_;
  ChannelServer channel_;
  EndSignals signals_;
  std::vector<Host> hosts_;
  std::exception_ptr broken_;  // what a sink threw
  bool interrupted_ = false;
  LiveLine live_;
  std::size_t done_ = 0;
  std::size_t all_ = 0;
  Clock::time_point started_{};
};

}  // namespace assay
