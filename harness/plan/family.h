// A family of cases, from which plans are expanded.
#pragma once

#include "harness/plan/case.h"
#include "harness/plan/params.h"

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// The cost of one repetition of a case per rank. It is computed without measuring, and --dry-run prints it.
struct Estimate {
  double memory_bytes = 0;  // allocated while the case runs, with all rotation sets if known
  double bytes = 0;         // moved per repetition
  double flops = 0;
  double items = 0;
  double seconds =
      0;  // duration of a sustained window, or of another case whose duration is fixed; 0: the protocol's limit
};

struct Family {
  std::string name = {};
  std::string summary = {};     // one line
  bool workload = false;        // a training family
  bool communicates = false;    // ranks exchange data; implied by `workload`
  bool adds_up_slices = false;  // of models that do not fit whole; its parameters are a training family's
  Schema params = {};
  Estimate (*estimate)(const Params&, const World&) = nullptr;
  std::unique_ptr<Case> (*make)(const Params&) = nullptr;
  std::vector<DeviceKind> devices = {};  // kinds of device that it can run on
  // Replaces words such as "recipe" by the values that they mean, before the key is made; null: there are no such
  // words.
  void (*complete)(Params&) = nullptr;
  // Environment variables that the workers of a case start with (a library's switch); null: none.
  std::map<std::string, std::string> (*environment)(const Params&) = nullptr;
  // Why these values do not go together (heads that do not divide, ...); null if any do.
  std::optional<std::string> (*conflict)(const Params&, const World&) = nullptr;
  // Faults that its cases check for, in addition to those that can be injected into any case (can_inject).
  std::vector<Fault> faults = {};
  // Whether a case is the work of one rank, which uses every GPU itself, whatever --ranks is; null: no case is.
  bool (*takes_one_rank)(const Params&) = nullptr;
  // The case on a GPU; null: `make` serves every device.
  std::unique_ptr<Case> (*make_cuda)(const Params&) = nullptr;
};

// `make` of a case whose constructor takes the parameters.
template <typename T>
std::unique_ptr<Case> make_case_of(const Params& params) {
  return std::make_unique<T>(params);
}

std::map<std::string, std::string> environment_of(const Family& family, const Params& params);
// Whether this family runs at several world sizes; for others, more ranks would only repeat the same measurement.
bool runs_at_world_sizes(const Family& family);

// Whether the fault can be injected into a case of this family on that many ranks. Crash, hang, oom, slow-rank and
// oversubscribe fit any case; faults of communication need two ranks.
bool can_inject(const Family& family, Fault fault, int ranks);

const Family* find_family(std::span<const Family> families, std::string_view name);
// The case of these parameters on a device of this kind.
std::unique_ptr<Case> make_case(const Family& family, const Params& params, DeviceKind device);
// Why this case cannot run on a device of this kind, judged by its family and parameters alone.
std::optional<std::string> lacking_on(const Family& family, const Params& params, DeviceKind device);

}  // namespace assay
