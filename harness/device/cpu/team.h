// This rank's threads: an OpenMP team with each thread bound to one CPU. Only this sets thread counts.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace assay::cpu {

// Logical CPUs this process may use: one per core first, then SMT siblings. From ASSAY_CPUS ("0-3,8") if the launcher
// set it, else from the process's affinity mask at the first call.
const std::vector<int>& rank_cpus();
// How many distinct cores rank_cpus() spans.
int rank_cores();

// Confines the calling thread to `cpus`. New threads inherit the CPUs of the thread that starts them, which is a single
// CPU while a Team lives: threads outside a team call bind_this_thread(rank_cpus()) first.
void bind_this_thread(const std::vector<int>& cpus);

// Confines this process to `cpus` and makes them OpenMP's places in team order. OpenMP reads its places before main(),
// so this restarts the program once with the same arguments: call it before anything else. Without places, OpenMP
// replaces threads that a library's smaller region ended by ones that share the caller's CPU.
void restart_on(const std::vector<int>& cpus);

// Threads stay bound while the calling thread has a Team; after the last one that thread may use every CPU again. Teams
// of different sizes may coexist and alternate.
class Team {
 public:
  // Binds `threads` threads to the first CPUs of rank_cpus(). Throws UsageError if there are fewer.
  explicit Team(int threads);
  int size() const { return threads_; }
  // Runs fn(thread) on every thread of the team, waits for all and rethrows the first exception. Must not be nested.
  void run(const std::function<void(int)>& fn) const;
  // Makes libraries that the calling thread calls (oneDNN, BLAS: they share this OpenMP's threads) use this team's size
  // and binding. The constructor and run() do so too.
  void use() const;

 private:
  struct Binding;

  int threads_;
  std::shared_ptr<Binding> binding_;
};

// The number of threads that `count` means for this rank: "all" (cores, or the cgroup's CPU quota if less), "cpus"
// (with SMT siblings), "core" (one), "node" (one NUMA node's cores) or a number. Throws UsageError on anything else and
// on a number beyond rank_cpus(). `root` is where the cgroup's files are, for tests.
int resolve_threads(const std::string& count, const std::filesystem::path& root = "/");

}  // namespace assay::cpu
