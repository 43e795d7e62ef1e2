// The cases of the transfer family.
#pragma once

#include "harness/plan/case.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace assay::transfer {

// Between GPUs the receiving one reads, unless the name says that the sending one writes. p2p: one way; p2p_both: both
// ways of a pair at once; p2p_all: all pairs at once, both ways.
enum class Direction {
  h2d,
  d2h,
  both,
  d2d,
  p2p,
  p2p_staged,
  p2p_write,
  p2p_both,
  p2p_both_write,
  p2p_all,
  p2p_all_write
};
constexpr auto words(Direction) {
  return std::to_array<std::string_view>({"h2d", "d2h", "both", "d2d", "p2p", "p2p_staged", "p2p_write", "p2p_both",
                                          "p2p_both_write", "p2p_all", "p2p_all_write"});
}
// Between GPUs, not with the host or inside one.
constexpr bool is_between_gpus(Direction direction) { return direction >= Direction::p2p; }
enum class HostMemory { pinned, pageable, none };
constexpr auto words(HostMemory) { return std::to_array<std::string_view>({"pinned", "pageable", "device"}); }
enum class By { engine, kernel };
constexpr auto words(By) { return std::to_array<std::string_view>({"engine", "kernel"}); }

std::unique_ptr<Case> make_host_case(const Params& params);  // h2d, d2h, both, d2d
std::unique_ptr<Case> make_pair_case(const Params& params);  // between GPUs

// bandwidth, and two times of small copies: copy_interval, from one to the next when all are enqueued at once
// (`measured`), and latency, from the call to the host's knowledge that it has arrived (`waited`).
std::vector<Metric> figures(std::size_t bytes, double arriving, const Measurement& measured, const Measurement& waited);

}  // namespace assay::transfer
