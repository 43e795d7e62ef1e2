// configs/gate.json: the tests of a gate, and which of them finds each kind of problem.
#pragma once

#include "harness/json/fwd.h"
#include "harness/machine/problem_kinds.h"

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::gate {

struct Code : ProblemKind {
  std::string test = "audit";  // that finds it
  // How --inject causes it: "files" of configs/gate-faults.json, a fault of `assay run --inject`, or one of the gate's
  // own tests ("hang", "flip", "full"). Absent: it cannot be caused.
  std::optional<std::string> inject = {};
  std::optional<Severity> policy = {};  // of every finding of this kind, by the site's policy
};

struct Test {
  std::string name;
  std::string plan;                      // whose cases are run; empty: a test of the gate itself
  std::string cases;                     // regular expression of their keys
  std::string device;                    // "cpu", "cuda" (each GPU, all at once), "host", "job" (all hosts of one)
  double seconds = 0;                    // that it usually takes
  bool shared = false;                   // its figure suffers if another job runs on this host
  bool alone = false;                    // its figure suffers if other GPUs are tested at the same time
  bool required = false;                 // without it the machine is not judged
  bool left_out = false;                 // by the profile: neither run nor missed
  std::string wrong, slow, hung, broke;  // ids of codes; empty if it cannot find that
  std::vector<std::pair<std::string, std::optional<std::string>>> finds = {};  // ids, each with Code::inject
};

// A moment to run a gate: its usual budget, and the tests that it runs.
struct Profile {
  std::string name;
  double budget = 0;                 // s
  std::set<std::string> tests = {};  // empty: all
};

struct Catalogue {
  std::vector<Code> codes;  // in the file's order
  std::vector<Test> tests;
  std::vector<Profile> profiles = {};

  // Leaves out the tests that the profile lacks, and returns it. Throws UsageError, with the nearest name, if there is
  // none of that name.
  const Profile& use_profile(const std::string& name);

  // Finds it by id; returns the one for anything unlisted if there is none.
  const Code& of(std::string_view id) const;
  // Finds it by id or code; null if there is none.
  const Code* find(std::string_view word) const;
  // The one that --inject shows. Throws UsageError for an unknown word, with the nearest, and for one that cannot be
  // caused.
  const Code& to_inject(const std::string& word) const;
  // Throws Error.
  const Test& test(std::string_view name) const;
  // Every code with what it means: a list of objects.
  Json codes_json() const;
  // Those that can run within `seconds`: the required ones first, then by what they find per second. Tests of GPUs take
  // as long as on one, since they run on all at once; without `gpus` there are none.
  std::vector<const Test*> choose(double seconds, bool gpus) const;
};

// The codes are those of the table, unless the file has its own; faults of files are in gate-faults.json beside it.
// Throws UsageError that lists every mistake.
Catalogue load_catalogue(const std::filesystem::path& file);

// The id of the code for problems that the catalogue does not list.
inline constexpr std::string_view unlisted = "unlisted";

}  // namespace assay::gate
