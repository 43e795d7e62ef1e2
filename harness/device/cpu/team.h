// The threads of this rank: an OpenMP team, each thread bound to one CPU. The only place that sets thread counts.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace assay::cpu {

// Logical CPUs this process may use: one of each core first, SMT siblings after.
const std::vector<int>& rank_cpus();
// How many of rank_cpus() are cores of their own.
int rank_cores();

class Team {
 public:
  // Binds `threads` threads to the first CPUs of rank_cpus(). Throws UsageError when there are fewer.
  explicit Team(int threads);
  int size() const { return threads_; }
  // Runs fn(thread) on every thread of the team and waits for all.
  void run(const std::function<void(int)>& fn) const;

 private:
  int threads_;
};

// Thread count that "all", "core" (one), "node" (one NUMA node's cores) or a number means for this rank.
int resolve_threads(const std::string& count);

}  // namespace assay::cpu
