// How fast the links between ranks are, measured by messages between pairs: a collective is as slow as its slowest
// link, and its time does not show which link that is.
#pragma once

#include "harness/comm/communicator.h"
#include "harness/device/device.h"

#include <optional>
#include <string>
#include <vector>

namespace assay {

// Which ranks exchange messages in which round: first the ranks of each host among themselves, then rank k of each host
// with rank k of the others. Each part is a round-robin tournament, so that no rank has two partners at once and all
// links between hosts are shared equally. Each part has at most 8 rounds: complete for up to 8 ranks per host and 8
// hosts; in larger worlds every rank meets 8 ranks of its host and 8 of other hosts.
class LinkRounds {
 public:
  // `hosts`: the name of each rank's host.
  explicit LinkRounds(const std::vector<std::string>& hosts);
  int ranks() const { return static_cast<int>(places_.size()); }
  int count() const { return within_ + between_; }
  // Whether partners in the round are on different hosts.
  bool between_hosts(int round) const { return round >= within_; }
  std::optional<int> partner(int rank, int round) const;

 private:
  struct Place {
    int host = 0, local = 0;
  };
  std::vector<Place> places_;              // by rank
  std::vector<std::vector<int>> members_;  // ranks by host
  int within_ = 0, between_ = 0;
};

struct LinkFinding {
  int rank = 0;             // one end; the rank itself, if all of its links are slow
  std::vector<int> others;  // at the other end, ascending: one, or several
  double ratio = 0;         // its time over the usual one
  int late_end = -1;        // the slow end of an only link
  // The ranks whose calls this link delays more than the calls of others.
  std::vector<int> culprits() const;
};

// Finds slow links, worst first. `times[round][rank]` are each rank's seconds with its partner of that round, NaN if it
// has none. A pair's time is the time of its slower end. Links within hosts are compared with each other, and so are
// links between hosts. A rank with two or more links, all slow, is named with them; otherwise the link is, by
// find_slow_pairs and if it takes at least 2.5 times as long as usual. With two links, the slower one is compared with
// the other; with a single link, the times of its two ends are compared.
std::vector<LinkFinding> judge_links(const LinkRounds& rounds, const std::vector<std::vector<double>>& times);

// "that between rank 0 on a and rank 2 on b took 8.1 times as long as the others": both ends with their hosts; for a
// rank whose links are all slow, the first four of the others.
std::string describe(const LinkFinding& finding, const std::vector<std::string>& hosts);

struct SlowLinks {
  std::vector<LinkFinding> findings;
  std::vector<std::string> hosts;  // by rank
};

// In each round the partners send 1 MiB to each other, up to eleven times; a rank's time is that of the fastest
// exchange after the first (which makes the pair's connection), by the host's clock. Called on every rank, and returns
// the same on each. Empty in a world of one, and if memory is short.
//
// Duration: 16 rounds of 11 exchanges take 1.5 s if every message takes 8 ms (Gigabit Ethernet), and 16 new connections
// between GPUs, of tens of ms each, half as much again. All rounds together get 2 s: a round that has used its share
// ends after its second exchange, and no round begins after the 2 s. Small worlds, with few rounds, are measured
// completely even if a link is a hundred times slower than the others; otherwise what was measured is judged.
SlowLinks find_slow_links(Communicator& comm, Device& device);

}  // namespace assay
