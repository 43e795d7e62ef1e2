// The numbers that rules of diagnosis judge.
#pragma once

#include "harness/runs/run_set.h"
#include "reports/model/estimate.h"

#include <map>
#include <optional>
#include <span>
#include <string>

namespace assay::report {

struct Evidence {
  std::optional<Estimate> number;  // absent: `needs` names what is missing
  std::string needs;
  // The fraction of the time that would be saved if the cause were gone; absent: unknown. How much
  // slower a CPU computes after it has waited or was shared is not in it.
  std::optional<double> saved = {};
  bool at_most = false;     // `saved` is a bound, not measured
  std::string remark = {};  // added to what is said of the number
  std::string other = {};   // what the case was compared with: "the same step in bf16, measured in this run"
  std::string rank = {};    // "rank 1 on node7, GPU 0000:01:00.0": the rank that causes it; empty: none, or unknown
};

// Numbers by name:
//  data_wait_share       of a training step: waiting for data
//  communication_share   of a step on several ranks: waiting for a collective without computing
//  (communication_share());
//                        missing where more of it is for the last rank (arrival_skew) than for the transfer
//  arrival_skew_share    of a step on several ranks: waiting for the last rank
//  pace_ratio            of several ranks: the slowest one's own time over the median of the others'
//  throttled_share       of samples: those during which a GPU was throttled
//  dram_active           mean activity of the GPU's memory, 0 to 1
//  quota_share           of the CPUs used: what a cgroup's quota held back
//  cpu_wait_share        of training: fraction of the time that rank 0's main thread was ready to run and had no CPU
//  stall_share           of a training case's time: what steps beyond 3 sigma took above the median
//  distant_ranks_share   of ranks on GPUs: those on CPUs of another NUMA node
//  gpu_idle_share        of a step on a GPU: idle between kernels; only with --trace
//  exposed_copies_share  of a step of an imported trace: the GPU copies and does nothing else
//  ridge_ratio           of a step on all of a host's CPUs, larger than their caches: FLOP per byte at the ridge of the
//                        roofs that the run measured, over the step's (training_intensity(): a lower bound of the
//                        ratio)
//  precision_ratio       of training: the rate of the same step in the fastest other precision of the run; without one,
//  of
//                        the best products of the run in it (at most)
//  fewer_threads_ratio   of a case: the rate of the same case on fewer threads, or with fewer workers, in the same run
//  store_ratio           of a loop over memory: the rate of the same loop with the other kind of stores in the same run
//  small_pages_share     of a case in memory: the part in pages of 4 KiB, 0 or 1
//  clock_shortfall_share of products and training under a governor other than performance: what the clock lacks to the
//                        highest
//  empty_channels_share  of training and of streams of all threads from memory: memory channels without a DIMM
// Sigma is robust_sigma(), and at least 5 % of the median.
using EvidenceSet = std::map<std::string, Evidence, std::less<>>;
// `of_run`: all entries of the same run.
EvidenceSet evidence_of(const Entry& entry, std::span<const Entry> of_run = {});

// Every name above.
const std::vector<std::string>& evidence_names();

}  // namespace assay::report
