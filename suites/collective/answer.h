// The contents of a collective's buffers before and after a call: small integers, so that every sum is exact.
#pragma once

#include "suites/collective/layout.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace assay::collective {

// Wrong elements on one rank; the first few are described.
struct Wrong {
  std::uint64_t count = 0;
  std::vector<std::string> detail;
  std::set<int> senders = {};  // ranks whose messages were wrong, if they are known
};

// One rank's buffers of one collective. Element i of rank r is an integer that depends on seed, r and i and repeats
// every 65,521 elements, a prime, so that a misplaced block is noticed.
class Answer {
 public:
  virtual ~Answer() = default;

  // These work on a part of a buffer of `layout` (in place: of the shared buffer): elements `first` to `first + count`.
  virtual void fill_send(void* part, std::size_t first, std::size_t count) const = 0;
  // Fills what the call reads; poisons the rest.
  virtual void fill_in_place(void* part, std::size_t first, std::size_t count) const = 0;
  // Checks the result of a call; `in_place` tells where a reduce-scatter leaves it. Ignores elements outside it.
  virtual void check_receive(Wrong& wrong, const void* part, bool in_place, std::size_t first,
                             std::size_t count) const = 0;
  virtual void check_send(Wrong& wrong, const void* part, std::size_t first, std::size_t count) const = 0;
  // Makes an element wrong, for fault injection; use the one at index `corruptible`.
  virtual void corrupt(void* element) const = 0;
  virtual std::size_t corruptible(bool in_place) const = 0;
};

// The largest world whose sums are exact in this type.
int max_ranks(DType dtype);

// Throws Error for types other than f32, bf16, i64. `from`: the rank whose elements a broadcast or send-recv delivers;
// absent: rank 0 of a broadcast, the previous rank in a ring.
std::unique_ptr<Answer> make_answer(Op op, DType dtype, const Layout& layout, int rank, int ranks, std::uint64_t seed,
                                    std::optional<int> from = {});

}  // namespace assay::collective
