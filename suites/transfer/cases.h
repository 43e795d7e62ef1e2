// The cases of the transfer family.
#pragma once

#include "harness/plan/case.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace assay::transfer {

enum class Direction { h2d, d2h, both, d2d, p2p, p2p_staged };
constexpr auto words(Direction) {
  return std::to_array<std::string_view>({"h2d", "d2h", "both", "d2d", "p2p", "p2p_staged"});
}
enum class HostMemory { pinned, pageable, none };
constexpr auto words(HostMemory) { return std::to_array<std::string_view>({"pinned", "pageable", "device"}); }
enum class By { engine, kernel };
constexpr auto words(By) { return std::to_array<std::string_view>({"engine", "kernel"}); }

std::unique_ptr<Case> make_host_case(const Params& params);  // h2d, d2h, both, d2d
std::unique_ptr<Case> make_pair_case(const Params& params);  // p2p, p2p_staged

// bandwidth, and two times of small copies: copy_interval, from one to the next when all are enqueued at once
// (`measured`), and latency, from the call to the host's knowledge that it has arrived (`waited`).
std::vector<Metric> figures(std::size_t bytes, double arriving, const Measurement& measured, const Measurement& waited);

}  // namespace assay::transfer
