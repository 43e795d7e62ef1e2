// A family: what cases are expanded from.
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

// What one repetition of a case costs a rank; pure arithmetic, printed by --dry-run.
struct Estimate {
  double memory_bytes = 0;  // held while the case runs, all rotation sets included where they can be known
  double bytes = 0;         // moved a repetition
  double flops = 0;
  double items = 0;
  double seconds = 0;  // that a case of a length of its own takes (a sustained window); 0: the protocol's limit
};

struct Family {
  std::string name = {};
  std::string summary = {};   // one line
  bool workload = false;      // a training family
  bool communicates = false;  // ranks exchange data, as those of a training family do
  Schema params = {};
  Estimate (*estimate)(const Params&, const World&) = nullptr;
  std::unique_ptr<Case> (*make)(const Params&) = nullptr;
  std::vector<DeviceKind> devices = {};  // that it can run on
  // Replaces words that stand for a value ("recipe") by that value, before the key is made; null: there are none.
  void (*complete)(Params&) = nullptr;
  // Environment variables that the workers of a case start with (a library's switch); null: none.
  std::map<std::string, std::string> (*environment)(const Params&) = nullptr;
  // Why these values do not go together (heads that do not divide, ...); null if any do.
  std::optional<std::string> (*conflict)(const Params&, const World&) = nullptr;
  // Faults that its cases check for, in addition to those that can be injected into any case (can_inject).
  std::vector<Fault> faults = {};
  // The case on a GPU; null: `make` serves every device.
  std::unique_ptr<Case> (*make_cuda)(const Params&) = nullptr;
};

// `make` of a case whose constructor takes the parameters.
template <typename T>
std::unique_ptr<Case> make_case_of(const Params& params) {
  return std::make_unique<T>(params);
}

std::map<std::string, std::string> environment_of(const Family& family, const Params& params);
// Whether a world size is a question to this family; to others it is so many times the same.
bool walks_worlds(const Family& family);

// Whether a case of the family can be given the fault on so many ranks: crash, hang, oom and slow-rank any; what is of
// the communication between ranks needs two.
bool can_inject(const Family& family, Fault fault, int ranks);

const Family* find_family(std::span<const Family> families, std::string_view name);
// The case of these parameters on a device of this kind.
std::unique_ptr<Case> make_case(const Family& family, const Params& params, DeviceKind device);
// Why this case cannot run on a device of this kind, by its family and the values of its parameters alone.
std::optional<std::string> lacking_on(const Family& family, const Params& params, DeviceKind device);

}  // namespace assay
