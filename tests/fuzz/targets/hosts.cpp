// Hostfiles, Slurm's lists of nodes and of tasks per node, its topology, and a job's variables. The first byte selects
// which.
#include "harness/hosts/hostfile.h"
#include "harness/hosts/slurm.h"
#include "harness/hosts/topology.h"
#include "tests/fuzz/fuzz.h"

#include <map>
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
  } else if (what == 'l') {
    std::map<std::string, std::string> leaves;
    if (!accepts("topology:", [&] { leaves = parse_topology(input.substr(1), "topology"); })) return;
    for (const auto& [node, leaf] : leaves)
      expect(!node.empty() && !leaf.empty() && leaf.find('\n') == leaf.npos, "an invalid leaf");
  } else if (what == 'e') {  // NAME=VALUE on each line
    std::map<std::string, std::string, std::less<>> variables;
    for (std::string_view rest = input.substr(1); !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      if (const std::size_t equals = line.find('='); equals != line.npos)
        variables.emplace(line.substr(0, equals), line.substr(equals + 1));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    }
    accepts("SLURM_", [&] {
      const auto found = slurm_allocation([&](std::string_view name) {
        const auto variable = variables.find(name);
        return variable == variables.end() ? std::nullopt : std::optional(variable->second);
      });
      expect(!found || !found->hosts.empty(), "an allocation without hosts");
    });
  } else {
    static const MemoryFile file(folder() / "hosts.txt");
    file.write(input);
    const std::string& source = file.path();
    std::vector<AllocatedHost> all, whole;
    if (!accepts(source + ":", [&] { all = parse_hostfile(input, source); })) return;
    if (accepts("--hostfile " + source, [&] { whole = read_hostfile(source, "--hostfile"); }))
      expect(all.size() == whole.size(), "a file that is read otherwise than its text");
    else
      expect(all.empty(), "a hostfile with hosts that is refused");
    std::set<std::string> names;
    for (const AllocatedHost& host : all) {
      expect(!host.name.empty() && host.name.find_first_of(" \t\n") == host.name.npos, "an invalid host");
      expect(names.insert(host.name).second, "a duplicate host");
      expect(!host.slots || *host.slots >= 0, "a negative number of slots");
    }
  }
}

}  // namespace assay::fuzz
