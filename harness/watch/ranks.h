// What the hook in the processes of a job (hook/assay_watch.py) tells the watcher.
#pragma once

#include "harness/core/files.h"
#include "harness/watch/steps.h"

#include <poll.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace assay::watch {

// As a rank describes itself when it makes its first step.
struct RankInfo {
  pid_t pid = 0;
  std::string host = {};  // empty: this one
  int rank = 0, world = 1;
  int threads = 1;         // of torch
  int cpus = 1;            // that it may use
  int workers = 0;         // of the loader with most
  int batch = 0;           // of that loader; 0: unknown
  bool cuda = false;       // whether its parameters are on a GPU
  bool gpu_parts = false;  // whether the parts of its steps are times of the GPU
  std::string gpu_name, gpu_uuid, gpu_pci;
  std::optional<double> gpu_memory;  // B
  std::string dtype;                 // of its products: "bf16", ...; empty: unknown
  int stack_signal = 0;              // upon which it writes its stack; 0: it cannot
  std::string torch, python;
  std::map<std::string, std::string> absent = {};  // hooks that could not be set, with the reason
};

// Says what became of the steps that its profiler was to record (hook/assay_window.py).
struct Recording {
  enum class State { none, runs, written, absent } state = State::none;
  double seconds = 0;  // that it kept the rank from its steps
  std::string text;    // the name of the trace, or why there is none
};

// Reads the text of a hello; `next_rank` is its rank if it says none. Absent if it is none.
std::optional<RankInfo> rank_info_from(const std::string& text, int next_rank);

// One step as a hook writes it into its memory, in this order: its end, its length, five parts, CPU time, time ready to
// run, whether it has parts, backward passes, time of waits for the GPU and how many. Absent if that is none of a step.
inline constexpr std::size_t step_numbers = 13;
std::optional<Step> step_from(std::array<double, step_numbers> numbers);

// The stack as faulthandler writes it, innermost call first: "wait (loader.py:7) < step (train.py:12)".
std::string one_line_stack(const std::string& written);

// One process that makes steps, from its hello on. Its memory is read without stopping it, and what it wrote is there
// even if it was killed.
class Rank {
 public:
  // Throws Error if the descriptors are not what a hook sends.
  Rank(RankInfo info, Descriptor connection, Descriptor pages, Descriptor stacks);
  ~Rank();
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  const RankInfo& info() const { return info_; }
  const std::vector<Step>& steps() const { return steps_; }
  // Takes the steps made since the last call; whether there were any.
  bool take();
  // Ends its hooks; steps are no longer written.
  void tell_to_stop();
  // How many collectives it has entered since its first step, and the last one's name.
  std::uint64_t entered() const;
  std::string collective() const;
  Recording recording() const;
  // Its Python stack now, on one line; empty if it has ended or does not answer in `seconds`.
  std::string stack(double seconds);
  // Readable when the process has ended or become another program.
  int connection() const { return connection_; }
  bool gone() const { return gone_; }
  void has_gone() { gone_ = true; }

 private:
  std::string text_at(std::size_t at, std::size_t bytes) const;  // that is printable

  RankInfo info_;
  Descriptor connection_, pages_, stacks_;
  std::byte* memory_ = nullptr;
  std::size_t size_ = 0;
  std::uint64_t taken_ = 0;
  bool gone_ = false;
  std::vector<Step> steps_;
};

// Where hooks say hello: an abstract socket, so no folder has to be writable.
class Meeting {
 public:
  // Throws Error.
  Meeting();
  // For the environment of the job.
  const std::string& address() const { return address_; }
  int fd() const { return listener_; }
  // Those that have come since the last call. What is no hook of this user is turned away.
  std::vector<std::unique_ptr<Rank>> accept(int next_rank);

 private:
  std::string address_;
  Descriptor listener_;
};

}  // namespace assay::watch
