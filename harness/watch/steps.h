// The steps of a watched job and where their time goes, over its ranks.
#pragma once

#include "harness/statistics/statistics.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay::watch {

// The parts of a step, which sum to it. `waiting` is what a rank waits in collectives beyond the rank that waits least,
// whose time in them is the communication; `forward` is all that is no other part.
enum class Part { data_wait, forward, backward, communication, waiting, optimizer, checkpoint };
inline constexpr std::size_t part_count = 7;
constexpr auto words(Part) {
  return std::to_array<std::string_view>(
      {"data_wait", "forward", "backward", "communication", "waiting_for_ranks", "optimizer", "checkpoint"});
}
using Parts = std::array<double, part_count>;  // seconds, by Part

// One step of one rank, in seconds.
struct Step {
  double end = 0;  // on the host's monotonic clock
  double total = 0;
  double data_wait = 0, backward = 0, communication = 0, optimizer = 0, checkpoint = 0;
  double cpu = 0;                    // of the thread that makes the steps
  std::optional<double> ready = {};  // in which that thread was ready to run and had no CPU
  bool parts = false;                // false: only `end`, `total` and `cpu` were measured
  // Made while a profiler recorded, began or ended: it took longer than others and counts for nothing.
  bool recorded = false;
  int backwards = 0;
  double synced = 0;  // waiting for the GPU
  int syncs = 0;      // the calls that did

  double own() const { return total - communication; }
  double forward() const { return total - data_wait - backward - communication - optimizer - checkpoint; }
};

// A rank as it describes itself, and its steps; the first of them is the second of the job.
struct RankSteps {
  int rank = 0;
  std::vector<Step> steps;
  std::string host = {};  // of a job on several; else empty
};

struct RankParts {
  int rank = 0;
  double step = 0;     // mean
  Parts parts = {};    // means
  double off_cpu = 0;  // mean: of its step but for waits, when its thread neither had nor wanted a CPU
  double ready = 0;    // mean: when it wanted a CPU and had none
  double loading = 0;  // mean: what its thread computed while it waited for data; at least
  std::string host = {};

  // Without what it spends in collectives.
  double own() const {
    return step - parts[static_cast<std::size_t>(Part::communication)] - parts[static_cast<std::size_t>(Part::waiting)];
  }
};

// The rank that others wait for most.
struct Straggler {
  int rank = 0;
  std::string host = {};      // of a job on several
  double share_of_steps = 0;  // in which its own time was the longest
  bool persistent = false;    // in 75 % of the steps, and beyond chance
  double saved = 0;           // s per step, if it were as fast as the median of the others; equal ranks: about 0
  double skew = 0;            // s: how far the last rank, whichever it is, is behind the median of the others
  double in_turn = 0;         // the same, without what each rank waits for a CPU
  Part part = Part::forward;  // in which it is behind them most
};

struct Stalls {
  double share = 0;  // of the time: what steps beyond 3 sigma took above the median
  std::int64_t count = 0;
  std::optional<std::int64_t> every;  // steps between most of them
  std::int64_t first = 0, last = 0;   // their numbers in the job
  // Whether backward has its share in what they took longer: then their samples were longer, or the machine was slower,
  // and the job did nothing besides.
  bool of_passes = false;
};

// What watching costs: the ratio of steps with and without hooks, minus 1.
struct Overhead {
  double share = 0;
  std::optional<Interval> ci95;
};

struct JobSteps {
  std::vector<RankParts> ranks;  // by rank
  std::int64_t count = 0;        // steps of the rank that made most, without the first
  std::int64_t recorded = 0;     // those among them that do not count, as a profiler recorded
  std::vector<double> seconds;   // of each step after warm-up, of the lowest rank
  std::vector<double> ends;
  Summary summary;  // of `seconds`
  double p95 = 0;
  double step = 0;  // mean over the ranks, of the steps that have parts
  Parts parts = {};
  std::optional<Straggler> straggler;
  Stalls stalls;
  std::optional<Overhead> overhead;
  double syncs = 0;   // calls per step that wait for the GPU
  double synced = 0;  // s per step in them

  double share(Part part) const { return step > 0 ? parts[static_cast<std::size_t>(part)] / step : 0; }
  // Fractions of a step, means over the ranks.
  double off_cpu() const { return mean_share(&RankParts::off_cpu); }
  double cpu_wait() const { return mean_share(&RankParts::ready); }
  double loading() const { return mean_share(&RankParts::loading); }
  double mean_share(double RankParts::*of) const;
};

// Absent if no rank has made enough steps that count: 3. Steps of warm-up, a tenth and at most 10, do not count.
std::optional<JobSteps> steps_of_job(const std::vector<RankSteps>& ranks);
// The same of steps that were chosen to be measured, at least one on each rank: none is warm-up.
JobSteps steps_of_trace(std::vector<RankSteps> ranks);

}  // namespace assay::watch
