#include "harness/sampling/links.h"

#include "harness/comm/rank_hosts.h"
#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/sampling/pairs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace assay {

namespace {

constexpr std::size_t message_bytes = std::size_t{1} << 20;
constexpr int exchanges = 11;      // in a round
constexpr int max_rounds = 8;      // most rounds of each part
constexpr double max_seconds = 2;  // time limit of all rounds
constexpr double min_slow_link_ratio = 2.5;
constexpr std::size_t max_others_named = 4;
// Memory that a connection between two GPUs may need: NCCL's buffer of 4 MiB in each of 32 channels. NCCL fails without
// it.
constexpr std::uint64_t connection_bytes = std::uint64_t{128} << 20;
constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

std::size_t index(int i) { return static_cast<std::size_t>(i); }

// A link of one kind, with each end's time.
struct Link {
  int a = 0, b = 0;
  double at_a = 0, at_b = 0;
  double seconds() const { return std::max(at_a, at_b); }
};

std::vector<Link> links_of(const LinkRounds& rounds, const std::vector<std::vector<double>>& times, bool between) {
  std::vector<Link> links;
  for (int round = 0; round < rounds.count(); ++round) {
    if (rounds.between_hosts(round) != between) continue;
    for (int a = 0; a < rounds.ranks(); ++a) {
      const auto b = rounds.partner(a, round);
      if (!b || *b < a) continue;
      const Link link{a, *b, times[index(round)][index(a)], times[index(round)][index(*b)]};
      if (std::isfinite(link.at_a) && std::isfinite(link.at_b)) links.push_back(link);
    }
  }
  return links;
}

std::vector<int> others_of(int rank, const std::vector<Link>& links) {
  std::set<int> others;
  for (const Link& link : links) {
    if (link.a == rank) others.insert(link.b);
    if (link.b == rank) others.insert(link.a);
  }
  return {others.begin(), others.end()};
}

// Judges links of one kind.
std::vector<LinkFinding> judge(const std::vector<Link>& links, int ranks) {
  std::vector<LinkFinding> found;
  if (links.size() == 1) {
    const Link& only = links.front();
    const double ratio = only.seconds() / std::min(only.at_a, only.at_b);
    if (ratio >= min_slow_link_ratio)
      found.push_back({only.a, {only.b}, ratio, only.at_a > only.at_b ? only.a : only.b});
    return found;
  }
  if (links.size() == 2) {
    const bool first = links[0].seconds() > links[1].seconds();
    const Link &slow = links[first ? 0 : 1], &usual = links[first ? 1 : 0];
    const double ratio = slow.seconds() / usual.seconds();
    if (ratio >= min_slow_link_ratio) found.push_back({slow.a, {slow.b}, ratio});
    return found;
  }
  std::vector<PairTime> times;
  for (const Link& link : links) times.push_back({link.a, link.b, {link.seconds(), unknown, unknown}});
  const SlowPairs slow = find_slow_pairs(times, ranks, Ways::together, min_slow_link_ratio - 1);
  for (const SlowMember& one : slow.members) found.push_back({one.member, others_of(one.member, links), one.times});
  for (const SlowPair& one : slow.pairs) found.push_back({one.from, {one.to}, one.times});
  return found;
}

// If all links of a rank are slow, both within its host and to other hosts, the findings of the two kinds become one.
void join_kinds(std::vector<LinkFinding>& found, const std::vector<Link>& all, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    LinkFinding whole{rank, {}, 0};
    std::size_t parts = 0;
    for (const LinkFinding& one : found) {
      const bool own = one.rank == rank;
      if (!own && !(one.others.size() == 1 && one.others.front() == rank)) continue;
      ++parts;
      whole.ratio = std::max(whole.ratio, one.ratio);
      if (own)
        whole.others.insert(whole.others.end(), one.others.begin(), one.others.end());
      else
        whole.others.push_back(one.rank);
    }
    std::ranges::sort(whole.others);
    if (parts < 2 || whole.others != others_of(rank, all)) continue;
    std::erase_if(found, [&](const LinkFinding& one) {
      return one.rank == rank || (one.others.size() == 1 && one.others.front() == rank);
    });
    found.push_back(std::move(whole));
  }
}

std::string times_text(double ratio) { return fmt::format("{:.{}f}", ratio, ratio < 10 ? 1 : 0); }

// Whether every rank has memory for the messages, and the library for its connections.
bool allocate(Communicator& comm, Device& device, int partners, Buffer& out, Buffer& in) {
  const std::uint64_t needed = connection_bytes * static_cast<std::uint64_t>(partners);
  bool room = device.kind() == DeviceKind::cpu || device.free_bytes().value_or(needed) >= needed;
  try {
    out = device.allocate(message_bytes);
    in = device.allocate(message_bytes);
  } catch (const Error&) {
    room = false;
  }
  return comm.max_of(room ? 0 : 1) == 0;
}

}  // namespace

LinkRounds::LinkRounds(const std::vector<std::string>& hosts) {
  std::map<std::string, int> number;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    const int host = number.try_emplace(hosts[rank], static_cast<int>(members_.size())).first->second;
    if (index(host) == members_.size()) members_.emplace_back();
    auto& members = members_[index(host)];
    places_.push_back({host, static_cast<int>(members.size())});
    members.push_back(static_cast<int>(rank));
  }
  for (const auto& members : members_) within_ = std::max(within_, pairing_rounds(static_cast<int>(members.size())));
  within_ = std::min(within_, max_rounds);
  between_ = std::min(pairing_rounds(static_cast<int>(members_.size())), max_rounds);
}

std::optional<int> LinkRounds::partner(int rank, int round) const {
  const Place place = places_[index(rank)];
  if (!between_hosts(round)) {
    const auto& own = members_[index(place.host)];
    const int members = static_cast<int>(own.size());
    if (round >= pairing_rounds(members)) return std::nullopt;
    const auto other = partner_of(place.local, round, members);
    return other ? std::optional(own[index(*other)]) : std::nullopt;
  }
  const auto host = partner_of(place.host, round - within_, static_cast<int>(members_.size()));
  if (!host || place.local >= static_cast<int>(members_[index(*host)].size())) return std::nullopt;
  return members_[index(*host)][index(place.local)];
}

std::vector<int> LinkFinding::culprits() const {
  return others.size() == 1 ? std::vector<int>{rank, others.front()} : std::vector<int>{rank};
}

std::vector<LinkFinding> judge_links(const LinkRounds& rounds, const std::vector<std::vector<double>>& times) {
  std::vector<Link> links = links_of(rounds, times, false);
  const std::vector<Link> between = links_of(rounds, times, true);
  std::vector<LinkFinding> found = judge(links, rounds.ranks()), further = judge(between, rounds.ranks());
  links.insert(links.end(), between.begin(), between.end());
  std::move(further.begin(), further.end(), std::back_inserter(found));
  if (!between.empty()) join_kinds(found, links, rounds.ranks());
  std::ranges::stable_sort(found, std::ranges::greater(), &LinkFinding::ratio);
  return found;
}

std::string describe(const LinkFinding& finding, const std::vector<std::string>& hosts) {
  const auto name = [&](int rank) { return fmt::format("rank {} on {}", rank, hosts[index(rank)]); };
  if (finding.late_end >= 0) {
    const int other = finding.late_end == finding.rank ? finding.others.front() : finding.rank;
    return fmt::format("that between {} and {} took {} times as long at rank {} as at rank {}", name(finding.rank),
                       name(finding.others.front()), times_text(finding.ratio), finding.late_end, other);
  }
  if (finding.others.size() == 1)
    return fmt::format("that between {} and {} took {} times as long as the others", name(finding.rank),
                       name(finding.others.front()), times_text(finding.ratio));
  std::vector<std::string> names;
  for (const int other : finding.others) names.push_back(name(other));
  return fmt::format("every one of {} (to {}): even the fastest took {} times as long as the others'",
                     name(finding.rank), first_few(names, max_others_named), times_text(finding.ratio));
}

SlowLinks find_slow_links(Communicator& comm, Device& device) {
  if (comm.size() < 2) return {};
  SlowLinks slow{{}, hosts_of_ranks(comm)};
  const LinkRounds rounds(slow.hosts);
  Buffer out, in;
  if (!allocate(comm, device, rounds.count(), out, in)) return {};  // the case has taken it all
  const auto stream = device.make_stream();
  device.zero(out.data(), message_bytes, *stream);
  device.zero(in.data(), message_bytes, *stream);
  stream->synchronize();
  std::vector<double> own(index(rounds.count()), unknown);
  const Clock::time_point start = Clock::now();
  double spent = 0;  // the same on every rank
  for (int round = 0; spent <= max_seconds && round < rounds.count(); ++round) {
    const double enough = max_seconds * (round + 1) / rounds.count();
    const auto partner = rounds.partner(comm.rank(), round);
    double fastest = std::numeric_limits<double>::infinity();
    for (int i = 0; i < exchanges && (i < 2 || spent <= enough); ++i) {
      comm.barrier();
      const Clock::time_point begun = Clock::now();
      if (partner) {
        comm.group(
            [&] {
              comm.send(out.data(), message_bytes, DType::u8, *partner, *stream);
              comm.receive(in.data(), message_bytes, DType::u8, *partner, *stream);
            },
            *stream);
        stream->synchronize();
      }
      // A pair's first call makes its connection.
      if (i > 0) fastest = std::min(fastest, seconds_since(begun));
      spent = comm.max_of(seconds_since(start));
    }
    if (partner) own[index(round)] = fastest;
  }
  std::vector<double> all(own.size() * index(comm.size()));
  comm.all_gather_host(own.data(), all.data(), own.size() * sizeof(double));
  std::vector<std::vector<double>> times(own.size(), std::vector<double>(index(comm.size())));
  for (std::size_t i = 0; i < all.size(); ++i) times[i % own.size()][i / own.size()] = all[i];
  slow.findings = judge_links(rounds, times);
  return slow;
}

}  // namespace assay
