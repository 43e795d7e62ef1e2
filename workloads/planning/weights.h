// Sizes of weights on a rank: frozen, trained, and their optimizer's state.
#pragma once

#include "workloads/architecture/architecture.h"
#include "workloads/planning/layout.h"

#include <vector>

namespace assay::planning {

// Bytes of some weights on one rank before ZeRO divides them.
struct State {
  double frozen = 0;          // as stored
  double trained = 0;         // elements
  double optimizer = 0;       // of moments
  double trained_count = 0;   // elements before tp and ep divide them
  double largest_matrix = 0;  // elements that qlora dequantises at once

  State& operator+=(const State& other);
};
State operator*(State state, double times);

// Experts apart, as fewer ranks have the same ones.
struct Divided {
  State shared, experts;
};

// Bits of a frozen weight: as the file says, 4.127 for qlora's matrices, else the step's precision.
double frozen_bits(const architecture::Architecture& model, const Step& step, const architecture::Weight& weight);
bool is_target(const Step& step, const architecture::Weight& weight);
// NF4 in blocks of 64 with double quantisation: 4 + 8/64 + 32/(64 x 256) bits.
inline constexpr double nf4_bits = 4 + 8.0 / 64 + 32.0 / (64 * 256);

Divided state_of(const architecture::Architecture& model, const Step& step, const Layout& layout,
                 const std::vector<architecture::Weight>& weights);
// Elements that train, of the whole model; and those of its experts alone.
double trained_parameters(const architecture::Architecture& model, const Step& step);
double trained_experts(const architecture::Architecture& model, const Step& step);

}  // namespace assay::planning
