#include "harness/fitness/cluster/cluster.h"

#include <algorithm>

namespace assay::fitness {

std::string_view name_of(CheckState state) {
  switch (state) {
    case CheckState::pass: return "pass";
    case CheckState::inconclusive: return "inconclusive";
    case CheckState::fail: return "fail";
    case CheckState::not_run: break;
  }
  return "not_run";
}

void HostCheck::note(CheckState found, std::string line) {
  state = state == CheckState::not_run ? found : std::max(state, found);
  if (!line.empty()) evidence.push_back(std::move(line));
}

CheckState AcceptedHost::state() const {
  CheckState all = CheckState::not_run;
  for (const auto& [name, check] : checks) {
    const bool lacking = check.required && check.state == CheckState::not_run;
    const CheckState one = lacking ? CheckState::inconclusive : check.state;
    if (one != CheckState::not_run) all = all == CheckState::not_run ? one : std::max(all, one);
  }
  return all;
}

ExitCode Acceptance::code() const {
  CheckState worst = hosts.empty() ? CheckState::not_run : CheckState::pass;
  for (const AcceptedHost& host : hosts) worst = std::max(worst, host.state());
  if (worst == CheckState::fail) return ExitCode::failed;
  const bool missing = std::any_of(not_measured.begin(), not_measured.end(),
                                   [](const UnmeasuredFloor& one) { return one.floor.required; });
  return worst == CheckState::pass && finished && !missing ? ExitCode::ok : ExitCode::no_data;
}

}  // namespace assay::fitness
