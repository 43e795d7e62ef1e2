#include "harness/fitness/cluster/cluster.h"

#include "harness/core/text.h"
#include "harness/core/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace assay::fitness {

void HostCheck::note(Fitness found, std::string line) {
  state = state == Fitness::unknown ? found : worst(state, found);
  if (!line.empty()) evidence.push_back(std::move(line));
}

void WorldChecks::add_note(const std::string& text) {
  if (note.find(text) == note.npos) note += (note.empty() ? "" : "; ") + text;
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
  if (!switches.empty()) all = worst(all, Fitness::fail);
  return all;
}

std::string SlowSwitch::text() const {
  if (leaf.empty() && rail)
    return fmt::format(
        "rail {}: {} of the usual rail's busbw on {} at once ({}), which no link between two of them explains: the "
        "switches of this rail, not the hosts",
        *rail, format_percent(share), one_line(joined(hosts), 200), key);
  return fmt::format("{}{}: {} of the usual speed on {} ({} of {} to other switches; {}): the switch, not the hosts",
                     leaf, rail ? fmt::format(", rail {}", *rail) : "", format_percent(share),
                     one_line(joined(hosts), 200), slow, plural(links, "link"), key);
}

void add_worst(std::vector<SlowSwitch>& all, const SlowSwitch& one) {
  const auto same = std::ranges::find_if(
      all, [&](const SlowSwitch& other) { return other.leaf == one.leaf && other.rail == one.rail; });
  if (same == all.end())
    all.push_back(one);
  else if (one.share < same->share)
    *same = one;
}

std::string power_text(const ComparedHosts& compared) {
  std::vector<double> found;
  std::string together;
  for (const FleetPower& one : compared.cases) {
    if (!one.found) continue;
    if (one.key.empty())
      together = fmt::format(", or of {} in all together", format_percent(*one.found));
    else
      found.push_back(*one.found);
  }
  if (found.empty()) return {};
  const auto [least, most] = std::ranges::minmax(found);
  const std::string low = format_percent(least), high = format_percent(most);
  return fmt::format(
      "hosts compared with each other: {} comparisons, with a wrong fail in at most {} of acceptances of equal hosts; "
      "a "
      "loss of {}{} in one case{} is found 9 times in 10",
      format_number(static_cast<double>(compared.comparisons), 0), format_percent(acceptance_false_fails), low,
      low == high ? "" : " to " + high + ", by case,", together);
}

}  // namespace assay::fitness
