#include "suites/collective/slow_pairs.h"

#include "harness/sampling/pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace assay::collective {

namespace {

constexpr std::size_t max_named = 20;

std::string times_text(double times) { return fmt::format("{:.{}f}", times, times < 10 ? 2 : 0); }

}  // namespace

std::vector<std::string> name_slow(const PairTimes& times, const std::vector<std::string>& names, Members members) {
  std::vector<PairTime> all;
  for (std::size_t from = 0; from < times.size(); ++from)
    for (std::size_t to = 0; to < times.size(); ++to)
      if (times[from][to]) all.push_back({static_cast<int>(from), static_cast<int>(to), *times[from][to]});
  const SlowPairs slow = find_slow_pairs(all, static_cast<int>(times.size()), Ways::apart);
  const auto name = [&](int member) { return names[static_cast<std::size_t>(member)]; };
  const bool hosts = members == Members::hosts;
  std::vector<std::string> texts;
  for (const SlowMember& one : slow.members) {
    const char* way = one.sending && one.receiving ? "" : one.sending ? " in sending" : " in receiving";
    texts.push_back(fmt::format("slow {}{}: even its fastest link takes {} times as long as the median {}'s{}",
                                hosts ? "host " : "", name(one.member), times_text(one.times), hosts ? "host" : "rank",
                                way));
  }
  for (const SlowPair& one : slow.pairs)
    texts.push_back(fmt::format("slow link {} {} {}: {} times the median link's time{}", name(one.from),
                                one.both_ways ? "-" : "->", name(one.to), times_text(one.times),
                                one.both_ways ? ", both ways" : ", that way alone"));
  if (texts.size() > max_named) {
    const std::size_t more = texts.size() - max_named;
    texts.resize(max_named);
    texts.push_back(fmt::format("slow: {} more {} or links", more, hosts ? "hosts" : "ranks"));
  }
  return texts;
}

}  // namespace assay::collective
