// How fast each rank's link is, by messages between ranks: a collective is as slow as the slowest link and does not say
// which one that is.
#pragma once

#include "harness/comm/communicator.h"
#include "harness/device/device.h"

#include <optional>
#include <string>

namespace assay {

struct SlowestLink {
  int rank = 0;
  std::string host;    // where it runs
  double ratio = 0;    // its time over the median of the others'
  double seconds = 0;  // to send and receive 1 MiB
};

// Every rank sends 1 MiB to the rank `k` further on and receives as much, for k = 1, 2, ... (at most 8 of them, and 1
// alone between GPUs, where each pair costs memory); a rank's time is the median over k of its fastest exchange of
// seven, by the host's clock. The rank that takes 2.5 times the median of the others, if any; the same on every rank,
// which all call it. Nothing in a world of one.
std::optional<SlowestLink> find_slow_link(Communicator& comm, Device& device);

}  // namespace assay
