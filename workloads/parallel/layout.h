// How the ranks of a training run divide the model and the data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace assay::parallel {

struct Layout {
  std::int64_t dp = 1;  // ranks that share the data
  std::int64_t tp = 1;  // ranks that share each layer
  std::int64_t pp = 1;  // ranks that share the layers
  // Rajbhandari et al. 2019 (arXiv 1910.02054): what the dp ranks divide instead of each holding all of it.
  // 0: nothing, 1: optimizer state, 2: gradients too, 3: weights too.
  int zero = 0;

  std::int64_t ranks() const { return dp * tp * pp; }
  // Whether ranks divide what zero >= `stage` divides.
  bool divides(int stage = 1) const { return zero >= stage && dp > 1; }

  static void members(auto& self, auto& io) {
    io("dp", self.dp), io("tp", self.tp), io("pp", self.pp), io("zero", self.zero);
  }
};

inline constexpr int max_zero = 3;
inline constexpr std::int64_t max_dp = 16384;  // the GPUs that Llama 3 405B was trained on (arXiv 2407.21783)

// Why the layout cannot be planned, with the way out; nothing if it can. tp and pp must be 1.
std::optional<std::string> problem_of(const Layout& layout);
}  // namespace assay::parallel
