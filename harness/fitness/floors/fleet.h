// Relative floors: each host and each GPU against the median of those that ran the same case.
#pragma once

#include "harness/fitness/floors/check.h"

#include <memory>
#include <string>
#include <vector>

namespace assay::fitness {

// The fleets of one relative floor. Records of equal key, device, hardware, world, seed and protocol form a fleet. A
// host that measured more than once counts once, with the median of its figures. If ranks recorded their own medians,
// each rank is judged too, against all ranks of the fleet.
class FloorFleets {
 public:
  // Both must outlive this.
  FloorFleets(const Floor& floor, const RunSet& runs, std::vector<Judgement>& judgements);
  ~FloorFleets();
  FloorFleets(FloorFleets&&) noexcept;

  // Decides judgements that have a figure: by the floor's fraction of the median, or by limits if they were set.
  void decide();

 private:
  friend void set_limits(std::vector<FloorFleets>& floors, double false_fails, CheckResult& result);
  struct State;
  std::unique_ptr<State> state_;
};

// Limits of all fleets at once, as CheckRules::false_fails describes; fills what the result says about them.
void set_limits(std::vector<FloorFleets>& floors, double false_fails, CheckResult& result);

// Machines of the runs without any of these judgements: "b", "c and d". Runs that share a host are of one machine; a
// run that names no host may be of any.
std::vector<std::string> hosts_without(const RunSet& runs, const std::vector<Judgement>& judgements);

}  // namespace assay::fitness
