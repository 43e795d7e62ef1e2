// Finds the fewest hosts, ports, switches and pairs that explain slow links between hosts.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace assay::fitness {

// Seconds of a message from every host to every other on every rail (the ports of one number of all hosts). NaN where
// nothing was measured.
class RailTimes {
 public:
  RailTimes(std::size_t hosts, std::size_t rails)
      : hosts_(hosts), rails_(rails), values_(hosts * hosts * rails, std::numeric_limits<float>::quiet_NaN()) {}
  std::size_t hosts() const { return hosts_; }
  std::size_t rails() const { return rails_; }
  float& at(std::size_t from, std::size_t to, std::size_t rail) {
    return values_[(from * hosts_ + to) * rails_ + rail];
  }
  float at(std::size_t from, std::size_t to, std::size_t rail) const {
    return values_[(from * hosts_ + to) * rails_ + rail];
  }

 private:
  std::size_t hosts_, rails_;
  std::vector<float> values_;
};

struct SlowCause {
  // leaf: the switch below which these hosts have their ports of this rail; port: with its cable; pair: the way between
  // two hosts.
  enum class Kind { leaf, host, port, pair };

  Kind kind = Kind::host;
  std::vector<std::size_t> hosts;        // all of a leaf, both of a pair, else one
  std::optional<std::size_t> rail = {};  // of a leaf or a port
  std::size_t slow = 0, links = 0;       // how many of its links are slow, by the limit that told
  // The median of its links' times over the usual time, of messages that these hosts send to others, and receive.
  // Those of a pair: from its first host, and from its second.
  double sending = 0, receiving = 0;
};

// A slow link that no cause explains. `there` and `back`: times the usual time.
struct SlowLink {
  std::size_t from = 0, to = 0, rail = 0;
  double there = 0, back = 0;
};

struct SlowLinks {
  double usual = 0;               // seconds
  double limit = 0;               // times the usual: a link beyond it is slow
  std::vector<SlowCause> causes;  // those that explain most first
  std::size_t links = 0, slow = 0, unexplained = 0;
  std::vector<SlowLink> left;  // of the unexplained, those beyond SlowLimits::most; the slowest first
};

// When a link is slow: `least` times the usual, or more where the two directions of links differ by chance, but never
// more than `most` times. Or, if `seconds` is given, when it takes longer than that.
struct SlowLimits {
  double least = 1 / 0.9, most = 1 / 0.6;
  std::optional<double> seconds = {};
};

// `leaf_of`: for each host the number of its leaf switches, the same for hosts that share them; empty if unknown.
// A group of links has a cause only if chance makes so many of it slow in at most one of 100,000 healthy clusters. That
// is tried at the limit, and for what is left at twice and at four times the limit: among links that noise spreads
// widely, only those that are far slower stand out. A single slow link has no cause: it may be the fault of either end.
//
// A link is slow in its slower direction. The usual time is that of the faster quarter of links, which the faster
// quarter of ports reaches: it holds while that many ports have some links to sound ones, also among hosts of two
// kinds. Causes are found one by one, the one that explains most first; what it explains is divided by its own
// slowness, so that a second fault behind it still shows.
SlowLinks explain_slow_links(RailTimes times, std::span<const std::size_t> leaf_of, SlowLimits limits = {});

}  // namespace assay::fitness
