// Hostfiles, and Slurm's lists of nodes and of tasks per node. The first byte selects which.
#include "harness/hosts/hostfile.h"
#include "harness/hosts/slurm.h"
#include "tests/fuzz/fuzz.h"

#include <set>

namespace assay::fuzz {

void hosts(std::string_view input) {
  constexpr std::size_t max_nodes = 65536;
  const char what = input.empty() ? '\n' : input.front();
  if (what == 'n') {
    const std::string variable = "SLURM_JOB_NODELIST";
    std::vector<std::string> nodes;
    if (!accepts(variable, [&] { nodes = parse_node_list(input.substr(1), variable); })) return;
    expect(nodes.size() <= max_nodes, "more nodes than allowed");
    for (const std::string& node : nodes)
      expect(!node.empty() && node.find_first_of(" \t\n,[]") == node.npos, "an invalid node");
  } else if (what == 't') {
    const std::string variable = "SLURM_TASKS_PER_NODE";
    std::vector<int> tasks;
    if (!accepts(variable, [&] { tasks = parse_tasks_per_node(input.substr(1), variable); })) return;
    expect(tasks.size() <= max_nodes, "more nodes than allowed");
    for (const int count : tasks) expect(count >= 0, "a negative number of tasks");
  } else {
    const std::string source = "hosts.txt";
    std::vector<AllocatedHost> all;
    if (!accepts(source + ":", [&] { all = parse_hostfile(input, source); })) return;
    std::set<std::string> names;
    for (const AllocatedHost& host : all) {
      expect(!host.name.empty() && host.name.find_first_of(" \t\n") == host.name.npos, "an invalid host");
      expect(names.insert(host.name).second, "a duplicate host");
      expect(!host.slots || *host.slots >= 0, "a negative number of slots");
    }
  }
}

}  // namespace assay::fuzz
