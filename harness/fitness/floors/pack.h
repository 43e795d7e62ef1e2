// A pack: finished runs, the floors they were judged by and the verdict, in one tar archive from which anyone can
// recompute that verdict. docs/floors.md lists its files.
#pragma once

#include "harness/fitness/floors/check.h"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace assay::fitness {

// A verdict in all forms that `assay check` writes.
struct VerdictFiles {
  ExitCode code = ExitCode::no_data;
  std::string text, json, junit;
};

// The program that judged.
struct Judge {
  std::string version, build_id;
  std::string sha256;  // of its file

  static void members(auto& self, auto& io) {
    io("version", self.version), io("build_id", self.build_id), io("sha256", self.sha256);
  }
};

struct PackedRun {
  std::string name;                          // of its directory, without the path
  std::map<std::string, std::string> files;  // run.json, records.jsonl and what the records name in series/
};

// The schema of new packs. Packs of schema 1 were judged without CheckRules::whole_runs.
inline constexpr int pack_schema = 2;

struct Pack {
  int schema = pack_schema;
  std::vector<PackedRun> runs;  // in the order of their directories' paths
  std::string floors_name;      // "ci-floors.json"
  std::string floors;           // its text
  bool injected = false;        // whether records with injected faults count as measurements
  Judge judge;
  VerdictFiles verdict;
};

// The rules by which packs of this schema were judged.
CheckRules rules_of(int schema);

// A run directory's files, with secrets masked. Throws UsageError if it holds no run, Error if a file cannot be read.
PackedRun pack_run(const std::filesystem::path& dir);

// The runs of a pack, each record with all its samples. Throws Error, which begins with `name`, for a bad file.
std::vector<RunData> runs_of(const Pack& pack, const std::string& name);

// The archive; equal packs give equal bytes. Throws Error if a name cannot stand in it.
std::string pack_bytes(const Pack& pack);

// From untrusted bytes, of which pack_bytes() gives every one again. Throws UsageError if they are no pack at all, and
// Error that names the changed file or the first changed byte. `name` is what messages call the archive.
Pack parse_pack(std::string_view bytes, const std::string& name);

struct Recomputed {
  std::size_t judged = 0;        // figures that floors judged
  std::size_t from_samples = 0;  // of those, computed again from their samples
  std::set<std::string> others;  // the metrics of the rest
};
// Computes each figure whose work is recorded (Metric::work) again from its samples. Throws Error that names the record
// and the metric if value or interval differ from the recorded ones.
Recomputed recompute(const CheckResult& result);

// Throws Error that names the differing file, and both programs if they are not one, unless `now` is the packed
// verdict.
void require_same_verdict(const Pack& pack, const VerdictFiles& now, const Judge& judge, const std::string& name);

}  // namespace assay::fitness
