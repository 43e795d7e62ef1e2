// What a collective's buffers hold before a call and must hold after it: small integers, so that every sum is exact.
#pragma once

#include "suites/collective/layout.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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

  // A part of a buffer of `layout` (in place: of the one that both are): `part` holds elements `first` to `first +
  // count`.
  virtual void fill_send(void* part, std::size_t first, std::size_t count) const = 0;
  // What the call reads; poison elsewhere.
  virtual void fill_in_place(void* part, std::size_t first, std::size_t count) const = 0;
  // The result of a call; `in_place` says where a reduce-scatter leaves it. What lies outside it is not looked at.
  virtual void check_receive(Wrong& wrong, const void* part, bool in_place, std::size_t first,
                             std::size_t count) const = 0;
  virtual void check_send(Wrong& wrong, const void* part, std::size_t first, std::size_t count) const = 0;
  // Makes an element wrong; a drill. It is best tried on the one at `corruptible`.
  virtual void corrupt(void* element) const = 0;
  virtual std::size_t corruptible(bool in_place) const = 0;

  // The same of whole buffers in host memory.
  void fill_send(void* send) const;      // layout.send elements
  void fill_in_place(void* data) const;  // the larger of layout.send and layout.receive
  void poison(void* receive) const;      // NaN or -1 everywhere
  Wrong check_receive(const void* receive, bool in_place) const;
  Wrong check_send(const void* send) const;
  void corrupt(void* receive, bool in_place) const;

 protected:
  Answer(const Layout& layout, std::size_t element) : layout_(layout), element_(element) {}
  const Layout layout_;
  const std::size_t element_;  // bytes
};

// The largest world whose sums are exact in this type.
int max_ranks(DType dtype);

// Throws Error for types other than f32, bf16, i64. `from`: the rank whose elements a broadcast or send-recv brings;
// absent: a broadcast's rank 0, the one before in a ring.
std::unique_ptr<Answer> make_answer(Op op, DType dtype, const Layout& layout, int rank, int ranks, std::uint64_t seed,
                                    std::optional<int> from = {});

}  // namespace assay::collective
