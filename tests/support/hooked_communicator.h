// A communicator that calls a function after each barrier, and another after each line-up: to let ranks come out of a
// barrier at different times.
#pragma once

#include "harness/comm/forwarding_communicator.h"

#include <functional>
#include <utility>

namespace assay::test {

class HookedCommunicator final : public ForwardingCommunicator {
 public:
  // `inner` must outlive this.
  HookedCommunicator(
      Communicator& inner, std::function<void()> after_barrier, std::function<void()> after_line_up = [] {})
      : ForwardingCommunicator(inner),
        after_barrier_(std::move(after_barrier)),
        after_line_up_(std::move(after_line_up)) {}

  void barrier() override {
    inner_.barrier();
    after_barrier_();
  }
  void line_up(Stream& stream) override {
    inner_.line_up(stream);
    after_line_up_();
  }

 private:
  std::function<void()> after_barrier_, after_line_up_;
};

}  // namespace assay::test
