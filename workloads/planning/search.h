// Steps and layouts near the requested ones that a device holds.
#pragma once

#include "workloads/planning/device.h"
#include "workloads/planning/memory.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace assay::planning {

struct Found {
  Step step;
  Layout layout;
  double bytes = 0;  // of the largest rank, without allowance

  // What differs from the request: "micro_batch=2,tp=4".
  std::string changes(const Step& asked, const Layout& asked_layout) const;
};

// Bytes of the largest rank, without allowance; nothing for what cannot be.
using BytesOf = std::function<std::optional<double>(const Step&, const Layout&)>;

// The largest micro-batch that fits as is; recomputation that lets it fit; the layout with the fewest ranks, as a power
// of two up to 4096, that holds the step, and if recomputation needs fewer, that one too. No pipeline is proposed that
// has more stages than a step has micro-batches to fill them.
std::vector<Found> nearest_that_fit(const architecture::Architecture& model, const Step& step, const Layout& layout,
                                    const Device& device);
std::vector<Found> nearest_that_fit(const architecture::Architecture& model, const Step& step, const Layout& layout,
                                    const Device& device, const BytesOf& bytes_of);

}  // namespace assay::planning
