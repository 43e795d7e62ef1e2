#include "suites/memory/chase.h"

#include <numeric>
#include <utility>
#include <vector>

namespace assay::memory {

void link_cycle(Line* lines, std::size_t count, const Rng& rng) {
  // The order of visits is drawn in an array of its own: following the links to number the lines would take as long as
  // the memory's latency for each.
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = count; i-- > 2;) std::swap(order[i], order[1 + rng.below(i, i)]);  // lines[0] stays the first
  for (std::size_t i = 0; i < count; ++i) lines[order[i]] = {lines + order[i + 1 < count ? i + 1 : 0], i};
}

const Line* chase(const Line* from, std::uint64_t hops) {
  for (std::uint64_t i = 0; i < hops / 8; ++i) {
    from = from->next->next->next->next;
    from = from->next->next->next->next;
  }
  for (std::uint64_t i = 0; i < hops % 8; ++i) from = from->next;
  return from;
}

std::uint64_t wrong_lines(const Line* lines, std::size_t count) {
  std::uint64_t wrong = 0;
  const Line* line = lines;
  for (std::size_t i = 0; i < count; ++i, line = line->next) wrong += line->place != i;
  return wrong + (line != lines);
}

}  // namespace assay::memory
