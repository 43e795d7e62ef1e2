#include "harness/fitness/cluster/majority.h"

#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <utility>

namespace assay::fitness {

namespace {

// Members of an inventory are told apart by their name and that of a part: ("gpus", "name"). Each element of a list is
// a part.
using Member = std::pair<std::string, std::string>;
using ValuesByHost = std::map<std::string, Json>;  // by host

constexpr auto parted = std::to_array<std::string_view>({"cpu", "gpus", "ethernet"});
// Hosts of one kind are equal in them.
const std::set<Member> kind_members = {{"cpu", "model"}, {"gpus", "count"}, {"gpus", "name"}};

std::string member_name(const Member& member) {
  return member.second.empty() ? member.first : member.first + "." + member.second;
}

std::map<Member, ValuesByHost> members_of(const std::vector<const AuditedHost*>& hosts) {
  std::map<Member, ValuesByHost> places;
  for (const AuditedHost* host : hosts)
    for (const auto& [name, value] : host->inventory.items()) {
      if (name == "mounts" && value.is_array())
        for (const Json& one : value) places[{name, one.dump()}][host->host] = one;
      else if (std::ranges::find(parted, name) != parted.end() && value.is_object())
        for (const auto& [part, of_part] : value.items()) places[{name, part}][host->host] = of_part;
      else
        places[{name, ""}][host->host] = value;
    }
  return places;
}

// The largest size that more than half of `count` hosts have; null if they have none.
Json size_of_most(const ValuesByHost& values, std::size_t count) {
  std::vector<std::pair<std::int64_t, Json>> sizes;
  for (const auto& [host, value] : values) {
    try {
      sizes.emplace_back(parse_bytes(scalar_text(value)), value);
    } catch (const Error&) {  // of a host that is not as this build
    }
  }
  std::ranges::sort(sizes, std::greater(), &std::pair<std::int64_t, Json>::first);
  return sizes.size() > count / 2 ? sizes[count / 2].second : Json();
}

// "4 hosts have X, 4 have Y".
std::string tie_text(const std::vector<std::pair<std::size_t, Json>>& counts, std::size_t without) {
  std::vector<std::string> parts;
  for (const auto& [count, value] : counts)
    parts.push_back(
        fmt::format("{} {}", plural(static_cast<std::int64_t>(count), "host"), one_line(scalar_text(value))));
  if (without > 0) parts.push_back(fmt::format("{} none", plural(static_cast<std::int64_t>(without), "host")));
  return first_few(parts, 4);
}

}  // namespace

Majority majority_of(const std::vector<AuditedHost>& all) {
  Majority found;
  std::vector<const AuditedHost*> hosts;
  for (const AuditedHost& host : all)
    if (host.state == AuditState::ok && host.inventory.is_object()) hosts.push_back(&host);
  const std::size_t count = hosts.size();
  if (count == 0) return found;
  found.expectation["schema"] = 1;
  for (const AuditedHost* host : hosts) found.hosts.insert(host->host);
  std::map<std::string, std::vector<std::string>> others;  // of another kind, by what they have
  bool kinds_tie = false;
  for (const auto& [member, values] : members_of(hosts)) {
    const bool list = member.first == "mounts";
    Json most;
    if (member.first == "memory" || member.first == "swap") {
      most = size_of_most(values, count);
    } else {
      std::vector<std::pair<std::size_t, Json>> counts;
      for (const auto& [host, value] : values) {
        const auto known = std::ranges::find(counts, value, &std::pair<std::size_t, Json>::second);
        known == counts.end() ? (void)counts.emplace_back(1, value) : (void)++known->first;
      }
      const auto top = std::ranges::max_element(counts, {}, &std::pair<std::size_t, Json>::first);
      if (2 * top->first > count) most = top->second;
      const std::size_t without = count - values.size();
      if (most.is_null() && 2 * without <= count && (!list || 2 * without == count)) {
        found.notes.push_back(fmt::format("not in expect.json: {}: no value has a majority: {}",
                                          list ? member.first : member_name(member), tie_text(counts, without)));
        kinds_tie = kinds_tie || kind_members.contains(member);
      }
    }
    if (kind_members.contains(member))
      for (const AuditedHost* host : hosts) {
        const auto own = values.find(host->host);
        if ((own == values.end() ? Json() : own->second) == most || !found.hosts.erase(host->host)) continue;
        others[fmt::format("{} {}", member_name(member),
                           own == values.end() ? "none" : one_line(scalar_text(own->second)))]
            .push_back(host->host);
      }
    if (most.is_null()) continue;
    if (list)
      found.expectation[member.first].push_back(std::move(most));
    else if (member.second.empty())
      found.expectation[member.first] = std::move(most);
    else
      found.expectation[member.first][member.second] = std::move(most);
  }
  if (kinds_tie) {
    found.hosts.clear();
    found.notes.emplace_back("hosts of several kinds, and none has a majority: expect.json has what they share");
  }
  for (const auto& [what, names] : others)
    if (!kinds_tie)
      found.notes.push_back(fmt::format("expect.json and floors.json are of the kind of most hosts, not of {} ({})",
                                        first_few(names, 8), what));
  return found;
}

}  // namespace assay::fitness
