// What is kept of one rank's trace.
#pragma once

#include "harness/runs/traced.h"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace assay::kineto {

// One step, in seconds. Where kernels ran: what the GPU did, first computing, then communicating, then copying; the
// host's wait for data while the GPU did nothing; the rest is `host`. Else what the thread of the steps did; the rest
// is the forward pass and all that has no range of its own.
struct TracedStep {
  std::int64_t number = 0;
  double start = 0, total = 0;
  double data = 0, communication = 0;
  double compute = 0, copies = 0, host = 0;                         // with a GPU
  double forward = 0, backward = 0, optimizer = 0, checkpoint = 0;  // without
};

struct CollectiveCall {
  std::int64_t start = 0, duration = 0;  // ns
  std::int64_t sequence = -1;            // in its group; -1: not known
};

struct RankTrace {
  std::string file;
  std::optional<int> rank;
  int world = 0;  // 0: not known
  std::string backend, host, device;
  std::int64_t base_ns = 0;  // of its times, since the epoch
  bool gpu = false;
  bool loads_itself = true;       // no worker processes load its data
  double pageable_share = 0;      // of the time of copies: between the device and pageable memory
  std::vector<TracedStep> steps;  // by time
  std::vector<TracedUse> uses;    // in all, not of a step; the longest first
  std::map<std::string, std::deque<CollectiveCall>> collectives;  // by kind and group; by start
  std::string no_work;  // why no use has its work; empty: some have, or none could
  std::vector<std::string> remarks;
};

}  // namespace assay::kineto
