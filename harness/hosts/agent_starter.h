// Getting agents onto hosts: a child for this one, a remote shell a host, one srun for all, or nothing.
#pragma once

#include "harness/hosts/allocation.h"
#include "harness/hosts/process.h"

#include <poll.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace assay {

// The words of the remote shell: ASSAY_RSH, else what Open MPI is told to use, else ssh, which never asks and gives up
// after ten seconds.
std::vector<std::string> remote_shell_words(const Environment& environment = own_environment);

// What the remote shell of `host` is told to run: one line of sh.
std::string agent_command(const std::string& binary, const Variables& variables);

// Names or addresses under which these hosts reach this machine, separated by commas: the addresses from which they
// are reached, where their names are known here; else all that this machine has.
std::string addresses_towards(const std::vector<AllocatedHost>& hosts);

class AgentStarter {
 public:
  // `variables` are told to every agent; the token goes to its standard input.
  AgentStarter(const Allocation& allocation, Variables variables, std::string token);

  // Whether hosts come by themselves: then nothing is started.
  bool passive() const { return allocation_.source == LaunchSource::environment; }
  // Starts the agents of these hosts, by index. Throws Error when a process cannot be had.
  void start(const std::vector<int>& hosts);
  void add_fds(std::vector<pollfd>& fds) const;
  // Reads what the shells print, and reaps them.
  void take();
  // How the shell of a host ended, with its last words; empty while it runs.
  std::string ended(int host) const;

 private:
  struct Shell {
    pid_t pid = -1;
    Output output;
    std::vector<int> hosts;
    std::optional<int> status;
  };
  void start_step(const std::vector<int>& hosts);
  void start_shell(std::vector<std::string> words, Variables variables, std::vector<int> hosts);

  const Allocation& allocation_;
  Variables variables_;
  std::string token_;
  std::vector<std::unique_ptr<Shell>> shells_;
};

}  // namespace assay
