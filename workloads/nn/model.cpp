#include "workloads/nn/model.h"

#include <fmt/format.h>

namespace assay::nn {

std::optional<std::string> problem_of_seq(const InputSpec& input, std::int64_t seq) {
  if (input.window > 0 && seq > input.window)
    return fmt::format(
        "seq {} is beyond the sliding window of {} tokens, and this build attends to all earlier tokens; the nearest "
        "is seq={}",
        seq, input.window, input.window);
  if (input.positions > 0 && seq > input.positions)
    return fmt::format("seq {} is beyond the model's {} positions; the nearest is seq={}", seq, input.positions,
                       input.positions);
  return std::nullopt;
}

}  // namespace assay::nn
