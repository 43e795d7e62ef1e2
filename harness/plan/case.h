// A case: one measurable thing with every parameter fixed.
#pragma once

#include "harness/comm/communicator.h"
#include "harness/core/words.h"
#include "harness/device/device.h"
#include "harness/plan/params.h"
#include "harness/record/metric.h"
#include "harness/record/peaks.h"
#include "harness/sampling/sampler.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay {

struct World {
  int ranks = 1;
  int nodes = 1;
  int cpus = 1;  // shared by the ranks of one node
  DeviceKind device = DeviceKind::cpu;

  static void members(auto& self, auto& io) { io("ranks", self.ranks), io("nodes", self.nodes), io("cpus", self.cpus); }
};

// Faults that --inject can cause, for tests and drills.
enum class Fault {
  crash,
  hang,
  slow_rank,
  wrong_sum,
  bit_flip,
  slow_link,
  oom,
  corrupt_image,
  slow_loader,
  stall,
  oversubscribe
};
constexpr auto words(Fault) {
  return std::to_array<std::string_view>({"crash", "hang", "slow-rank", "wrong-sum", "bit-flip", "slow-link", "oom",
                                          "corrupt-image", "slow-loader", "stall", "oversubscribe"});
}
// A list of names.
Json to_json(const std::set<Fault>& faults);
void read(const JsonValue& value, std::set<Fault>& to);

// The inputs of a case, set before it runs.
struct CaseInputs {
  World world;
  std::uint64_t seed = 0;
  std::filesystem::path cache_dir = {};  // generated data sets are kept here
  std::filesystem::path run_dir = {};    // ranks may write checkpoints/ in it; empty outside a run
  std::vector<MeasuredPeak> peaks = {};  // from this run's `peak` cases, also from before a resume or a relaunch
  std::set<Fault> faults = {};           // requested with --inject
};

// The remarks and series of a case; all of them go into the record.
struct CaseOutputs {
  Protocol protocol = {};  // changed in setup() only
  // Figures compare only if conditions and choices are equal. A choice that may change by chance, such as a trial's
  // between close rivals, and a condition that changes with the world size are therefore labels.
  Attributes conditions = {};           // fixed by plan, user or hardware
  Attributes choices = {};              // made by a trial, a library or a kernel: implementation, isa, ...
  Attributes labels = {};               // remarks
  std::vector<std::string> flags = {};  // remarks that readers must see
  // On rank 0, added to the case's phases and sensors:
  std::vector<std::pair<std::string, double>> spans = {};  // seconds per step by part: forward, backward, ...
  std::map<std::string, Series> series = {};               // loss, ...
  std::optional<Matrix> matrix = {};                       // measured between each pair of ranks
  std::vector<Matrix> rails = {};                          // and on each rail
  std::vector<RankGroup> groups = {};                      // measured side by side
  // On every rank, if each port must carry what the GPUs nearest to it move: the bytes that this rank moved to and from
  // other hosts.
  struct Moved {
    double sent = 0, received = 0;
  };
  std::optional<Moved> moved = {};
  std::set<Fault> injected = {};  // filled by Context::inject
};

// Services that the worker provides to a case; null outside a run.
struct CaseServices {
  // Appends to a file below the run directory ("mllog/x.log"), or starts it over.
  std::function<void(const std::string& name, std::string_view text, bool truncate)> write_file = {};
  // Called before a fault is injected.
  std::function<void(Fault)> on_inject = {};
};

// Everything a case works with on one rank. Owned by the worker.
struct Context {
  Device& device;
  Communicator& comm;
  CaseInputs inputs = {};
  CaseOutputs outputs = {};
  CaseServices services = {};

  // Whether to break this now. Ask at the point of injection, on the rank that injects: a requested fault is
  // recorded as injected if this returned true and as not injected if nobody called it.
  bool inject(Fault fault);
};

// Collects the checks of one case.
class Checks {
 public:
  // Passes when value <= limit; a NaN fails. `culprits` of a check of the whole world; others are about their rank.
  void at_most(std::string name, double value, double limit, std::vector<std::string> detail = {},
               std::vector<Culprit> culprits = {});
  // Passes when `condition` holds.
  void that(std::string name, bool condition, std::vector<std::string> detail = {});
  const std::vector<Check>& all() const { return checks_; }

 private:
  std::vector<Check> checks_;
};

// Every rank calls prepare, setup, measure, verify and metrics in this order; the case is destroyed after its record is
// made. `assay bench` calls measure, verify and metrics several times on one case: each measure starts over.
class Case {
 public:
  virtual ~Case() = default;
  // Plans the case. Returns why it cannot run here (no such instruction set, no GPU): a value, never an exception. The
  // case is skipped if any rank returns a reason.
  virtual std::optional<std::string> prepare(Context&) { return std::nullopt; }
  // Allocates, fills, compiles, chooses; untimed. Fills in context.outputs as far as known.
  virtual void setup(Context&) = 0;
  // Calls exactly one form of the sampler, once.
  virtual void measure(Sampler&) = 0;
  // Checks the answer of the timed configuration, outside the timed region.
  virtual void verify(Checks&) = 0;
  // Figures from the samples; called on rank 0 only, with the slowest rank's times.
  virtual std::vector<Metric> metrics(const Measurement&) const = 0;
};

// Throughput or bandwidth: amount / seconds, with the interval of the times carried over.
Metric rate_metric(std::string name, double amount, std::string unit, const Measurement& measurement);
// The time of a repetition (latency, step_time), divided by its number of calls.
Metric time_metric(std::string name, const Measurement& measurement, double calls = 1);
// Any other figure, without an interval; nullopt: unknown.
Metric value_metric(std::string name, std::optional<double> value, std::string unit, Better better = Better::lower);

}  // namespace assay
