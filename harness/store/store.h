// History in one SQLite file: the figures of all runs, one series each, and what people decided about them. Several
// processes may write at once; a kill at any moment loses and doubles nothing.
#pragma once

#include "harness/core/error.h"
#include "harness/record/metric.h"
#include "harness/record/run_dir.h"

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

using Night = std::int32_t;  // days since 1970-01-01, UTC
// Of a moment "2026-01-31T12:00:00Z"; absent for any other text.
std::optional<Night> night_of(const std::string& moment);

// The file is damaged, or the disk is full or gone: exit code 4.
class StoreError : public Error {
 public:
  using Error::Error;
};

// What makes two figures the same series. What a trial, a library or a kernel chose is not part of it: a library that
// falls back to another instruction set is an event in a series, not a new series.
struct Identity {
  std::string machine;  // Machine::name
  std::string key;      // of the case
  std::string device;
  int ranks = 1;
  int nodes = 1;
  std::string conditions;  // "name=value" lines, sorted
  std::string metric;
  std::string unit;
  Better better = Better::higher;
  std::string protocol;  // its hash
  std::string family;

  auto operator<=>(const Identity&) const = default;
};

struct Point {
  std::int64_t run = 0;  // Run::number
  Night night = 0;
  double log = 0;            // natural logarithm of the figure, which is above 0
  float within = 0;          // half the 95 % interval's width of the figure, as a share of it; NaN: unknown
  std::int32_t choices = 0;  // index of Contents::facts: what was chosen in this run (implementation, isa)
  bool disturbed = false;    // the figure is a lower bound
  bool weekly = false;       // the median of a week, made by compact(): not for detection
};

struct Series {
  std::int64_t number = 0;
  Identity identity;
  std::string name;                          // what people call it: alias, else case title and metric
  std::string former;                        // case title and metric before an alias; empty without one
  std::optional<std::int64_t> successor_of;  // a series that this one continues: an alias, or another protocol
  std::vector<Point> points;                 // by night, then by start of the run
};

using Facts = std::map<std::string, std::string>;  // "gpu.driver" -> "580.65.06"
// Empty if it is not there.
std::string fact_of(const Facts& facts, const std::string& name);
// What took CPU time from most of a run's cases, and the median share of the run's CPUs that they lost, to the nearest
// power of two, so that the usual background differs from a competitor: the fact outside_cpu.
struct Others {
  std::string names;  // "python3, steal"
  double share = 0;

  std::string text() const;  // "python3 (50 %)"; "none" without names
  // Of a text that gives no share (an older store's) the share is the smallest.
  static Others of(std::string_view text);
};

// Of the environment in run.json or of `assay env --json`, without what changes from minute to minute (load, free
// memory, error counts). GPUs and other lists give one fact per member: the text that all share, else all of them.
Facts environment_facts(const Json& environment);

struct Run {
  std::int64_t number = 0;
  std::string id;  // of run.json
  std::string started;
  Night night = 0;
  std::string machine;
  std::string hardware;    // hash of its GPUs' uuids: another one is replaced hardware; empty: unknown
  std::int32_t facts = 0;  // index of Contents::facts: environment, labels, versions
  std::string commit;      // empty: unknown
  std::string branch;
  std::vector<std::pair<std::string, std::string>> broken;  // cases that failed or broke: key and "failed: reason"
  std::vector<std::string> held;  // keys of cases that were ok, of those that are in `broken` of any run
};

enum class DecisionKind { acknowledge, mute, unmute, expect };

struct Decision {
  std::string uuid;
  DecisionKind kind = DecisionKind::acknowledge;
  std::string target;  // an event's id, or a pattern of series names
  std::string reason, by;
  std::string at;                    // ISO 8601, UTC
  std::optional<std::string> until;  // of a mute
};

// An event as it was first reported; only `state` and `document` change.
struct StoredEvent {
  std::string id;
  std::string state;
  std::string document;  // JSON
};

struct Contents {
  std::vector<Series> series;  // by number
  std::vector<Run> runs;       // by start, then id
  std::vector<Facts> facts;
  std::vector<Decision> decisions;  // by time
  std::vector<StoredEvent> events;
  // Counts up with every change of runs that is not at the end: an analysis of an older count is to be done again.
  std::int64_t revision = 0;
};

struct Added {
  bool fresh = false;        // false: the same run was there already
  std::size_t points = 0;    // new or changed
  std::size_t left_out = 0;  // records with faults injected, not comparable, or without a figure
};

struct AddOptions {
  std::optional<std::string> at;     // ISO 8601, UTC: instead of the run's start
  std::optional<Facts> environment;  // of `assay env --json`: instead of the run's
  bool machine_by_class = false;     // cloud pools: machines of one kind are one
  std::string branch;
  std::string (*title)(const Record&) = nullptr;  // what people call a case; null: its key
};

// Throws UsageError for a path that cannot be used and a store of a newer schema (which stays untouched), StoreError
// for a damaged file, a full disk and one that stays locked for a minute.
class Store {
 public:
  static Store open(const std::filesystem::path& file);           // creates it if it is not there
  static Store open_existing(const std::filesystem::path& file);  // read and write; UsageError if it is not there
  Store(Store&&) noexcept;
  ~Store();

  // One transaction. A run that is there already (by its id) is replaced by what it has become, if it was resumed. With
  // --each-host, a run is to be split by host before; each part is named by run and host.
  Added add(const RunData& run, const AddOptions& options);
  // All of them in one transaction.
  std::vector<Added> add(std::span<const RunData> runs, const AddOptions& options);
  // What `other` has and this has not. Merging in any order gives stores of equal exports.
  std::size_t merge(const std::filesystem::path& other);
  // `to` is continued by `from`'s past: one series under the name of the new one.
  void alias(const std::string& from, const std::string& to);
  // Points of nights before `keep` become weekly medians. Returns how many points went.
  std::size_t compact(Night keep);

  // All but the points of other branches than the main ones; `branch` adds those of one.
  Contents read(std::optional<std::string> branch = {}) const;
  Contents read_all() const;                // of every branch
  std::optional<Night> last_night() const;  // of any branch; absent: there is no run
  void decide(const Decision& decision);
  void save_events(std::span<const StoredEvent> events);

  // Analysis kept from one check to the next, by name; empty if there is none for this revision.
  std::optional<std::string> cached(std::string_view name, std::int64_t revision) const;
  void cache(std::string_view name, std::int64_t revision, std::string_view bytes);

 private:
  struct State;
  explicit Store(std::unique_ptr<State> state);
  Contents read_those(const std::function<bool(const std::string& branch)>& wanted) const;
  std::unique_ptr<State> state_;
};

// Copies every row that can still be read from a damaged store to a new one; returns lines that say what was lost.
std::vector<std::string> salvage(const std::filesystem::path& damaged, const std::filesystem::path& to);

}  // namespace assay::store
