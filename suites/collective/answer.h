// What a collective's buffers hold before a call and must hold after it: small integers, so that every sum is exact.
#pragma once

#include "suites/collective/layout.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace assay::collective {

// Wrong elements of one rank, the first few described.
struct Wrong {
  std::uint64_t count = 0;
  std::vector<std::string> detail;
};

// One rank's buffers of one collective. Rank r gives as element i an integer that depends on seed, r and i and repeats
// every 65,521 elements, a prime, so that a block in the wrong place shows.
class Answer {
 public:
  virtual ~Answer() = default;

  // Pointers are to the buffers of `layout`; in place, to the one that both are.
  virtual void fill_send(void* send) const = 0;      // layout.send elements
  virtual void fill_in_place(void* data) const = 0;  // what the call reads; poison elsewhere
  virtual void poison(void* receive) const = 0;      // NaN or -1 everywhere
  // The result of a call; `in_place` says where a reduce-scatter leaves it.
  virtual Wrong check_receive(const void* receive, bool in_place) const = 0;
  virtual Wrong check_send(const void* send) const = 0;  // still as filled
  // Makes one element of the result wrong; a drill.
  virtual void corrupt(void* receive, bool in_place) const = 0;
};

// The largest world whose sums are exact in this type.
int most_ranks(DType dtype);

// Throws Error for types other than f32, bf16, i64. `root` is a broadcast's; send_recv goes round a ring.
std::unique_ptr<Answer> make_answer(Op op, DType dtype, const Layout& layout, int rank, int ranks, std::uint64_t seed,
                                    int root = 0);

}  // namespace assay::collective
