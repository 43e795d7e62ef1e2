// What each host's watcher saw of a job on several hosts, as files, and all of them together.
#pragma once

#include "harness/sensors/job_sensor.h"
#include "harness/watch/diagnosis.h"
#include "harness/watch/record.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace assay::watch {

inline constexpr const char* part_file = "watch.json";  // in the run directory of each watcher
inline constexpr int part_schema = 1;

struct RankPart {
  int rank = 0, world = 1, threads = 1, workers = 0;
  std::string torch, dtype;
  bool cuda = false, gpu_parts = false;
  std::int64_t first = 0;  // the number of the first step that is kept
  // Of each step 12 numbers, in the order of Step.
  std::vector<std::vector<double>> steps = {};
  std::string trace = {}, no_trace = {};  // its file in the run directory, or why there is none

  static void members(auto& self, auto& io) {
    io.required("rank", self.rank), io("world", self.world), io("threads", self.threads), io("workers", self.workers);
    io("torch", self.torch), io("dtype", self.dtype), io("cuda", self.cuda), io("gpu_parts", self.gpu_parts);
    io("first", self.first), io("steps", self.steps), io("trace", self.trace), io("no_trace", self.no_trace);
  }
};

struct FoundPart {
  std::string rule, says, change;
  double gain = 1;

  static void members(auto& self, auto& io) {
    io("rule", self.rule), io("says", self.says), io("change", self.change), io("gain", self.gain);
  }
};

struct HostPart {
  int schema = part_schema;
  std::string name, host, command, started_utc, problem;
  double started = 0, seconds = 0;  // on that host's monotonic clock
  std::optional<double> items, flops, peak;
  std::string unit, peak_source;
  double user = 0, system = 0;  // CPU seconds
  std::optional<double> memory, read, written;
  std::int64_t threads = 0;
  int gpus = 0;
  std::vector<RankPart> ranks = {};
  std::vector<FoundPart> found = {};
  std::filesystem::path run = {};  // that it was read from

  static void members(auto& self, auto& io) {
    io.required("schema", self.schema), io("name", self.name), io("host", self.host), io("command", self.command);
    io("started_utc", self.started_utc), io("problem", self.problem), io("started", self.started);
    io("seconds", self.seconds), io("items", self.items), io("flops", self.flops), io("unit", self.unit);
    io("peak", self.peak), io("peak_source", self.peak_source), io("user", self.user), io("system", self.system);
    io("memory", self.memory), io("read", self.read), io("written", self.written), io("threads", self.threads);
    io("gpus", self.gpus), io("ranks", self.ranks), io("found", self.found);
  }
};

// Returns what this host saw; of each rank the last 4,096 steps. `traces` have been kept.
HostPart part_of(const WatchRequest& request, const Seen& seen, const std::vector<RankSteps>& steps,
                 const Traces& traces);
void write_part(const std::filesystem::path& run, const HostPart& part);
// Throws UsageError that names the file if it is none.
HostPart read_part(const std::filesystem::path& run);

// The job over all its hosts: steps and ranks together; what depends on a host's machine is that host's finding. Throws
// UsageError if a rank is in two of them, or they are of worlds of different size.
struct Joined {
  WatchRequest request;
  Seen seen;
  std::vector<std::string> hosts;
  std::vector<int> missing;  // ranks that none of them saw
  Traces traces;
  std::int64_t begin = 0;  // the first step that every rank has kept
};
Joined join(const std::vector<HostPart>& parts);
// Copies the traces into the run, compressed. Those that cannot be kept are missing afterwards. Never throws.
void keep_traces(const std::filesystem::path& run, const TraceReader& reader, Traces& traces);

}  // namespace assay::watch
