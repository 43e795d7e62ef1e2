// The run directory: run.json, records.jsonl, series/, mllog/. The only code that knows its format.
#pragma once

#include "harness/core/error.h"
#include "harness/record/record.h"
#include "harness/record/run_lock.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay {

// The run directory takes nothing more: a full disk, mostly, or it has gone. Whatever it was for, the run must stop.
class RunDirError : public Error {
 public:
  using Error::Error;
};

// Writes one run. A record is one line, written and synced when its case ends; run.json is replaced atomically.
// Throws UsageError while opening (not writable, not empty, locked by another supervisor) and RunDirError afterwards. A
// torn last line, left by a kill, is cut off on open.
class RunWriter {
 public:
  static RunWriter create(const std::filesystem::path& dir, const Json& run);
  static RunWriter resume(const std::filesystem::path& dir);
  RunWriter(RunWriter&&) noexcept;
  RunWriter& operator=(RunWriter&&) noexcept;
  ~RunWriter();

  const std::filesystem::path& dir() const { return dir_; }
  // Long sample lists (over 200) go to series/ first; the line follows.
  void append(Record record);
  void update_run(const Json& run);
  // Adds text to the file `name` below mllog/, or starts it anew; synced. Throws Error on any other name.
  void write_file(const std::string& name, std::string_view text, bool anew);
  // Says to other hosts that this run goes on; to be called every few seconds.
  void refresh_lock() { lock_.refresh(); }

 private:
  explicit RunWriter(std::filesystem::path dir);

  std::filesystem::path dir_;
  RunLock lock_;
  int records_fd_ = -1;
};

// One run as read: bad lines are counted and named, the rest is used.
struct RunData {
  std::filesystem::path dir;
  Json run;
  std::vector<Record> records;        // every attempt, in file order
  std::vector<int> lines;             // where each stands in records.jsonl, from 1
  std::vector<std::string> problems;  // "records.jsonl line 7: not JSON"
  std::optional<std::uint64_t>
      content;  // hash of both files, whatever the order of lines; absent in runs that were not read from files

  // The last attempt of each identity, in order of first appearance.
  std::vector<Record> final_records() const;
};

// Throws UsageError when the directory holds no run, or its schema is not known.
RunData read_run(const std::filesystem::path& dir);
// Many runs for reports, on all cores, in the order given, without what no report reads: the cases of a plan keep their
// key, ranks and seed, records their sensors in Hz, W and J. Throws what reading the first bad one throws.
std::vector<RunData> read_runs(const std::vector<std::filesystem::path>& dirs);
// Every sample of a record, from its line or its series file. Throws Error when the file cannot be read.
std::vector<double> all_samples(const RunData& run, const Record& record);
// The same with the seconds since the record's start at which each was taken; `at` is empty where that is unknown.
std::pair<std::vector<double>, std::vector<double>> timed_samples(const RunData& run, const Record& record);

}  // namespace assay
