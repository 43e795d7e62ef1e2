// How fast the links between ranks are, by messages between pairs of them: a collective is as slow as the slowest link
// and does not say which one that is.
#pragma once

#include "harness/comm/communicator.h"
#include "harness/device/device.h"

#include <optional>
#include <string>
#include <vector>

namespace assay {

// Which ranks exchange messages in which round: first those of each host among themselves, then rank k of each host
// with rank k of the others; each part is a round-robin tournament, so that no rank has two partners at once and all
// links between hosts are shared alike. At most 8 rounds of each part: whole for hosts of up to 8 ranks and for up to 8
// hosts; in larger worlds every rank meets 8 others of its host, and 8 of other hosts.
class LinkRounds {
 public:
  // `hosts`: the name of each rank's host.
  explicit LinkRounds(const std::vector<std::string>& hosts);
  int ranks() const { return static_cast<int>(places_.size()); }
  int count() const { return within_ + between_; }
  // Whether the round joins ranks of different hosts.
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
  int rank = 0;             // one end; that rank's, where all of its links are slow
  std::vector<int> others;  // at the other end, in ascending order: one, or several
  double ratio = 0;         // its time over what is usual
  int late_end = -1;        // where it is the only link and is slow at one of its ends: at that one
  // The ranks whose calls it holds up more than others'.
  std::vector<int> culprits() const;
};

// What is slow: `times[round][rank]` are each rank's seconds with its partner of that round, NaN where there are none.
// A pair's time is that of its slower end. Links within hosts are compared with each other, and those between hosts.
// A rank whose links are all slow is named with them (it has two or more); else the link is: with find_slow_pairs, and
// at least 2.5 times what is usual. Of two links the slower one is compared with the other. Of one alone nothing is
// known but its two ends' own times, which are compared. The worst first.
std::vector<LinkFinding> judge_links(const LinkRounds& rounds, const std::vector<std::vector<double>>& times);

// "that between rank 0 on a and rank 2 on b took 8.1 times as long as the others": both ends with their hosts; of a
// rank whose links are all slow the first four of the others.
std::string describe(const LinkFinding& finding, const std::vector<std::string>& hosts);

struct SlowLinks {
  std::vector<LinkFinding> findings;
  std::vector<std::string> hosts;  // by rank
};

// In each round the partners send 1 MiB to each other, up to eleven times; a rank's time is that of the fastest
// exchange after the first (which makes the pair's connection), by the host's clock. The same on every rank, which all
// call it. Nothing in a world of one, nor where memory lacks.
//
// Its time: 16 rounds of 11 exchanges are 1.5 s where every message takes 8 ms (Gigabit Ethernet), and 16 new
// connections between GPUs, of tens of ms each, half as much again. So all rounds together have 2 s: one that has had
// its share ends with its second exchange, and once they are over no further one begins. Small worlds, which have few
// rounds, are measured whole on links a hundred times slower than others; what has been measured by then is judged.
SlowLinks find_slow_links(Communicator& comm, Device& device);

}  // namespace assay
