// Which layers a rank holds, how many micro-batches it has in flight, and layouts that cannot be.
#pragma once

#include "workloads/architecture/architecture.h"
#include "workloads/planning/request.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay::planning {

// Why the layout is impossible, with the nearest value that is not; nothing if it can be.
std::optional<std::string> problem_of(const architecture::Architecture& model, const Step& step, const Layout& layout);

struct Stage {
  std::int64_t index = 0;
  std::vector<std::int64_t> layers;  // of each kind
  bool first = false;
  bool last = false;
  double in_flight = 1;  // micro-batches whose activations it keeps at once, of its whole stage
};
// Chunk i of all pp x chunks is on stage i mod pp. The first chunks have a layer more if they are not of one size.
std::vector<Stage> stages_of(const architecture::Architecture& model, const Step& step, const Layout& layout);

// The part of a step in which a rank waits for others to fill and drain the pipeline, with all stages equally long:
// Narayanan et al. 2021 (arXiv 2104.04473), (p - 1) / (v m) of the ideal time.
double bubble_of(const Step& step, const Layout& layout);

}  // namespace assay::planning
