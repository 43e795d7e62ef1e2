// The layouts and micro-batches with which hardware holds a model that is planned by formula.
#pragma once

#include "workloads/estimate/formula.h"
#include "workloads/parallel/held.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace assay::estimate {

class FormulaSearch {
 public:
  // `asked` has the method and what it may fix of the layout (tp, pp, chunks, ep, cp) and offload; `gpus`: the numbers
  // to plan for. Throws UsageError.
  FormulaSearch(const Asked& asked, const std::vector<std::int64_t>& gpus);

  // As LayoutSearch::on(). Each of these only if nothing fits without: experts are divided, before weights are gathered
  // (zero = 3), as the tokens that ranks send to experts are fewer bytes; layers (tp); pipelines; recomputation;
  // sequences (cp); offload, to a GPU's host over PCI Express with a known rate. With tp above 1 its ranks also divide
  // the sequence where they can.
  parallel::Held on(const HardwareSheet& sheet, std::int64_t gpus);
  std::optional<std::int64_t> fewest_above(const HardwareSheet& sheet, std::int64_t gpus);

  const std::string& name() const { return model_.name; }
  const planning::Step& step() const { return step_; }
  bool of_images() const { return model_.labels > 0; }

 private:
  struct Attempt {
    planning::Step step;
    planning::Layout layout;
    double bytes = 0;
  };

  // The best that fits, and the smallest of all that were tried.
  struct Best {
    std::optional<Attempt> fits, smallest;
  };

  std::optional<Attempt> attempt(planning::Step step, planning::Layout layout, const planning::Device& device);
  // The largest micro-batch that fits, a power of two; `gathers`: with zero = 3.
  void try_batches(planning::Step step, planning::Layout layout, bool gathers, const planning::Device& device,
                   Best& best);
  void try_layouts(const planning::Step& step, std::int64_t cp, std::int64_t gpus, const planning::Device& device,
                   Best& best);
  parallel::Held held(const Attempt& attempt, const HardwareSheet& sheet, bool fits) const;
  double flops_of_token() const;
  // What the number of GPUs must be a multiple of.
  std::int64_t min_gpus() const;

  architecture::Architecture model_;
  planning::Step step_;
  std::vector<planning::Offload> offloads_;                          // values to try
  std::vector<std::int64_t> tensor_, stages_, experts_, sequences_;  // of tp, pp, ep and cp
  std::int64_t chunks_ = 1;
  // Bytes of the largest rank without allowance, by all that they depend on; nothing for what cannot be.
  std::map<std::array<std::int64_t, 10>, std::optional<double>> bytes_;
};

}  // namespace assay::estimate
