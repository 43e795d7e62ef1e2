// Starts agents on hosts: by a child process, a remote shell per host, one srun for all, or not at all.
#pragma once

#include "harness/hosts/allocation.h"
#include "harness/process/poll_source.h"
#include "harness/process/process.h"

#include <memory>
#include <string>
#include <vector>

namespace assay {

// The command of the remote shell: ASSAY_RSH, else Open MPI's setting, else ssh without prompts and with a timeout of
// ten seconds.
std::vector<std::string> remote_shell_words(const Environment& environment = own_environment);

// What the remote shell is told to run: one line of sh.
std::string agent_command(const std::string& binary, const Variables& variables);

// Addresses under which these hosts reach this machine, separated by commas: the source addresses of routes to them if
// their names resolve here, else every address of this machine.
std::string addresses_towards(const std::vector<AllocatedHost>& hosts);

class AgentStarter : public PollSource {
 public:
  // Every agent gets `variables` in its environment, and the token on its standard input.
  AgentStarter(const Allocation& allocation, Variables variables, std::string token);

  // Whether hosts start their own agents.
  bool passive() const { return allocation_.source == LaunchSource::environment; }
  // Starts the agents of these hosts, by index. Throws Error when a process cannot be had.
  void start(const std::vector<int>& hosts);
  void add_fds(std::vector<pollfd>& fds) const override;
  // Reads what the shells print, and reaps them.
  void read() override;
  // What the shell of a host printed last, or its exit status; empty while it runs.
  std::string ended(int host) const;

 private:
  struct Shell : Child {
    Output output;
    std::vector<int> hosts;
  };
  void start_step(const std::vector<int>& hosts);
  void start_shell(std::vector<std::string> words, Variables variables, std::vector<int> hosts);

  const Allocation& allocation_;
  Variables variables_;
  std::string token_;
  std::vector<std::unique_ptr<Shell>> shells_;
};

}  // namespace assay
