#include "harness/fitness/cluster/cluster.h"

#include <algorithm>
#include <utility>

namespace assay::fitness {

void HostCheck::note(Fitness found, std::string line) {
  state = state == Fitness::unknown ? found : worst(state, found);
  if (!line.empty()) evidence.push_back(std::move(line));
}

Fitness AcceptedHost::state() const {
  std::optional<Fitness> all;  // of the checks that ran, and those that had to
  for (const auto& [name, check] : checks) {
    if (check.state == Fitness::unknown && !check.required) continue;
    const Fitness one = check.state == Fitness::unknown ? Fitness::unsure : check.state;
    all = all ? worst(*all, one) : one;
  }
  return all.value_or(Fitness::unknown);
}

Fitness Acceptance::fitness() const {
  const bool missing = std::ranges::any_of(not_measured, [](const auto& one) { return one.floor.required; });
  Fitness all = hosts.empty() || missing || !finished ? Fitness::unknown : Fitness::pass;
  for (const AcceptedHost& host : hosts) all = worst(all, host.state());
  return all;
}

}  // namespace assay::fitness
