#include "harness/fitness/cluster/slow_links.h"

#include "harness/statistics/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

namespace assay::fitness {

namespace {

using Kind = SlowCause::Kind;

struct Counts {
  std::size_t slow = 0, links = 0;  // that no cause has explained yet
  std::size_t all = 0;

  double share() const { return links == 0 ? 0 : static_cast<double>(slow) / static_cast<double>(links); }
  // Most of the few that are left are slow by the choice of what was explained.
  bool explained() const { return 4 * links < all || links == 0; }
};

constexpr double min_share = 0.6;     // of a cause's links, and of those of each port of a leaf or a host
constexpr double false_names = 1e-5;  // of a healthy cluster, for each kind and limit
constexpr double usual_slow = 0.001;  // share of links that chance makes slow, worth as much as usual_weight links
constexpr double usual_weight = 100;
// Times the limit, for what the ones before did not explain: where noise makes many links slow, those that are far
// slower are beyond chance only among their like.
constexpr std::array<double, 3> rising_limits = {1, 2, 4};

// Tells whether a group has more slow links than chance explains, given their share among all other links: by a bound
// of the binomial tail (Chernoff, Annals of Mathematical Statistics, 1952) times the number of such groups.
bool beyond_chance(const Counts& group, const Counts& all, std::size_t groups) {
  const auto slow = static_cast<double>(all.slow - group.slow), links = static_cast<double>(all.links - group.links);
  const double chance = (slow + usual_slow * usual_weight) / (links + usual_weight), share = group.share();
  if (share <= chance) return false;
  const double other = share < 1 ? (1 - share) * std::log((1 - share) / (1 - chance)) : 0;
  return static_cast<double>(group.links) * (share * std::log(share / chance) + other) >
         std::log(static_cast<double>(groups) / false_names);
}

double median_of(std::vector<double>& values) { return values.empty() ? 0 : median(values); }

double faster_quarter(std::vector<double>& times) {
  const auto quarter = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 4);
  std::ranges::nth_element(times, quarter);
  return *quarter;
}

class Explanation {
 public:
  Explanation(RailTimes times, std::span<const std::size_t> leaf_of, SlowLimits limits)
      : most_(std::max(limits.least, limits.most)),
        times_(std::move(times)),
        hosts_(times_.hosts()),
        rails_(times_.rails()) {
    if (leaf_of.size() == hosts_) leaf_of_.assign(leaf_of.begin(), leaf_of.end());
    for (std::size_t host = 0; host < leaf_of_.size(); ++host) {
      if (leaf_of_[host] >= leaves_.size()) leaves_.resize(leaf_of_[host] + 1);
      leaves_[leaf_of_[host]].push_back(host);
    }
    find_usual();
    if (limits.seconds)
      found_.limit = most_ = *limits.seconds / found_.usual;
    else
      find_limit(limits);
  }

  SlowLinks run() {
    if (!(found_.usual > 0)) return std::move(found_);
    for (const double times : rising_limits) {
      count_beyond(times);
      if (times == 1) found_.links = all_.links, found_.slow = all_.slow;
      while (const auto next = largest()) accept(*next);
    }
    count_beyond(1);
    name_pairs();
    found_.unexplained = all_.slow;
    list_left();
    std::ranges::stable_sort(found_.causes, std::greater(), &SlowCause::slow);
    return std::move(found_);
  }

 private:
  struct Candidate {
    Kind kind;
    std::size_t which = 0, rail = 0;  // leaf or host
    Counts counts = {};
  };

  template <typename F>
  void each_link(const F& look) const {
    for (std::size_t a = 0; a < hosts_; ++a)
      for (std::size_t b = a + 1; b < hosts_; ++b)
        for (std::size_t rail = 0; rail < rails_; ++rail) look(a, b, rail);
  }

  // The slower direction; NaN if neither was measured.
  float slower(std::size_t a, std::size_t b, std::size_t rail) const {
    return std::fmax(times_.at(a, b, rail), times_.at(b, a, rail));
  }
  bool is_slow(float seconds) const { return seconds > found_.limit * found_.usual; }

  void find_usual() {
    std::vector<double> quarters, port;
    for (std::size_t host = 0; host < hosts_; ++host)
      for (std::size_t rail = 0; rail < rails_; ++rail) {
        port.clear();
        for (std::size_t other = 0; other < hosts_; ++other)
          for (const float time : {times_.at(host, other, rail), times_.at(other, host, rail)})
            if (other != host && time > 0) port.push_back(time);
        if (port.empty()) continue;
        quarters.push_back(faster_quarter(port));
      }
    if (!quarters.empty()) found_.usual = faster_quarter(quarters);
  }

  // Chance makes the two directions of a link differ; a fault of both does not.
  void find_limit(SlowLimits limits) {
    constexpr std::size_t max_differences = 200'000;
    const std::size_t stride = 1 + hosts_ * hosts_ * rails_ / 2 / max_differences;
    std::size_t number = 0;
    std::vector<double> differences;
    each_link([&](std::size_t a, std::size_t b, std::size_t rail) {
      if (number++ % stride != 0) return;
      const double difference = std::abs(std::log(times_.at(a, b, rail) / times_.at(b, a, rail)));
      if (std::isfinite(difference)) differences.push_back(difference);
    });
    constexpr double sigmas = 4;
    const double sigma = 1.4826 * median_of(differences) / std::sqrt(2.0);
    found_.limit = std::clamp(std::exp(sigmas * sigma), limits.least, most_);
  }

  void count_beyond(double times_the_limit) {
    counted_beyond_ = times_the_limit * found_.limit * found_.usual;
    all_ = {};
    ports_.assign(hosts_ * rails_, {});
    uplinks_.assign(hosts_ * rails_, {});
    each_link([&](std::size_t a, std::size_t b, std::size_t rail) { count(a, b, rail, 1); });
  }

  // Adds the link to all that it belongs to, or takes it away.
  void count(std::size_t a, std::size_t b, std::size_t rail, int sign) {
    const float seconds = slower(a, b, rail);
    if (std::isnan(seconds)) return;
    const auto one = static_cast<std::size_t>(sign), slow = seconds > counted_beyond_ ? one : 0;  // wraps around for -1
    const auto add = [&](Counts& to) {
      to.slow += slow, to.links += one;
      to.all = std::max(to.all, to.links);
    };
    add(all_);
    const bool up = !leaf_of_.empty() && leaf_of_[a] != leaf_of_[b];
    for (const std::size_t host : {a, b}) {
      add(ports_[host * rails_ + rail]);
      if (up) add(uplinks_[host * rails_ + rail]);
    }
  }

  // The sum over these ports if each of them has that many slow links, else none.
  static Counts sum_if_all(std::vector<Counts> ports) {
    Counts sum;
    for (const Counts& port : ports) {
      if (port.explained()) continue;
      if (port.share() < min_share) return {};
      sum.slow += port.slow, sum.links += port.links;
    }
    return sum;
  }

  std::optional<Candidate> largest() const {
    std::optional<Candidate> best;
    const auto offer = [&](Candidate one, std::size_t groups) {
      if (one.counts.share() < min_share || (best && one.counts.slow <= best->counts.slow)) return;
      if (named_.contains({one.kind, one.which, one.rail})) return;
      if (beyond_chance(one.counts, all_, groups)) best = one;
    };
    for (std::size_t leaf = 0; leaf < leaves_.size(); ++leaf)
      for (std::size_t rail = 0; leaves_[leaf].size() > 1 && rail < rails_; ++rail) {
        std::vector<Counts> ports;
        for (const std::size_t host : leaves_[leaf]) ports.push_back(uplinks_[host * rails_ + rail]);
        offer({Kind::leaf, leaf, rail, sum_if_all(std::move(ports))}, leaves_.size() * rails_);
      }
    for (std::size_t host = 0; host < hosts_; ++host) {
      const auto first = ports_.begin() + static_cast<std::ptrdiff_t>(host * rails_);
      const std::vector<Counts> ports(first, first + static_cast<std::ptrdiff_t>(rails_));
      offer({Kind::host, host, 0, sum_if_all(ports)}, hosts_);
      for (std::size_t rail = 0; rails_ > 1 && rail < rails_; ++rail)
        if (!ports[rail].explained()) offer({Kind::port, host, rail, ports[rail]}, hosts_ * rails_);
    }
    return best;
  }

  template <typename F>
  void each_link_of(const Candidate& one, const F& look) const {
    const std::vector<std::size_t> own = one.kind == Kind::leaf ? leaves_[one.which] : std::vector{one.which};
    std::vector<bool> is_own(hosts_);
    for (const std::size_t host : own) is_own[host] = true;
    for (const std::size_t host : own)
      for (std::size_t other = 0; other < hosts_; ++other) {
        if (other == host || (is_own[other] && other < host)) continue;
        for (std::size_t rail = 0; rail < rails_; ++rail)
          if (one.kind == Kind::host || rail == one.rail) look(host, other, rail);
      }
  }

  void accept(const Candidate& one) {
    named_.insert({one.kind, one.which, one.rail});
    SlowCause cause{.kind = one.kind, .hosts = {one.which}, .slow = one.counts.slow, .links = one.counts.links};
    if (one.kind == Kind::leaf) cause.hosts = leaves_[one.which];
    if (one.kind != Kind::host) cause.rail = one.rail;
    std::vector<std::array<std::size_t, 3>> links;
    each_link_of(one, [&](std::size_t a, std::size_t b, std::size_t rail) { links.push_back({a, b, rail}); });
    finish(std::move(cause), links);
  }

  // Notes the cause, and divides its slow links by what is typical for it. Those that are no slower than that say
  // nothing about other causes.
  void finish(SlowCause cause, const std::vector<std::array<std::size_t, 3>>& links) {
    std::vector<double> sent, received;
    for (const auto& [a, b, rail] : links) {
      if (!is_slow(slower(a, b, rail))) continue;
      if (const float time = times_.at(a, b, rail); time > 0) sent.push_back(time / found_.usual);
      if (const float time = times_.at(b, a, rail); time > 0) received.push_back(time / found_.usual);
    }
    cause.sending = median_of(sent);
    cause.receiving = median_of(received);
    for (const auto& [a, b, rail] : links) {
      if (!is_slow(slower(a, b, rail))) continue;
      count(a, b, rail, -1);
      times_.at(a, b, rail) /= static_cast<float>(std::max(1.0, cause.sending));
      times_.at(b, a, rail) /= static_cast<float>(std::max(1.0, cause.receiving));
      if (!is_slow(slower(a, b, rail))) times_.at(a, b, rail) = times_.at(b, a, rail) = std::nanf("");
      count(a, b, rail, 1);
    }
    found_.causes.push_back(std::move(cause));
  }

  void name_pairs() {
    const Counts all = all_;
    for (std::size_t a = 0; a < hosts_; ++a)
      for (std::size_t b = a + 1; b < hosts_; ++b) {
        Counts pair;
        for (std::size_t rail = 0; rail < rails_; ++rail) {
          const float seconds = slower(a, b, rail);
          if (std::isnan(seconds)) continue;
          ++pair.links;
          pair.slow += is_slow(seconds) ? 1 : 0;
        }
        if (pair.slow == 0 || pair.share() < min_share) continue;
        if (!beyond_chance(pair, all, hosts_ * (hosts_ - 1) / 2)) continue;
        std::vector<std::array<std::size_t, 3>> links;
        for (std::size_t rail = 0; rail < rails_; ++rail) links.push_back({a, b, rail});
        finish({.kind = Kind::pair, .hosts = {a, b}, .slow = pair.slow, .links = pair.links}, links);
      }
  }

  void list_left() {
    each_link([&](std::size_t a, std::size_t b, std::size_t rail) {
      if (slower(a, b, rail) > most_ * found_.usual)
        found_.left.push_back({a, b, rail, times_.at(a, b, rail) / found_.usual, times_.at(b, a, rail) / found_.usual});
    });
    std::ranges::stable_sort(found_.left, std::greater(),
                             [](const SlowLink& one) { return std::fmax(one.there, one.back); });
  }

  double most_;
  double counted_beyond_ = 0;  // seconds: links that take longer count as slow
  RailTimes times_;
  std::size_t hosts_, rails_;
  std::vector<std::size_t> leaf_of_;
  std::vector<std::vector<std::size_t>> leaves_;
  Counts all_;
  std::vector<Counts> ports_, uplinks_;  // by host and rail; uplinks: of its links, those to hosts of other leaves
  std::set<std::tuple<Kind, std::size_t, std::size_t>> named_;
  SlowLinks found_;
};

}  // namespace

SlowLinks explain_slow_links(RailTimes times, std::span<const std::size_t> leaf_of, SlowLimits limits) {
  return Explanation(std::move(times), leaf_of, limits).run();
}

}  // namespace assay::fitness
