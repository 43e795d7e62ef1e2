#include "workloads/planning/allocator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <tuple>
#include <unordered_map>

namespace assay::planning {

namespace {

constexpr double mib = 1 << 20;
constexpr double min_block = 512, max_small = 1 * mib, small_segment = 2 * mib;
constexpr double min_own_segment = 10 * mib, large_segment = 20 * mib, own_segment_step = 2 * mib;

double rounded(double bytes, double step) { return std::max(std::ceil(bytes / step), 1.0) * step; }

class CachingAllocator {
 public:
  void allocate(std::size_t tensor, double bytes) {
    const double size = rounded(bytes, min_block);
    const bool small = size <= max_small;
    auto& free = small ? small_ : large_;
    // The smallest that is large enough, and of those the one at the lowest address.
    auto found = free.lower_bound({size, 0});
    Piece piece;
    if (found != free.end()) {
      piece = {found->second, found->first, small};
      remove_free(piece);
    } else {
      piece = {next_, segment_for(size), small};
      next_ += piece.size + gap;
      reserved_ += piece.size;
    }
    const double rest = piece.size - size;
    if (small ? rest >= min_block : rest > max_small) {
      add_free({piece.at + size, rest, small});
      piece.size = size;
    }
    used_[tensor] = piece;
  }

  void release(std::size_t tensor) {
    const auto found = used_.find(tensor);
    Piece piece = found->second;
    used_.erase(found);
    // Free neighbours in the same segment.
    if (const auto after = starts_.find(piece.at + piece.size); after != starts_.end()) {
      const double more = after->second;
      remove_free({piece.at + piece.size, more, piece.small});
      piece.size += more;
    }
    if (const auto before = ends_.find(piece.at); before != ends_.end()) {
      const double more = before->second;
      remove_free({piece.at - more, more, piece.small});
      piece.at -= more, piece.size += more;
    }
    add_free(piece);
  }

  double reserved() const { return reserved_; }

 private:
  struct Piece {
    double at = 0, size = 0;
    bool small = false;
  };
  static constexpr double gap = 512;  // segments are no neighbours

  static double segment_for(double size) {
    if (size <= max_small) return small_segment;
    return size < min_own_segment ? large_segment : rounded(size, own_segment_step);
  }

  void add_free(const Piece& piece) {
    (piece.small ? small_ : large_).insert({piece.size, piece.at});
    starts_[piece.at] = piece.size, ends_[piece.at + piece.size] = piece.size;
  }

  void remove_free(const Piece& piece) {
    (piece.small ? small_ : large_).erase({piece.size, piece.at});
    starts_.erase(piece.at), ends_.erase(piece.at + piece.size);
  }

  std::set<std::pair<double, double>> small_, large_;  // free: size, address
  std::unordered_map<double, double> starts_, ends_;   // of free pieces: their sizes
  std::unordered_map<std::size_t, Piece> used_;
  double next_ = 0, reserved_ = 0;
};

}  // namespace

double reserved_bytes(const std::vector<Heap::Event>& events) {
  std::array<CachingAllocator, streams> of_stream;
  for (const Heap::Event& event : events) {
    CachingAllocator& allocator = of_stream.at(static_cast<std::size_t>(event.stream));
    if (event.bytes > 0)
      allocator.allocate(event.block, event.bytes);
    else
      allocator.release(event.block);
  }
  double reserved = 0;
  for (const CachingAllocator& each : of_stream) reserved += each.reserved();
  return reserved;
}

}  // namespace assay::planning
