// Processes: starts them, keeps the tail of their output, ends everything they leave behind.
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

// This process's environment without the variables that a launcher (Open MPI, PMI, Slurm) or a supervisor has set for
// this rank: another launcher would take them for its own.
Variables inherited_variables();
// Without the supervisor's variables only.
Variables variables_of_launcher();

// Undoes the binding of this rank to one core by mpirun, for a rank that starts others.
void leave_binding_of_mpirun();

// The path of a program on the PATH; empty if there is none.
std::string find_program(const std::string& name);

struct ProcessRequest {
  std::vector<std::string> words;  // an absolute path first
  Variables variables;             // its whole environment
  int output = -1;                 // for stdout, and for stderr unless it has its own
  int errors = -1;                 // for stderr
  int input = -1;                  // -1: /dev/null
  int death_signal = SIGKILL;      // that it gets when the thread that started it ends
};
// It leads its own process group, so that a terminal's Ctrl-C does not reach it. Throws Error.
pid_t start_process(const ProcessRequest& request);
// Calls `body` in a child, which then ends at once, without the exit handlers of libraries. It leads its own process
// group and is killed when the thread that started it ends. Throws Error.
pid_t fork_process(const std::function<void()>& body);

// Has another child wait until this process or `pid` ends, and kill `pid` if it is left a second later.
void kill_when_orphaned(pid_t pid);

// A child and how it ended, for loops that also watch other things.
struct Child {
  pid_t pid = -1;
  std::optional<int> status = {};

  // Whether it has ended since the last call.
  bool reap();
  // Its process group, unless it has ended: until it is reaped, no other has its number.
  void signal_group(int signal) const;
};

// A pipe for the output of processes.
class Output {
 public:
  // Throws Error.
  Output();
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // For start_process; to be closed once all have started, so that the end can be seen.
  int writer() const { return writer_; }
  void close_writer();
  // For a poll; -1 once every process has closed its end.
  int fd() const { return fd_; }
  // Whatever has come since the last call.
  std::string read();
  // The tail of everything.
  const std::string& kept() const { return kept_; }

 private:
  int fd_ = -1;
  int writer_ = -1;
  std::string kept_;
};

// Appends, and drops the beginning of what grows too long.
void keep_tail(std::string& kept, std::string_view more);
// The last lines of output without a launcher's boilerplate; at most `bytes` long.
std::string tail_of(const std::string& printed, std::size_t bytes);

// A descriptor of a process, so that a reused pid is never killed; -1 if it is gone.
int pidfd_open(pid_t pid);
void pidfd_kill(int fd);

// Makes this process the parent of orphans below it, so that end_children() finds them.
void adopt_orphans();
// end_children() skips this child.
void spare_child(pid_t pid);
// Kills and reaps every child since adopt_orphans(), adopted ones included, until none is left or `seconds` have
// passed. `reaped` gets the pid and wait status of each.
void end_children(double seconds, const std::function<void(pid_t, int)>& reaped);

// The signal that ended a process, or that a launcher reports as 128 + signal; 0: none.
int ending_signal(int wait_status, bool through_launcher);
// "killed by SIGSEGV (signal 11)", "ended with code 3". Empty for a clean end, and if a launcher's status may be that
// of another rank.
std::string describe_status(int wait_status, bool through_launcher);

}  // namespace assay
