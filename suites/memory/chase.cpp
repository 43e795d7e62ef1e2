#include "suites/memory/chase.h"

#include <utility>

namespace assay::memory {

void link_cycle(Line* lines, std::size_t count, const Rng& rng) {
  // The permutation is stored in the lines' own `place` members, which saves an array.
  for (std::size_t i = 0; i < count; ++i) lines[i].place = i;
  for (std::size_t i = count; i-- > 1;) std::swap(lines[i].place, lines[rng.below(i, i)].place);
  for (std::size_t i = 0; i < count; ++i) lines[i].next = lines + lines[i].place;
  Line* line = lines;
  for (std::size_t i = 0; i < count; ++i) {
    line->place = i;
    line = lines + (line->next - lines);
  }
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
