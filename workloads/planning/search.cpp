#include "workloads/planning/search.h"

#include "harness/core/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <tuple>

namespace assay::planning {

namespace {

using architecture::Architecture;

class Search {
 public:
  Search(const Architecture& model, const Device& device, const BytesOf& bytes_of)
      : model_(model), device_(device), bytes_of_(bytes_of) {}

  std::optional<Found> fitting(const Step& step, const Layout& layout) const {
    const auto bytes = bytes_of_(step, layout);
    if (!bytes || *bytes > device_.left(layout.ranks())) return std::nullopt;
    return Found{step, layout, *bytes};
  }

  // By halving the interval: memory grows with the micro-batch.
  std::optional<Found> smaller_batch(Step step, const Layout& layout) const {
    std::int64_t too_large = step.micro_batch, fit = 0;
    std::optional<Found> best;
    const auto attempt = [&](std::int64_t samples) {
      step.micro_batch = samples;
      auto found = fitting(step, layout);
      (found ? fit : too_large) = samples;
      if (found) best = std::move(found);
    };
    if (too_large > 1) attempt(1);
    while (best && too_large - fit > 1) attempt(fit + (too_large - fit) / 2);
    return best;
  }

  // Among layouts of as many ranks, the one that changes least: first zero, then experts, tensors and pipelines.
  std::optional<Found> fewest_ranks(const Step& step, const Layout& asked) const {
    constexpr std::int64_t max_tried = 4096, max_tp = 8, max_pp = 64;
    const auto first = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(asked.ranks())));
    const std::int64_t deepest = std::max(asked.pp, std::min(max_pp, step.accumulate));
    for (std::int64_t ranks = first; ranks <= std::max(first, max_tried); ranks *= 2)
      for (std::int64_t pp = asked.pp; pp <= deepest; pp *= 2)
        for (std::int64_t tp = asked.tp; tp <= std::max(max_tp, asked.tp); tp *= 2) {
          const std::int64_t inner = tp * pp * asked.cp;
          if (ranks % inner != 0) continue;
          Layout layout = asked;
          layout.dp = ranks / inner, layout.tp = tp, layout.pp = pp;
          if (auto found = dividing_state(step, layout)) return found;
        }
    return std::nullopt;
  }

 private:
  std::optional<Found> dividing_state(const Step& step, Layout layout) const {
    const int lowest = layout.zero, highest = layout.pp > 1 ? 1 : parallel::max_zero;
    const std::int64_t most = std::min(model_.experts(), layout.copies());
    for (std::int64_t ep = layout.ep; ep <= std::max(most, layout.ep); ep *= 2)
      for (int zero = lowest; zero <= std::max(lowest, highest); ++zero) {
        layout.ep = ep, layout.zero = zero;
        if (auto found = fitting(step, layout)) return found;
        if (layout.copies() == 1) break;  // nobody to divide with
      }
    return std::nullopt;
  }

  const Architecture& model_;
  const Device& device_;
  const BytesOf& bytes_of_;
};

}  // namespace

std::string Found::changes(const Step& asked, const Layout& before) const {
  std::vector<std::string> texts;
  const auto add = [&](const char* name, const auto& value, const auto& old) {
    if (value != old) texts.push_back(fmt::format("{}={}", name, value));
  };
  add("micro_batch", step.micro_batch, asked.micro_batch);
  if (step.recompute != asked.recompute)
    texts.push_back(fmt::format("checkpointing={}", step.recompute == Recompute::full ? "full" : "selective"));
  add("dp", layout.dp, before.dp), add("tp", layout.tp, before.tp), add("pp", layout.pp, before.pp);
  add("ep", layout.ep, before.ep), add("zero", layout.zero, before.zero);
  return fmt::format("{}", fmt::join(texts, ","));
}

std::vector<Found> nearest_that_fit(const Architecture& model, const Step& step, const Layout& layout,
                                    const Device& device) {
  return nearest_that_fit(model, step, layout, device,
                          [&](const Step& other, const Layout& divided) -> std::optional<double> {
                            if (problem_of(model, other, divided)) return std::nullopt;
                            return largest(memory_of(model, other, divided, static_cast<std::uint64_t>(device.bytes)));
                          });
}

std::vector<Found> nearest_that_fit(const Architecture& model, const Step& step, const Layout& layout,
                                    const Device& device, const BytesOf& bytes_of) {
  const Search search(model, device, bytes_of);
  std::vector<Found> all;
  const auto add = [&](std::optional<Found> found) {
    if (found) all.push_back(std::move(*found));
    return !all.empty();
  };
  Step selective = step, full = step;
  selective.recompute = Recompute::selective, full.recompute = Recompute::full;
  add(search.smaller_batch(step, layout));
  if (step.recompute == Recompute::none) add(search.fitting(selective, layout));
  if (step.recompute != Recompute::full) add(search.fitting(full, layout));
  if (all.empty() && step.recompute != Recompute::full) add(search.smaller_batch(full, layout));
  const bool on_as_many = !all.empty();
  auto as_asked = search.fewest_ranks(step, layout);
  full.micro_batch = 1;
  auto least = on_as_many ? std::nullopt : search.fewest_ranks(full, layout);
  const bool fewer = least && (!as_asked || least->layout.ranks() < as_asked->layout.ranks());
  add(std::move(as_asked));
  if (fewer) add(std::move(least));
  return all;
}

}  // namespace assay::planning
