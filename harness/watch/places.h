// On which NUMA nodes the ranks of a watched job run, and where their memory and their GPUs are.
#pragma once

#include "harness/machine/processes.h"
#include "harness/watch/ranks.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace assay::watch {

struct RankPlace {
  int rank = 0;
  int node = 0;                  // where the thread that makes the steps was seen most
  double on_node = 0;            // in this share of the looks
  std::optional<int> gpu_node;   // of its GPU; absent: none, or unknown
  std::optional<double> remote;  // share of its own pages on other nodes than `node`; absent: not looked at
};

// Looks at the ranks of this machine; does nothing on one of a single node. The pages of a process are counted rarely,
// since the kernel walks all of them: after 10 s, a minute, and then every 5 minutes.
class Places {
 public:
  explicit Places(Root root);
  bool several_nodes() const { return nodes_ > 1; }
  void look(double seconds, const RankInfo& rank);
  // Of ranks that were seen at least three times.
  std::vector<RankPlace> ranks() const;

 private:
  struct Seen {
    RankInfo rank;
    std::map<int, std::int64_t> looks;  // by node
    std::map<int, double> bytes;        // of its pages, by node
    double began = 0, pages_after = 10;
  };
  void count_pages(Seen& seen);

  Root root_;
  int nodes_ = 0;
  std::map<int, int> node_of_cpu_;
  std::map<Pid, Seen> seen_;
};

}  // namespace assay::watch
