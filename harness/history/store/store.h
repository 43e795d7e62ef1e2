// History in one SQLite file: the figures of all runs, one series each, and what people decided about them. Several
// processes may write at once; a kill at any moment loses and doubles nothing.
#pragma once

#include "harness/core/error.h"
#include "harness/core/words.h"
#include "harness/history/night.h"
#include "harness/record/metric.h"
#include "harness/record/run_dir.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::store {

using history::Night;

// The file is damaged, or the disk is full or gone: exit code 4.
class StoreError : public Error {
 public:
  using Error::Error;
};

// Two figures belong to the same series if these are equal. Choices of a trial, a library or a kernel are not part of
// it: a library that falls back to another instruction set is an event in a series, not a new series.
struct SeriesIdentity {
  std::string machine;  // Machine::name
  std::string key;      // the case's key
  std::string device;
  int ranks = 1;
  int nodes = 1;
  std::string conditions;  // "name=value" lines, sorted
  std::string metric;
  std::string unit;
  Better better = Better::higher;
  std::string protocol;  // the protocol's hash
  std::string family;

  auto operator<=>(const SeriesIdentity&) const = default;
  static void members(auto& self, auto& io) {
    io("machine", self.machine), io("key", self.key), io("device", self.device), io("ranks", self.ranks);
    io("nodes", self.nodes), io("conditions", self.conditions), io("metric", self.metric), io("unit", self.unit);
    io("better", self.better), io("protocol", self.protocol), io("family", self.family);
  }
};

struct Point {
  std::int64_t run = 0;  // Run::number
  Night night = 0;
  double log = 0;            // natural logarithm of the figure, which is above 0
  float within = 0;          // half the width of the figure's 95 % interval, as a share of the figure; NaN: unknown
  std::int32_t choices = 0;  // index of Contents::facts: the choices of this run (implementation, isa)
  bool disturbed = false;    // the figure is a lower bound
  bool weekly = false;       // the median of a week, made by compact(); not used for detection
};

struct Series {
  std::int64_t number = 0;
  SeriesIdentity identity;
  std::string name;    // the name for people: alias, else case title and metric
  std::string former;  // case title and metric before an alias; empty without one
  std::optional<std::int64_t>
      successor_of;           // number of the series that this one continues: an alias, or another protocol
  std::vector<Point> points;  // by night, then by start of the run
};

using Facts = std::map<std::string, std::string>;  // "gpu.driver" -> "580.65.06"
// The fact of this name; empty if there is none.
std::string fact_of(const Facts& facts, const std::string& name);
// The processes that took CPU time from most of a run's cases, and the median share of the run's CPUs that they took,
// rounded to a power of two, so that the usual background differs from a competitor. This is the fact outside_cpu.
struct Others {
  std::string names;  // "python3, steal"
  double share = 0;

  std::string text() const;  // "python3 (50 %)"; "none" without names
  // Parses text(). A text without a share, as an older store has it, gets the smallest share.
  static Others of(std::string_view text);
};

// The facts of the environment in run.json or of `assay env --json`, without facts that change from minute to minute
// (load, free memory, error counts). A list, such as that of GPUs, gives one fact for each member: the text that all
// entries share, else all texts.
Facts environment_facts(const Json& environment);

struct Run {
  std::int64_t number = 0;
  std::string id;  // as in run.json
  std::string started;
  Night night = 0;
  std::string machine;
  std::string hardware;    // hash of its GPUs' uuids; a different hash means replaced hardware; empty: unknown
  std::int32_t facts = 0;  // index of Contents::facts: environment, labels, versions
  std::string commit;      // empty: unknown
  std::string branch;
  std::vector<std::pair<std::string, std::string>> broken;  // cases that failed or broke: key and "failed: reason"
  std::vector<std::string> held;  // keys of the cases that were ok here and are in `broken` of any run
};

enum class DecisionKind { acknowledge, mute, unmute, expect };
constexpr auto words(DecisionKind) { return std::to_array<std::string_view>({"ack", "mute", "unmute", "expect"}); }

struct Decision {
  std::string uuid;
  DecisionKind kind = DecisionKind::acknowledge;
  std::string target;  // an event's id, or a pattern of series names
  std::string reason, by;
  std::string at;                    // ISO 8601, UTC
  std::optional<std::string> until;  // when a mute ends

  static void members(auto& self, auto& io) {
    io("id", self.uuid), io("decision", self.kind), io("target", self.target), io("reason", self.reason);
    io("by", self.by), io("at", self.at), io("until", self.until);
  }
};

// An event as it was first reported; only `state` and `document` change.
struct StoredEvent {
  std::string id;
  std::string state;
  std::string document;  // JSON

  static void members(auto& self, auto& io) {
    io("id", self.id), io("state", self.state), io("document", self.document);
  }
};

// A night that is a commit.
struct CommitNight {
  std::string commit;
  Night day = 0;  // of its last run
};

struct Contents {
  std::vector<Series> series;  // sorted by number
  std::vector<Run> runs;       // sorted by start, then id
  std::vector<Facts> facts;
  std::vector<Decision> decisions;  // sorted by time
  std::vector<StoredEvent> events;
  std::vector<CommitNight>
      commits;  // if nights are commits (history/series/order.h): that of night n is commits[n - 1]
  // Bumped whenever past runs change; analyses of older revisions are stale.
  std::int64_t revision = 0;
};

struct Added {
  bool fresh = false;        // false: the same run was there already
  std::size_t points = 0;    // new or changed
  std::size_t left_out = 0;  // records with faults injected, not comparable, or without a figure
};

struct AddOptions {
  std::optional<std::string> at;     // ISO 8601, UTC; replaces the run's start
  std::optional<Facts> environment;  // from `assay env --json`; replaces the run's environment
  bool machine_by_class = false;     // counts machines of one kind as one machine (cloud pools)
  std::string branch;
  std::string (*title)(const Record&) = nullptr;  // the name of a case for people; null: its key
};

// Throws UsageError for a path that cannot be used and a store of a newer schema (which stays untouched), StoreError
// for a damaged file, a full disk and a store that stays locked for a minute.
class Store {
 public:
  static Store open(const std::filesystem::path& file);  // creates the store if it does not exist
  static Store open_existing(
      const std::filesystem::path& file);  // read-only if it may not be written; UsageError if there is none
  Store(Store&&) noexcept;
  ~Store();

  // Adds a run in one transaction. A run that was resumed replaces its earlier version, which has the same id. A run
  // with
  // --each-host must be split by host first; each part is named by run and host.
  Added add(const RunData& run, const AddOptions& options);
  // Adds all runs in one transaction.
  std::vector<Added> add(std::span<const RunData> runs, const AddOptions& options);
  // Adds everything that only `other` has. Merging in any order gives stores with equal exports. Returns how many runs.
  std::size_t merge(const std::filesystem::path& other);
  // Joins the past of `from` to `to`: one series with the name of `to`.
  void alias(const std::string& from, const std::string& to);
  // Replaces points of nights before `keep` by weekly medians. Returns how many points were removed.
  std::size_t compact(Night keep);

  // Reads everything but the points of side branches; `branch` adds the points of one of these.
  Contents read(std::optional<std::string> branch = {}) const;
  Contents read_all() const;                // every branch
  std::optional<Night> last_night() const;  // on any branch; absent: there is no run
  void decide(const Decision& decision);
  void save_events(std::span<const StoredEvent> events);

  // How its nights are judged: a text by name; empty if it was never set. set() does nothing in a store that may not be
  // written.
  std::string setting(std::string_view name) const;
  void set(std::string_view name, const std::string& value);

  // The analysis of this name that an earlier check kept; empty if there is none for this revision.
  std::optional<std::string> cached(std::string_view name, std::int64_t revision) const;
  void cache(std::string_view name, std::int64_t revision, std::string_view bytes);

 private:
  struct State;
  explicit Store(std::unique_ptr<State> state);
  Contents read_those(const std::function<bool(const std::string& branch)>& wanted) const;
  std::unique_ptr<State> state_;
};

// Copies every row that can still be read from a damaged store to a new one; returns lines that name what was lost.
std::vector<std::string> salvage(const std::filesystem::path& damaged, const std::filesystem::path& to);

}  // namespace assay::store
