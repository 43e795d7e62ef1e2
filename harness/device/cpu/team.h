// The threads of this rank: an OpenMP team, each thread bound to one CPU. The only place that sets thread counts.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace assay::cpu {

// Logical CPUs this process may use: one of each core first, SMT siblings after. From ASSAY_CPUS ("0-3,8") where the
// launcher sets it, else from the affinity mask of the process at the first call.
const std::vector<int>& rank_cpus();
// How many of rank_cpus() are cores of their own.
int rank_cores();

// Confines the calling thread to `cpus`. New threads inherit the CPUs of the thread that starts them, which is one CPU
// while a Team lives: threads outside a team call bind_this_thread(rank_cpus()) first.
void bind_this_thread(const std::vector<int>& cpus);

// Confines this process to `cpus` and makes them OpenMP's places in the order of a team. OpenMP reads its places before
// main(), so the program starts anew, once, with the arguments it has: called before anything else is done. A library's
// smaller region ends the team's other threads; those that replace them would otherwise share the caller's CPU.
void restart_on(const std::vector<int>& cpus);

// Binding lasts while a Team of the calling thread lives; after the last one that thread may use every CPU again.
// Teams of different sizes may live at once and take turns.
class Team {
 public:
  // Binds `threads` threads to the first CPUs of rank_cpus(). Throws UsageError when there are fewer.
  explicit Team(int threads);
  int size() const { return threads_; }
  // Runs fn(thread) on every thread of the team and waits for all; the first exception is thrown here. Not to be
  // nested.
  void run(const std::function<void(int)>& fn) const;
  // Makes this the team of the libraries that the calling thread calls (oneDNN, a BLAS: they share this OpenMP's
  // threads): its size and its binding. The constructor and run() do so too.
  void use() const;

 private:
  struct Binding;

  int threads_;
  std::shared_ptr<Binding> binding_;
};

// Thread count that "all" (cores, or the cgroup's CPU quota where that is less), "cpus" (SMT siblings too), "core"
// (one), "node" (one NUMA node's cores) or a number means for this rank. Throws UsageError on anything else, and on a
// number beyond rank_cpus().
int resolve_threads(const std::string& count);

}  // namespace assay::cpu
