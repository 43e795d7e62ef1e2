// configs/gate.json: the tests of a gate, and the codes of what they find.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::gate {

enum class Severity { info, warning, fault };
std::string_view name_of(Severity severity);
Severity severity_from(std::string_view name);  // info for any other word

struct Code {
  std::string code;                    // ASSAY-GPU-001: never used for anything else
  std::string id;                      // of the audit's problem, or of the gate's own finding
  std::string action;                  // isolate, reset, monitor
  std::string meaning;                 // of the gate's own; of the audit's problems, the audit says it
  std::string test;                    // that finds it
  Severity at_most = Severity::fault;  // an audit may take more seriously what does not hinder a job
  // How --inject causes it: "files" of configs/gate-faults.json, a fault of `assay run --inject`, or one of the gate's
  // own tests ("hang", "flip", "full"). Absent: it cannot be caused.
  std::optional<std::string> inject;
};

struct Test {
  std::string name;
  std::string plan;                      // whose cases are run; empty: a test of the gate itself
  std::string cases;                     // regular expression of their keys
  std::string device;                    // "cpu", "cuda" (each GPU, all at once), or "host"
  double seconds = 0;                    // that it usually takes
  bool shared = false;                   // its figure suffers if another job runs on this host
  bool alone = false;                    // its figure suffers if other GPUs are tested at the same time
  bool required = false;                 // without it the machine is not judged
  std::string wrong, slow, hung, broke;  // ids of codes; empty if it cannot find that
};

struct Catalogue {
  std::vector<Code> codes;  // in the file's order
  std::vector<Test> tests;

  // By id; one for anything unlisted if there is none.
  const Code& of(std::string_view id) const;
  // By id or code; null if there is none.
  const Code* find(std::string_view word) const;
  // Throws Error.
  const Test& test(std::string_view name) const;
  // Those that can run within `seconds`: the required ones first, then by what they find per second. Tests of GPUs take
  // as long as on one, since they run on all at once; without `gpus` there are none.
  std::vector<const Test*> choose(double seconds, bool gpus) const;
};

// Throws UsageError that lists every mistake.
Catalogue load_catalogue(const std::filesystem::path& file);

// The id of the code for problems that the catalogue does not list.
inline constexpr std::string_view unlisted = "unlisted";

}  // namespace assay::gate
