// The result of one case, and its form on disk (schema 1). Unknown numbers are null there, never 0.
#pragma once

#include "harness/core/json_fwd.h"
#include "harness/record/metric.h"
#include "harness/record/shared_json.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay {

inline constexpr int record_schema = 1;

enum class Status { ok, skipped, failed, error };
std::string_view name_of(Status status);

struct RankResult {
  int rank = 0;
  std::string host;
  std::string device;
  std::optional<double> median;
  std::string uuid = {};              // of the rank's GPU; empty on a CPU
  std::string pci = {};               // its place on the bus
  std::string cpus = {};              // that it is bound to, "0-3,8"; empty: unknown
  std::optional<int> numa_node = {};  // of all these CPUs; absent when they span several, or it is unknown
  std::optional<double> pace = {};    // Measurement::rank_paces; in a world of several ranks
};

struct Samples {
  std::string unit = "s";
  std::vector<double> values;  // seconds a repetition; the slowest rank's
  std::vector<double> at;
  std::optional<std::string> series;  // path below the run directory when the list is long
  std::int64_t count = 0;             // of all samples, also those in the series file
  std::int64_t repetitions = 1;       // back-to-back calls a sample
  std::string stopped_by;
  std::vector<int> disturbed;
  std::vector<double> first_touch;  // repetitions before warm-up ended, reported apart
};

// What resume skips by and comparisons pair by.
struct Identity {
  std::string key;
  std::string device;
  int ranks = 1;
  int nodes = 1;
  std::vector<std::string> hosts;  // sorted, each once
  std::uint64_t seed = 0;

  // Equal for equal identities only.
  std::string text() const;
};

struct Record {
  std::string key;
  std::string family;
  SharedJson params;
  SharedJson protocol;  // Protocol::to_json
  std::uint64_t seed = 0;
  int attempt = 1;
  int world_ranks = 1;
  int world_nodes = 1;
  std::vector<RankResult> ranks;
  std::string device = "cpu";
  std::map<std::string, std::string> conditions;  // fixed by plan, user or hardware
  std::map<std::string, std::string> choices;     // found by a trial, a library or a kernel
  std::map<std::string, std::string> labels;      // remarks
  Status status = Status::ok;
  std::string reason;  // why skipped, failed or broken
  bool comparable = true;
  std::vector<std::string> flags;  // oversubscribed, disturbed, injected:crash, ...
  Samples samples;
  std::vector<Metric> metrics;
  std::vector<Check> checks;
  std::vector<std::pair<std::string, double>> spans;  // seconds by phase
  std::map<std::string, Series> telemetry;
  std::optional<Matrix> matrix;  // of a case that measures every pair
  std::string started;           // ISO 8601, UTC
  double seconds = 0;
  std::string log;  // tail of the workers' stderr when the case broke; absent when empty

  Identity identity() const;
  // A flag that fault injection left: such a record proves a check and is no measurement.
  bool injected() const;
  Json to_json() const;
  // Members that are absent take their defaults; unknown ones are ignored. Throws Error naming the member whose
  // type is wrong, and on a schema this build does not know.
  static Record from_json(const Json& json);
  // The same from JSON text of any origin; also throws "not JSON" and "nested deeper than 64". Equal parameters and
  // protocols come from the pool.
  static Record from_text(std::string_view text, JsonPool& pool);
};

}  // namespace assay
