// Figures from what nccl-tests and nvbandwidth print.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::crosscheck {

// algbw in B/s of the out-of-place sums of f32 by size in bytes, from the table of all_reduce_perf. Computed from the
// time, which has more digits than the printed bandwidth. Throws Error if a row has wrong elements, or a
// number of them that cannot be read.
std::map<std::int64_t, double> read_all_reduce_perf(std::string_view printed);

// B/s by row and column; N/A is absent.
using BandwidthMatrix = std::vector<std::vector<std::optional<double>>>;

// The matrices of the test cases that passed, by name, from nvbandwidth -j; those it waives are left out. Throws Error
// if this is not its JSON, or it reports an error.
std::map<std::string, BandwidthMatrix> read_nvbandwidth(std::string_view printed);

}  // namespace assay::crosscheck
