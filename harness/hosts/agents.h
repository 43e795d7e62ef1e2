// The hosts of a run as its supervisor sees them: an agent on each, watched until the run ends.
#pragma once

#include "harness/channel/connect.h"
#include "harness/channel/loop.h"
#include "harness/core/error.h"
#include "harness/hosts/allocation.h"
#include "harness/hosts/host_info.h"
#include "harness/process/process.h"

#include <fmt/core.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace assay {

class AgentStarter;

// Hosts cannot be reached, or are refused; the text has a line for each.
class HostsLost : public Error {
 public:
  HostsLost(const std::string& text, std::vector<std::string> hosts) : Error(text), hosts_(std::move(hosts)) {}
  const std::vector<std::string>& hosts() const { return hosts_; }

 private:
  std::vector<std::string> hosts_;
};

struct AgentsOptions {
  std::string device;                                 // name of the device that is measured
  std::string plan;                                   // fingerprint; hosts that were given a plan must have the same
  double start_limit_seconds = 60;                    // for all hosts together
  std::function<void(const std::string&)> note = {};  // lines for stderr
  // If the hosts already know its address; else one is made.
  std::unique_ptr<ChannelServer> server = {};
};

// Everything happens in read(), on the caller's thread. A host whose agent is gone is lost until another agent of that
// name says hello: started by bring_back(), or by whatever started the first.
class Agents : public PollSource, private ChannelHandler {
 public:
  // Starts an agent on every host at once and waits for their hellos. Throws HostsLost with each host that cannot be
  // reached, or that has another version, architecture or plan.
  Agents(Allocation allocation, AgentsOptions options);
  // Releases the agents.
  ~Agents() override;
  Agents(const Agents&) = delete;
  Agents& operator=(const Agents&) = delete;

  const Allocation& allocation() const { return allocation_; }
  // In the order of the allocation.
  const std::vector<HostInfo>& hosts() const { return infos_; }
  std::optional<int> host_named(std::string_view name) const;
  // How far a host's clock is ahead of this one, in nanoseconds; exact to half of the round trip.
  std::int64_t clock_ahead_ns(int host) const { return states_[static_cast<std::size_t>(host)].ahead_ns; }
  std::int64_t round_trip_ns(int host) const { return states_[static_cast<std::size_t>(host)].round_trip_ns; }
  // A sentence for each host whose clock is off by more than a second, even with the round trip allowed for.
  std::vector<std::string> clock_findings() const;
  // A sentence if hosts differ in LD_LIBRARY_PATH; else nothing.
  std::optional<std::string> library_path_finding() const;
  // Names or addresses, separated by commas, under which these hosts reach this process.
  const std::string& own_addresses() const { return own_addresses_; }
  // Whether these hosts share one loopback.
  bool one_network(const std::vector<int>& hosts) const;

  void add_fds(std::vector<pollfd>& fds) const override;
  void read() override;

  // Why a host is lost; empty if it is not.
  const std::string& lost(int host) const { return states_[static_cast<std::size_t>(host)].lost; }
  // Whether it is lost and bring_back() has failed: nobody waits for it any more, but it may still say hello.
  bool given_up(int host) const { return states_[static_cast<std::size_t>(host)].given_up; }
  // Starts new agents on the lost ones of these hosts, or waits for them if hosts start their own; until `stop`, and no
  // longer than at the start of the run. True when all are there; otherwise, unless stopped, the others are given up.
  bool bring_back(const std::vector<int>& hosts, const std::function<bool()>& stop);

  struct Remote {
    int host = 0;
    std::string printed;        // its tail
    std::optional<int> status;  // wait status
  };
  // Starts a process of the subcommand on a host and returns its number. On a lost host it has ended at once.
  int start(int host, const std::string& subcommand, const Variables& variables);
  const Remote& remote(int id) const { return remotes_.at(id); }
  // Ends everything started on these hosts and waits for it; skips lost hosts.
  void clear(const std::vector<int>& hosts);
  // remote() of ended processes is invalid from then on.
  void forget_ended();
  // For `assay remote-shell` on this host: the address to connect to, and the token.
  std::string shell_address() const;
  const std::string& token() const { return loop_.server().token(); }
  // Whether `assay remote-shell` may have daemons started.
  void serve_shells(bool on);
  // Output of such daemons.
  const std::string& shells_printed() const { return shells_printed_; }

 private:
  struct State {
    int peer = -1;       // its number at the channel; -1 while it is not connected
    bool ready = false;  // its host's properties and clock are known
    std::string lost;
    bool given_up = false;
    std::int64_t ahead_ns = 0;
    std::int64_t round_trip_ns = 0;
    int clock_answers = 0;
    int cleared = 0;
  };

  // Sets own_addresses_ too.
  std::unique_ptr<ChannelServer> make_server();
  void sort_by_rank();
  struct Problem {
    std::vector<std::string> hosts;
    std::string text;
  };
  // Until all of these hosts are ready or `stop` holds. Otherwise why they are not.
  std::vector<Problem> wait_for(const std::vector<int>& hosts, const std::function<bool()>& stop);
  static std::string text_of(const std::vector<Problem>& problems, const char* between);
  std::vector<Problem> problems_of(const std::vector<int>& hosts) const;

  void on_hello(int peer, const message::Hello& hello) override;
  void on_message(int peer, const Message& message) override;
  void on_closed(int peer) override;
  void on_refused(const message::Refused& refusal) override;
  void on_silent(int peer, double seconds) override;
  void note(const std::string& line) override;
  std::string name_of_peer(int peer) const override { return fmt::format("agent {}", peer); }
  void on(int host, const message::Host& message);
  void on(int host, const message::Clock& answer);
  void on(int host, const message::Clear& answer);
  void on(int host, const message::Printed& printed);
  void on(int host, const message::Ended& ended);
  void on(int, const auto&) {}
  void on_shell(int guest, const message::Shell& request);

  // The host that a hello is from; -1: none of this run's.
  int host_of(int peer, const message::Hello& hello) const;
  // The host at a peer's number; -1: a guest.
  int host_at(int peer) const;
  void ask_clock(int host);
  int start(int host, message::Start order);
  void set_ended(int id, int status);
  void lose(int host, const std::string& why);
  bool send(int host, const Message& message);
  std::string name_of_host(int host) const;

  Allocation allocation_;
  AgentsOptions options_;
  std::string own_addresses_;
  ChannelLoop loop_;
  std::unique_ptr<AgentStarter> starter_;
  std::vector<HostInfo> infos_;
  std::vector<State> states_;
  std::map<int, Problem> refused_;  // by the rank that the hello named
  std::map<int, Remote> remotes_;
  std::map<int, int> guests_;  // a guest's number at the channel, and the process that it asked for
  bool shells_ = false;
  std::string shells_printed_;
  int next_id_ = 1;
  HeartbeatTimer heartbeat_;
};

}  // namespace assay
