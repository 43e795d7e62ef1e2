// Which of the requested machines hold a model, and which of those suffice for the budget and the deadline.
#pragma once

#include "harness/core/error.h"
#include "harness/json/fwd.h"
#include "harness/runs/run_set.h"
#include "reports/model/document.h"
#include "reports/sizing/candidates.h"
#include "reports/sizing/request.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace assay::report::sizing {

// The model's memory, as planned by others.
struct Planner {
  std::string model;
  std::string precision;
  std::int64_t seq = 0;  // 0: images
  // How so many GPUs hold the model best; the sheet gives their memory.
  std::function<parallel::Held(const HardwareSheet&, std::int64_t gpus)> on;
  // The fewest GPUs above `gpus` that hold it; nothing if none do.
  std::function<std::optional<std::int64_t>(const HardwareSheet&, std::int64_t gpus)> fewest_above;
  std::string wider = {};  // settings that try more layouts than these do; may be empty
};

struct Sized {
  Candidate candidate;
  parallel::Held held;
  std::uint64_t memory_bytes = 0;           // of a GPU
  std::optional<HardwareSheet::Link> pcie;  // to its host
  std::optional<PyTorchRatio> pytorch;      // of this model on such a device

  Range items_per_gpu() const;  // per second
  std::optional<Estimate> expected_per_gpu() const;
};

struct Rejected {
  std::string hardware;
  std::int64_t gpus = 1;
  std::string reason;
  bool judged = true;  // false: what is known does not suffice to say
  std::optional<std::uint64_t> short_by_bytes;

  static void members(auto& self, auto& io) {
    io("hardware", self.hardware), io("gpus", self.gpus), io("reason", self.reason), io("judged", self.judged);
    io("short_by_bytes", self.short_by_bytes);
  }
};

struct SizeAnswer {
  std::string model;
  std::string precision;
  std::int64_t seq = 0;  // 0: images
  double items = 0;      // of the whole training
  std::optional<double> budget, deadline;
  std::vector<Sized> ranked;       // likely cheapest first; those without a price last
  std::vector<Rejected> rejected;  // by hardware
  std::vector<std::string> would;  // if nothing is ranked: what would fit
  std::vector<std::string> remarks;
  Published published;

  // The one with the least cost of each kind of hardware.
  std::vector<const Sized*> best() const;
  // Its place in the likely order, from 1; nothing without an expected figure, or without a price where others have
  // one.
  std::optional<std::size_t> likely_place(const Sized& sized) const;
  double per_million() const { return 1e6 / items; }  // of what the whole costs
  const char* item() const { return seq > 0 ? "tokens" : "images"; }
  // failed: nothing fits; no_data: nothing could be judged.
  ExitCode code() const;
};

// `runs` may be null. Throws Error (no_data) if there are runs and none has a speed of this model.
SizeAnswer size(SizeRequest request, const RunSet* runs, const Planner& planner);

// "tp 8, zero 1": what of it is not the plainest.
std::string layout_text(const parallel::Held& held);
// Whether it is known that a limit is kept.
bool surely_within(const Range& range, const std::optional<double>& limit);
// What a runner-up's machines must cost per hour to cost as much as the first in all; nothing without prices.
std::optional<Range> break_even(const SizeAnswer& answer, const Sized& runner_up);

Json to_json(const SizeAnswer& answer);
// For people. The terminal shows a table of at most 40 numbers of GPUs, else the best of each hardware; pages all.
Document document_of(const SizeAnswer& answer);

}  // namespace assay::report::sizing
