// Shared by the answers.
#pragma once

namespace assay::report {

// How precisely a figure must be known, and how much it may differ: compare's default.
inline constexpr double answer_tolerance = 0.03;

}  // namespace assay::report
