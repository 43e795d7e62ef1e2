#include "workloads/nn/planner.h"

#include <algorithm>
#include <numeric>

namespace assay::nn {

namespace {

std::size_t rounded(std::size_t bytes, std::size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

struct Placed {
  std::size_t begin;
  std::size_t end;
  std::size_t first;
  std::size_t last;
};

// Offsets if arrays are placed in this order; stops once the arena would reach `limit`.
ArenaPlan place(std::span<const Lifetime> lifetimes, std::span<const std::size_t> order, std::size_t alignment,
                std::size_t limit) {
  ArenaPlan plan;
  plan.offsets.resize(lifetimes.size());
  std::vector<Placed> placed;  // by begin
  placed.reserve(lifetimes.size());
  for (const std::size_t index : order) {
    const Lifetime& life = lifetimes[index];
    const std::size_t bytes = rounded(life.bytes, alignment);
    std::size_t best = 0, best_gap = SIZE_MAX, top = 0;
    for (const Placed& other : placed) {
      if (other.last < life.first || other.first > life.last) continue;
      if (other.begin >= top + bytes && other.begin - top < best_gap) {
        best = top;
        best_gap = other.begin - top;
      }
      top = std::max(top, other.end);
    }
    if (best_gap == SIZE_MAX) best = top;
    plan.offsets[index] = best;
    plan.bytes = std::max(plan.bytes, best + bytes);
    if (plan.bytes >= limit) return plan;
    const Placed placement{best, best + bytes, life.first, life.last};
    placed.insert(
        std::ranges::upper_bound(placed, placement, [](const Placed& a, const Placed& b) { return a.begin < b.begin; }),
        placement);
  }
  return plan;
}

// The maximum number of bytes alive at one instruction, and that instruction.
std::pair<std::size_t, std::size_t> max_alive(std::span<const Lifetime> lifetimes, std::size_t alignment) {
  std::size_t end = 0;
  for (const Lifetime& life : lifetimes) end = std::max(end, life.last + 1);
  std::vector<std::size_t> allocated(end + 1), freed(end + 1);
  for (const Lifetime& life : lifetimes) {
    allocated[life.first] += rounded(life.bytes, alignment);
    freed[life.last + 1] += rounded(life.bytes, alignment);
  }
  std::size_t alive = 0, peak = 0, at = 0;
  for (std::size_t i = 0; i < end; ++i) {
    alive = alive + allocated[i] - freed[i];
    if (alive > peak) {
      peak = alive;
      at = i;
    }
  }
  return {peak, at};
}

}  // namespace

ArenaPlan plan_arena(std::span<const Lifetime> lifetimes, std::size_t alignment) {
  const auto [live, peak_at] = max_alive(lifetimes, alignment);
  std::vector<std::size_t> order(lifetimes.size());
  const auto at = [&](std::size_t i) -> const Lifetime& { return lifetimes[i]; };
  const auto span_of = [&](std::size_t i) { return at(i).last - at(i).first; };
  ArenaPlan best;
  best.bytes = SIZE_MAX;
  const auto attempt = [&, lower_bound = live](auto before) {
    if (best.bytes == lower_bound) return;
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, before);
    ArenaPlan plan = place(lifetimes, order, alignment, best.bytes);
    if (plan.bytes < best.bytes) best = std::move(plan);
  };
  attempt([&](std::size_t a, std::size_t b) { return at(a).bytes > at(b).bytes; });
  // Longest-lived first: activations of the first layers stay at the bottom, as on a stack.
  attempt([&](std::size_t a, std::size_t b) { return span_of(a) > span_of(b); });
  attempt([&](std::size_t a, std::size_t b) {
    return static_cast<double>(at(a).bytes) * static_cast<double>(span_of(a) + 1) >
           static_cast<double>(at(b).bytes) * static_cast<double>(span_of(b) + 1);
  });
  attempt([&](std::size_t a, std::size_t b) { return at(a).first < at(b).first; });
  best.live = live;
  best.peak_at = peak_at;
  if (lifetimes.empty()) best.bytes = 0;
  return best;
}

}  // namespace assay::nn
