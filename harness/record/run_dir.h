// The run directory: run.json, records.jsonl, series/, mllog/. The only code that knows its format.
#pragma once

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/record/record.h"
#include "harness/record/run_lock.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay {

inline constexpr std::size_t max_line_bytes = 64u << 20;  // longest line of records.jsonl

// The run directory cannot be written: usually a full disk, or it is gone. The run must stop.
class RunDirError : public Error {
 public:
  using Error::Error;
};

// Writes one run. A record is one line, written and synced when its case ends; run.json is replaced atomically.
// Throws UsageError while opening (not writable, not empty, locked by another supervisor) and RunDirError afterwards.
// Opening cuts off a last line that a kill left incomplete.
class RunWriter {
 public:
  static RunWriter create(const std::filesystem::path& dir, const Json& run);
  static RunWriter resume(const std::filesystem::path& dir);
  const std::filesystem::path& dir() const { return dir_; }
  // Long sample lists (over 200) are written to series/ before the line.
  void append(Record record);
  void update_run(const Json& run);
  // Appends text to the file `name` below mllog/, or starts it over; synced. Throws Error for any other name.
  void write_file(const std::string& name, std::string_view text, bool replace);
  // A heartbeat for other hosts; call it every few seconds.
  void refresh_lock() { lock_.refresh(); }

 private:
  explicit RunWriter(std::filesystem::path dir);

  std::filesystem::path dir_;
  RunLock lock_;
  Descriptor records_fd_;
};

// A finished run at once: a new directory (or an empty one), run.json last. `fill` passes each record to `add` and
// returns run.json, so that not all records need be in memory. Durable after sync_file_system(), so that thousands take
// seconds. Throws UsageError as RunWriter does, RunDirError if it cannot be written, and what `fill` throws.
void write_run(const std::filesystem::path& dir,
               const std::function<Json(const std::function<void(Record)>& add)>& fill);

// A file below series/.
struct SeriesFile {
  int schema = record_schema;
  std::string key;
  int attempt = 1;
  std::string unit;
  std::vector<double> values, at;

  static void members(auto& self, auto& io) {
    io("schema", self.schema), io("key", self.key), io("attempt", self.attempt), io("unit", self.unit);
    io("values", self.values), io("at", self.at);
  }
};

// One run as read: bad lines are listed, the rest is used.
struct RunData {
  std::filesystem::path dir;
  Json run;
  std::vector<Record> records;           // every attempt, in file order
  std::vector<int> lines;                // line number of each record in records.jsonl, from 1
  std::optional<Ended> ended;            // if it ended early, or went on without hosts
  std::vector<std::string> problems;     // "records.jsonl line 7: not JSON"
  std::optional<std::uint64_t> content;  // hash of both files, in any order of lines; absent if not read from files

  // The last attempt of each identity, in order of first appearance.
  std::vector<Record> final_records() const;
  // The same without copies.
  std::vector<const Record*> last_attempts() const;
};

// A record's series file is not there.
class MissingSeries : public Error {
 public:
  using Error::Error;
};

// Throws UsageError if the directory holds no run, or its schema is not known; Error, which names the file, if a file
// cannot be read or a line is too long for a record.
RunData read_run(const std::filesystem::path& dir);
// Many runs for reports, on all cores, in the given order, without what no report reads: a plan's cases keep key, ranks
// and seed, and records keep sensors in Hz, W and J. Throws what reading the first bad run throws.
std::vector<RunData> read_runs(const std::vector<std::filesystem::path>& dirs);
// The text of run.json. Throws UsageError if there is none, Error if it cannot be read.
std::string read_run_json(const std::filesystem::path& dir);
// A run from the text of its files, which `file` gives by their names below the directory: as read_runs() reads it, but
// each record has all its samples. `dir` is only its name. Throws UsageError for a bad run.json, Error for a bad
// series, and what `file` throws.
RunData run_of_files(const std::filesystem::path& dir,
                     const std::function<const std::string&(const std::string& name)>& file);
// Every sample of a record, from its line or its series file. Throws MissingSeries, and Error if it cannot be read.
std::vector<double> all_samples(const RunData& run, const Record& record);
// The same with the time of each in seconds since the record's start; `at` is empty if unknown.
std::pair<std::vector<double>, std::vector<double>> timed_samples(const RunData& run, const Record& record);

}  // namespace assay
