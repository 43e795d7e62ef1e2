// The result of one case, and its form on disk (schema 2; schema 1 is read too). Unknown numbers are null, never 0.
#pragma once

#include "harness/core/words.h"
#include "harness/json/fwd.h"
#include "harness/json/shared.h"
#include "harness/record/failure.h"
#include "harness/record/metric.h"

#include <nlohmann/json.hpp>

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay {

class JsonValue;

inline constexpr int record_schema = 2;  // the schema in which records and run.json are written

// Throws Error, unless this build reads records and runs of this schema.
void check_schema(std::int64_t schema);

enum class Status { ok, skipped, failed, error };
constexpr auto words(Status) { return std::to_array<std::string_view>({"ok", "skipped", "failed", "error"}); }

struct RankResult {
  int rank = 0;
  std::string host;
  std::string device;
  std::optional<double> median;
  std::string uuid = {};              // the rank's GPU; empty on a CPU
  std::string pci = {};               // the GPU's bus address
  std::string nic = {};               // the ports nearest to the GPU, "mlx5_0:1"; empty: none, or unknown
  std::string cpus = {};              // it is bound to, "0-3,8"; empty: unknown
  std::optional<int> numa_node = {};  // the node of those CPUs; absent if they span several nodes, or it is unknown
  std::optional<double> pace = {};    // Measurement::rank_paces; only in a world of several ranks

  static void members(auto& self, auto& io) {
    io("rank", self.rank), io("host", self.host), io("device", self.device), io("median", self.median);
    io.sparse("uuid", self.uuid), io.sparse("pci", self.pci), io.sparse("nic", self.nic);
    io.null_if_empty("cpus", self.cpus), io("numa_node", self.numa_node), io.sparse("pace", self.pace);
  }
};

struct Samples {
  std::string unit = "s";
  std::vector<double> values;  // seconds per repetition, of the slowest rank
  std::vector<double> at;
  std::optional<std::string> series;  // path below the run directory, if the list is long
  std::int64_t count = 0;             // number of all samples, those in the series file included
  std::int64_t repetitions = 1;       // back-to-back calls per sample
  std::string stopped_by;
  std::vector<int> disturbed;
  std::optional<std::vector<int>> throttled;  // indices of samples during which a GPU was slowed down; absent: unknown
  std::vector<double> first_touch;            // repetitions during warm-up

  static void members(auto& self, auto& io) {
    io("unit", self.unit), io("values", self.values), io("at", self.at), io("series", self.series);
    io("count", self.count), io("repetitions", self.repetitions), io("stopped_by", self.stopped_by);
    io("disturbed", self.disturbed), io.sparse("throttled", self.throttled), io("first_touch", self.first_touch);
  }
};

// The CPU time that others took from the run in the timed window, in CPUs (means over the window), on its worst host.
struct OutsideCpu {
  struct Process {
    std::int64_t pid = 0;
    std::string name;
    double cpus = 0;

    static void members(auto& self, auto& io) { io("pid", self.pid), io("name", self.name), io("cpus", self.cpus); }
  };

  int usable = 0;                   // CPUs that the run's ranks may use on this host
  double seconds = 0;               // time that was watched: the timed window, up to a reading before and after it
  double cpus = 0;                  // CPUs used outside the run's process tree, of the CPUs of its ranks
  double steal = 0;                 // taken by the hypervisor there
  std::optional<double> throttled;  // held back by a quota of the run's cgroups; absent: unknown
  std::vector<Process> processes;   // processes that use at least 0.05 of `cpus`, busiest first; the rest is other
                                    // containers' or the kernel's
  std::string host;

  double lost() const { return cpus + steal + throttled.value_or(0); }
  static void members(auto& self, auto& io) {
    io("usable", self.usable), io("seconds", self.seconds), io("cpus", self.cpus), io("steal", self.steal);
    io("throttled", self.throttled), io("processes", self.processes), io("host", self.host);
  }
};

// Errors that a counter of a device counted while the case ran.
struct DeviceErrors {
  std::string host;
  std::string device;  // "eth0", "mlx5_0 port 1", a PCI address, "mc0"
  std::string name;    // "link_downed", "aer_fatal", "ce", "xid_79", ...: harness/machine/counters.h
  std::uint64_t count = 0;

  static void members(auto& self, auto& io) {
    io("host", self.host), io("device", self.device), io("name", self.name), io("count", self.count);
  }
};

// What crossed a port of InfiniBand or RoCE while the case ran.
struct PortTraffic {
  static constexpr double least_share = 0.8;

  std::string host;
  std::string device;  // "mlx5_0 port 1", as in DeviceErrors
  double sent = 0;     // bytes, headers included
  double received = 0;
  // op=rails: the least, of both directions, of what crossed it over what the GPUs that it is nearest to sent or
  // received. Below `least_share` the port did not carry its rail. Absent: not judged.
  std::optional<double> share = {};

  bool too_little() const { return share && *share < least_share; }
  static void members(auto& self, auto& io) {
    io("host", self.host), io("device", self.device), io("sent", self.sent), io("received", self.received);
    io.sparse("share", self.share);
  }
};

// Which case this is: resume skips by it, comparisons pair by it.
struct Identity {
  std::string key;
  std::string device;
  int ranks = 1;
  int nodes = 1;
  std::vector<std::string> hosts = {};  // sorted, without duplicates
  std::uint64_t seed = 0;

  // The same case, whichever hosts it runs on.
  Identity on_any_host() const;
  // The same case as a plan names it, before ranks are placed: neither hosts nor nodes.
  Identity unplaced() const;
  // Differs for different identities.
  std::string text() const;
  auto operator<=>(const Identity&) const = default;
};

// The rank that is slow by itself, not by waiting for others.
struct SlowRank {
  int rank = 0;
  double ratio = 1;  // its time as a multiple of the others'

  static void members(auto& self, auto& io) { io("rank", self.rank), io("ratio", self.ratio); }
};

struct Record {
  int schema = record_schema;  // the schema of the text that it was read from
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
  Attributes conditions;  // fixed by plan, user or hardware
  Attributes choices;     // made by a trial, a library or a kernel: implementation, isa, ...
  Attributes labels;      // remarks, and the labels that the user gave
  Status status = Status::ok;
  std::string reason;              // why skipped, failed or broken, for people
  std::optional<Failure> failure;  // of a record that failed or broke; one that is read always has it
  bool comparable = true;
  std::vector<std::string> flags;  // remarks; those that programs read are in flags.h
  Samples samples;
  std::vector<Metric> metrics;
  std::vector<Check> checks;
  std::optional<SlowRank> slow_rank;                  // absent: none
  std::vector<std::pair<std::string, double>> spans;  // seconds by phase
  std::map<std::string, Series> telemetry;
  std::optional<OutsideCpu> outside_cpu;  // absent: unknown
  std::vector<DeviceErrors> errors;       // on all its hosts; empty: none, or no device counts them
  std::vector<PortTraffic> ports;         // of a case over several hosts; empty: no port has such counters
  std::optional<Matrix> matrix;           // figures of a case that measures every pair
  std::vector<Matrix> rails;              // on each rail, of which `matrix` has the slowest of every two hosts
  std::vector<RankGroup> groups;          // of a case that measures groups of hosts side by side
  std::string started;                    // ISO 8601, UTC
  double seconds = 0;
  std::string log;  // tail of the workers' stderr if the case broke

  Identity identity() const;
  // The first of that name among conditions, choices and labels.
  std::optional<std::string> attribute(const std::string& name) const;
  // Conditions, choices and labels together.
  Attributes attributes() const;
  // The host of a rank; empty if the record does not say.
  std::string host_of(int rank) const;
  // Whether a fault was injected: such a record proves that a check works and is not a measurement.
  bool injected() const;
  Json to_json() const;
  // Reads untrusted text: absent members take their defaults, unknown ones are ignored. Throws Error: "not JSON",
  // "nested deeper than 64", a schema this build does not know, a member whose type is wrong. Equal parameters and
  // protocols share one value of the pool.
  static Record from_text(std::string_view text, JsonPool& pool);

  static void members(auto& self, auto& io) {
    io("schema", self.schema), io("key", self.key), io("family", self.family), io("params", self.params);
    io("protocol", self.protocol), io("seed", self.seed), io("attempt", self.attempt);
    io.group("world", [&](auto& world) { world("ranks", self.world_ranks), world("nodes", self.world_nodes); });
    io("ranks", self.ranks), io("device", self.device), io("conditions", self.conditions);
    io("choices", self.choices), io("labels", self.labels), io("status", self.status), io("reason", self.reason);
    io.sparse("failure", self.failure);
    io("comparable", self.comparable), io("flags", self.flags), io("samples", self.samples);
    io("metrics", self.metrics), io("checks", self.checks), io.sparse("slow_rank", self.slow_rank);
    io("spans", self.spans);
    io("telemetry", self.telemetry), io.sparse("outside_cpu", self.outside_cpu);
    io.sparse("errors", self.errors), io.sparse("ports", self.ports), io.sparse("matrix", self.matrix);
    io.sparse("rails", self.rails), io.sparse("groups", self.groups), io("started", self.started);
    io("seconds", self.seconds), io.sparse("log", self.log);
  }
};

// A record as a part of other text, with the errors of from_text.
void read(const JsonValue& value, Record& to);

}  // namespace assay
