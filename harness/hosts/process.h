// Processes: starting one, keeping the end of what it prints, and ending all that is left of it.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

using Variables = std::map<std::string, std::string>;

// This process's environment, without what a launcher (Open MPI, PMI, Slurm) or a supervisor has told this one rank of
// its own: the next launcher would take it for its own.
Variables inherited_variables();
// All of it but for the latter.
Variables variables_of_launcher();

// mpirun binds its ranks, each to its own core: a rank that starts others goes by all that its host allows.
void leave_binding_of_mpirun();

// The file of a program on the PATH; empty when there is none.
std::string find_program(const std::string& name);
// Throws Error.
std::string own_binary();

struct ProcessRequest {
  std::vector<std::string> words;  // an absolute path first
  Variables variables;             // all of its environment
  int output = -1;                 // what it prints goes here
  int input = -1;                  // -1: /dev/null
  int death_signal = SIGKILL;      // sent to it when the starting thread ends
};
// Leads a process group of its own, so that a terminal's Ctrl-C does not reach it. Throws Error.
pid_t start_process(const ProcessRequest& request);

// A pipe into which processes print.
class Output {
 public:
  // Throws Error.
  Output();
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // For start_process; closed once all have been started, so that the end is seen.
  int writer() const { return writer_; }
  void close_writer();
  // To be polled; -1 once every process has closed its end.
  int fd() const { return fd_; }
  // Takes what has come; returns it.
  std::string read();
  // The last of it that is kept.
  const std::string& kept() const { return kept_; }

 private:
  int fd_ = -1;
  int writer_ = -1;
  std::string kept_;
};

// Appends and forgets the beginning of what grows too long.
void keep_tail(std::string& kept, std::string_view more);
// The last lines of what was printed, a launcher's own boilerplate left out; at most `bytes` long.
std::string tail_of(const std::string& printed, std::size_t bytes);

// A descriptor of a process, so that a reused pid is never killed; -1 when it is gone.
int pidfd_open(pid_t pid);
void pidfd_kill(int fd);

// Makes this process the parent of orphans below it, so that end_children() finds them.
void adopt_orphans();
// A child that end_children() passes over.
void spare_child(pid_t pid);
// Kills and reaps every child that came after adopt_orphans(), adopted ones included, until none is left or `seconds`
// have passed. `reaped` is told of each, with its wait status.
void end_children(double seconds, const std::function<void(pid_t, int)>& reaped);

// The signal that a process ended by, a launcher's 128 + signal understood; 0: none.
int ending_signal(int wait_status, bool through_launcher);
// "killed by SIGSEGV (signal 11)", "ended with code 3". Empty for a clean end, and where a launcher's status tells how
// another rank ended.
std::string describe_status(int wait_status, bool through_launcher);

}  // namespace assay
