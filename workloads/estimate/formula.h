// Memory of training and serving by formulas: of architectures, methods and layouts that Assay's own step does not
// have.
#pragma once

#include "harness/core/error.h"
#include "harness/json/fwd.h"
#include "harness/machine/hardware.h"
#include "workloads/parallel/held.h"
#include "workloads/planning/search.h"
#include "workloads/planning/serving.h"
#include "workloads/planning/torch.h"
#include "workloads/planning/traffic.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay::estimate {

// What is asked of `assay estimate`.
struct Asked {
  std::string model;              // a name of configs/models, or a file
  std::vector<std::string> sets;  // "name=value,name=value"
  std::optional<HardwareSheet> hardware;
};

// Whether Assay's own step, which MemoryEstimator plans exactly, lacks the architecture, the method or the layout.
// Throws UsageError for a model that neither knows.
bool needs_formula(const Asked& asked);

// The settings without engine=assay, which Assay's own step is anyhow.
std::vector<std::string> own_sets(const Asked& asked);

// A model's architecture, from one of our files or a config.json. Throws UsageError.
architecture::Architecture load_architecture(const std::string& model);

inline constexpr std::int64_t gpus_of_a_host = 8;  // unless told

// The memory of a sheet's device, and what its libraries keep there.
planning::Device device_of(const HardwareSheet& sheet);

// Throws UsageError for a CPU, which has no other memory.
void check_offload(planning::Offload offload, const HardwareSheet& sheet);

// Whole bytes. Throws UsageError for more than can be counted.
std::uint64_t counted(double bytes);

// What a group sends, over the sheet's fastest link within a host; between hosts no rate is known. `sheet` may be null.
parallel::Sent over_link(std::string group, std::int64_t ranks, double bytes, bool within_host,
                         const HardwareSheet* sheet);

// A training step.
class FormulaEstimate {
 public:
  // Throws UsageError for what cannot be, with the nearest that can.
  explicit FormulaEstimate(const Asked& asked);

  ExitCode code() const;
  Json json() const;
  std::string text() const;

  double total() const;  // of the largest rank, with the allowance
  const std::vector<planning::StageMemory>& stages() const { return stages_; }
  const architecture::Architecture& model() const { return model_; }
  const planning::Step& step() const { return step_; }
  const planning::Layout& layout() const { return layout_; }

 private:
  planning::Device device() const;
  double allowance() const;
  std::optional<bool> fits() const;
  std::vector<parallel::Sent> sent() const;
  Json terms_json(const planning::Terms& terms) const;
  std::vector<std::string> notes() const;
  void plan_torch();

  architecture::Architecture model_;
  std::optional<HardwareSheet> hardware_;
  planning::Step step_;
  planning::Layout layout_;
  planning::Engine engine_ = planning::Engine::assay;
  std::optional<planning::TorchMemory> torch_;
  std::int64_t host_ranks_ = 8;
  bool trainable_ = false;  // Assay trains the architecture, if not so
  std::vector<planning::StageMemory> stages_;
  std::vector<planning::Found> others_;  // that would fit, if this does not
};

// Serving a language model.
struct AskedServing {
  std::int64_t context = 0;  // 0: all positions, at most 4096
  std::int64_t concurrency = 1;
  std::string kv_dtype = "bf16";
};

class ServingEstimate {
 public:
  // Throws UsageError as above; `sets` has weights and tp.
  ServingEstimate(const Asked& asked, const AskedServing& serving);

  ExitCode code() const;
  Json json() const;
  std::string text() const;

 private:
  planning::Device device() const;
  double total() const { return memory_.total() + device().allowance(serving_.tp); }
  std::optional<bool> fits() const;
  std::int64_t most() const;  // sequences at once on the hardware

  architecture::Architecture model_;
  std::optional<HardwareSheet> hardware_;
  planning::Serving serving_;
  planning::ServingMemory memory_;
  std::vector<std::pair<std::string, planning::Serving>> others_;  // that would fit, if this does not
};

}  // namespace assay::estimate
