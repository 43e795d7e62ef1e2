// The hosts of a run as its supervisor sees them: one agent each, started once, watched until the run ends.
#pragma once

#include "harness/channel/channel.h"
#include "harness/hosts/allocation.h"
#include "harness/hosts/host_info.h"
#include "harness/hosts/process.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace assay {

class AgentStarter;

struct AgentsOptions {
  std::string device;               // name of the device that is measured
  std::string plan;                 // fingerprint; compared with hosts that were given a plan of their own
  double start_limit_seconds = 60;  // for all hosts together
  std::function<void(const std::string&)> note = {};  // lines for stderr
  // Of an allocation whose hosts already know it; nothing: one is made.
  std::unique_ptr<ChannelServer> server = {};
};

// Everything happens in take(), on the caller's thread. A host whose agent has gone is lost until an agent of its name
// comes again: one that bring_back() had started, or that others did.
class Agents {
 public:
  // Starts an agent on every host, all at once, and waits for their hellos. Throws Error that names each host that
  // cannot be reached, or is of another version, architecture or plan, and why.
  Agents(Allocation allocation, AgentsOptions options);
  // Lets them go.
  ~Agents();
  Agents(const Agents&) = delete;
  Agents& operator=(const Agents&) = delete;

  const Allocation& allocation() const { return allocation_; }
  // In the order of the allocation, which holds their names and slots.
  const std::vector<HostInfo>& hosts() const { return infos_; }
  std::optional<int> host_named(std::string_view name) const;
  // How far a host's clock is ahead of this one, in nanoseconds, measured to half of the round trip.
  std::int64_t clock_ahead_ns(int host) const { return states_[static_cast<std::size_t>(host)].ahead_ns; }
  std::int64_t round_trip_ns(int host) const { return states_[static_cast<std::size_t>(host)].round_trip_ns; }
  // One sentence for each host whose clock is more than a second off, beyond what the round trip leaves open.
  std::vector<std::string> clock_findings() const;
  // Where workers on these hosts reach a server of this process: names or addresses, separated by commas.
  const std::string& own_addresses() const { return own_addresses_; }
  // Whether all of these hosts share one loopback.
  bool one_network(const std::vector<int>& hosts) const;

  // Of the caller's poll; then take().
  void add_fds(std::vector<pollfd>& fds) const;
  void take();
  // take() at least once, and again for so long as `until` does not hold, at most `seconds`. What it returned last.
  bool take_until(double seconds, const std::function<bool()>& until);

  // Why a host is lost; empty while it is not.
  const std::string& lost(int host) const { return states_[static_cast<std::size_t>(host)].lost; }
  // Whether it is lost and bring_back() was in vain: nobody waits for it any more, but it may still come.
  bool given_up(int host) const { return states_[static_cast<std::size_t>(host)].given_up; }
  // Starts the agents of the lost among these hosts anew, or where hosts come by themselves waits for them, as long as
  // at the start of the run or until `stop` holds. True when all are there; else, unless stopped, the others are given
  // up.
  bool bring_back(const std::vector<int>& hosts, const std::function<bool()>& stop);

  struct Remote {
    int host = 0;
    std::string printed;        // the end of it
    std::optional<int> status;  // wait status
  };
  // A process of the hidden subcommand on a host; its number. A host that is lost ends it at once.
  int start(int host, const std::string& subcommand, const Variables& variables);
  const Remote& remote(int id) const { return remotes_.at(id); }
  // Ends all that was started on these hosts and waits for it; what is lost is passed over.
  void clear(const std::vector<int>& hosts);
  // Ended processes are remembered until then.
  void forget_ended();
  // For `assay remote-shell` on this host: where it asks, and its token.
  std::string shell_address() const;
  const std::string& token() const { return channel_->token(); }
  // While on, `assay remote-shell` may have daemons started; off ends what it asked for.
  void serve_shells(bool on);
  // What such daemons printed.
  const std::string& shells_printed() const { return shells_printed_; }

 private:
  using Clock = std::chrono::steady_clock;

  struct State {
    int peer = -1;       // its number at the channel; -1 while it is not connected
    bool ready = false;  // it has said what it has, and what time it is
    std::string lost;
    bool given_up = false;
    Clock::time_point heard{};
    std::int64_t ahead_ns = 0;
    std::int64_t round_trip_ns = 0;
    int clocks_asked = 0;
    int cleared = 0;
  };

  void listen();
  void sort_by_rank();
  // Until all of these hosts are ready or `stop` holds. What keeps them from that otherwise, a sentence each.
  std::vector<std::string> wait_for(const std::vector<int>& hosts, const std::function<bool()>& stop);
  std::vector<std::string> problems_of(const std::vector<int>& hosts) const;
  void take_event(const ChannelServer::Event& event);
  void take_hello(int peer, const Json& hello);
  void take_message(int host, const Json& message);
  void take_guest(int number, const Json& message);
  void take_clock(int host, const Json& message);
  void ask_clock(int host);
  int start(int host, Json order);
  void end_remote(int id, int status);
  void heartbeats();
  void lose(int host, const std::string& why);
  int host_of(int peer) const;
  bool send(int host, const Json& message);
  std::string name_of_host(int host) const;

  Allocation allocation_;
  AgentsOptions options_;
  std::unique_ptr<ChannelServer> channel_;
  std::string own_addresses_;
  std::unique_ptr<AgentStarter> starter_;
  std::vector<HostInfo> infos_;
  std::vector<State> states_;
  std::map<int, std::string> refused_;  // by the number that the hello named
  std::map<int, Remote> remotes_;
  std::map<int, int> guests_;  // a guest's number at the channel to what it had started
  bool shells_ = false;
  std::string shells_printed_;
  int next_id_ = 1;
  Clock::time_point said_{};
  Clock::time_point taken_{};
};

}  // namespace assay
