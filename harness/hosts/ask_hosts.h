// Runs one command of this program on every host of an allocation and collects what each prints.
#pragma once

#include "harness/hosts/allocation.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace assay {

struct HostAnswer {
  std::string host;
  std::optional<int> exit_code;  // absent: the host was not reached, did not answer in time, or printed too much
  std::string out;               // stdout, whole; empty without an exit code
  std::string err;               // why there is no exit code; else the end of stderr
  bool asked = true;             // false: it was not its turn
};

// Hosts of which the last must not answer late are asked all at once: a host for which this process may not open enough
// files is then not asked.
enum class Asking { in_turn, all_at_once };

inline constexpr std::size_t max_answer_bytes = 16u << 20;

// `words` are the arguments of this program, whose file must have the same path on every host. Hosts are asked at the
// same time (64 at once, or all): this one by a child process, others by srun in a Slurm job and else by the remote
// shell of remote_shell_words(). Each has `timeout_seconds` from its start on; a host that has not answered by then is
// given up and its processes are ended, at the latest four seconds later. Answers come in the order of the allocation.
// Throws UsageError if the allocation has no hosts to start programs on, or there is no remote shell.
std::vector<HostAnswer> ask_hosts(const Allocation& allocation, const std::vector<std::string>& words,
                                  double timeout_seconds, Asking how = Asking::in_turn);

// What the remote shell is told to run: one line that any shell reads. Where the host has the program `timeout`, it
// ends the command even if the connection is gone.
std::string asked_command(const std::string& binary, const std::vector<std::string>& words, const std::string& host,
                          double timeout_seconds);

}  // namespace assay
