// The answer of `assay size`, as text and as JSON.
#pragma once

#include "cli/size_layouts.h"
#include "reports/sizing/candidates.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace assay::cli {

struct Sized {
  report::sizing::Candidate candidate;
  report::sizing::Work work;
  MemoryEstimate estimate;
  std::uint64_t memory_bytes = 0;                       // of a GPU
  std::optional<report::sizing::PyTorchRatio> pytorch;  // of this model on such a device
};

struct Rejected {
  std::string hardware;
  std::int64_t gpus = 1;
  std::string reason;
  std::optional<std::uint64_t> short_by_bytes;
  bool judged = true;  // false: what is known does not suffice to say
};

struct SizeAnswer {
  std::string model;
  std::string precision;
  std::int64_t seq = 0;  // 0: images
  double items = 0;      // of the whole training
  std::optional<double> budget, deadline;
  std::vector<Sized> ranked;       // cheapest at most first; those without a price last
  std::vector<Rejected> rejected;  // by hardware
  std::vector<std::string> would;  // if nothing is ranked: what would fit
  std::vector<std::string> remarks;
  report::sizing::Published published;

  // Of each hardware the one with the least cost.
  std::vector<const Sized*> best() const;
};

// What a runner-up's machines must cost per hour to cost as much as the first in all; nothing without prices.
std::optional<report::sizing::Range> break_even(const SizeAnswer& answer, const Sized& runner_up);

Json to_json(const SizeAnswer& answer);
void print(const SizeAnswer& answer);

}  // namespace assay::cli
