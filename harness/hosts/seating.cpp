// Which hosts are left, and which have to come back.
#include "harness/hosts/seating.h"

#include "harness/core/text.h"

#include <fmt/format.h>

namespace assay {

namespace {

constexpr int max_lost_hosts_named = 4;

std::string missing_for(const Placement& planned, const Agents& agents, const std::vector<bool>& gone) {
  std::string text;
  int lost = 0;
  for (std::size_t host = 0; host < gone.size(); ++host)
    if (gone[host] && ++lost <= max_lost_hosts_named) text += agents.lost(static_cast<int>(host)) + "; ";
  if (lost > max_lost_hosts_named) text += fmt::format("{} more are lost; ", lost - max_lost_hosts_named);
  const std::size_t ranks = planned.seats.size();
  return fmt::format("{}the others have no room for {} on {}", text, plural(ranks, "rank"),
                     plural(planned.hosts, "host"));
}

}  // namespace

Seating seat_ranks(const std::vector<AllocatedHost>& slots, const std::vector<HostInfo>& hosts,
                   const PlacementRequest& request, Agents* agents, const std::function<bool()>& stop) {
  const Placement planned = place_ranks(slots, hosts, request);
  if (!agents) return {planned};
  for (;;) {
    std::vector<bool> gone;
    for (std::size_t host = 0; host < hosts.size(); ++host) gone.push_back(agents->given_up(static_cast<int>(host)));
    // A host that came back may be another machine under the same name.
    std::optional<Placement> placement = place_elsewhere(planned, gone, slots, agents->hosts(), request);
    if (!placement) {
      Seating none{planned, missing_for(planned, *agents, gone)};
      for (std::size_t host = 0; host < gone.size(); ++host)
        if (gone[host]) none.lost.push_back(slots[host].name);
      return none;
    }
    std::vector<int> needed;
    for (const RankSeat& seat : placement->seats)
      if (needed.empty() || needed.back() != seat.host) needed.push_back(seat.host);
    // Each failure gives up at least one host, so this ends.
    if (agents->bring_back(needed, stop) || stop()) return {std::move(*placement)};
  }
}

}  // namespace assay
