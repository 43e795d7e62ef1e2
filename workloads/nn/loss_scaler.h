// Dynamic loss scaling for fp16: multiplies the loss so that small gradients do not underflow, as far as overflows
// allow (Micikevicius et al. 2018, "Mixed precision training").
#pragma once

#include <cstdint>

namespace assay::nn {

class LossScaler {
 public:
  static constexpr float initial = 65536.0f;
  static constexpr float smallest = 1.0f / 16777216.0f;
  static constexpr std::int32_t growth_interval = 2000;

  // Saved in checkpoints.
  struct State {
    float scale = 1.0f;
    std::int32_t good_steps = 0;  // since the last change
  };

  // Without `dynamic` the scale is always 1.
  explicit LossScaler(bool dynamic) : dynamic_(dynamic) { state_.scale = dynamic ? initial : 1.0f; }

  float scale() const { return state_.scale; }
  State& state() { return state_; }
  // Call after each step: halves the scale after an overflow, doubles it after `growth_interval` steps without one.
  void update(bool overflow) {
    if (!dynamic_) return;
    if (overflow) {
      state_.scale = state_.scale / 2 < smallest ? smallest : state_.scale / 2;
      state_.good_steps = 0;
    } else if (++state_.good_steps >= growth_interval) {
      if (state_.scale < 1e37f) state_.scale *= 2;
      state_.good_steps = 0;
    }
  }

 private:
  bool dynamic_;
  State state_;
};

}  // namespace assay::nn
