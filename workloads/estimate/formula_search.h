// The layouts and micro-batches with which hardware holds a model that is planned by formula.
#pragma once

#include "workloads/estimate/formula.h"
#include "workloads/parallel/held.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay::estimate {

class FormulaSearch {
 public:
  // `asked` has the method and what it may fix of the layout (tp, pp); `gpus`: the numbers to plan for. Throws
  // UsageError.
  FormulaSearch(const Asked& asked, const std::vector<std::int64_t>& gpus);

  // As LayoutSearch::on(). Layers and pipelines are divided only if nothing fits without, in that order, and a
  // recomputing step is the last resort. With tp above 1 its ranks also divide the sequence where they can.
  parallel::Held on(const HardwareSheet& sheet, std::int64_t gpus) const;
  std::optional<std::int64_t> fewest_above(const HardwareSheet& sheet, std::int64_t gpus) const;

  const std::string& name() const { return model_.name; }
  const planning::Step& step() const { return step_; }

 private:
  struct Attempt {
    planning::Step step;
    planning::Layout layout;
    double bytes = 0;
  };

  std::optional<Attempt> attempt(planning::Step step, planning::Layout layout, const planning::Device& device) const;
  parallel::Held held(const Attempt& attempt, const planning::Device& device, bool fits) const;
  double flops_of_token() const;

  architecture::Architecture model_;
  planning::Step step_;
  std::vector<std::int64_t> tensor_, stages_;  // values of tp and pp to try
};

}  // namespace assay::estimate
