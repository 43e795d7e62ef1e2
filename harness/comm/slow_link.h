// The slow-link fault: one rank's link is slow, like Gigabit Ethernet among faster ones.
#pragma once

#include "harness/comm/forwarding_communicator.h"
#include "harness/device/device.h"

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

namespace assay {

// Wraps a communicator on the rank with the slow link. Each call takes 100 us longer there, plus 8 ns for each byte
// that crosses the link (125 MB/s). The delay is enqueued behind the call on its stream, so timing and graph capture
// include it. Agreement between ranks (barrier, line_up, max_of, ...) is not delayed.
class SlowLink final : public ForwardingCommunicator {
 public:
  // The sending thread calls `on_use` once, before the first delay. All arguments must outlive this.
  SlowLink(Communicator& inner, Device& device, std::function<void()> on_use)
      : ForwardingCommunicator(inner), device_(device), on_use_(std::move(on_use)) {}

  void all_reduce(const void* send, void* receive, std::size_t count, DType, ReduceOp, Stream&) override;
  void all_gather(const void* send, void* receive, std::size_t count, DType, Stream&) override;
  void reduce_scatter(const void* send, void* receive, std::size_t count, DType, ReduceOp, Stream&) override;
  void broadcast(const void* send, void* receive, std::size_t count, DType, int root, Stream&) override;
  void all_to_all(const void* send, void* receive, std::size_t count, DType, Stream&) override;
  void all_to_all_v(const void* send, std::span<const std::size_t> sent, void* receive,
                    std::span<const std::size_t> received, DType, Stream&) override;
  void send(const void* data, std::size_t count, DType, int to, Stream&) override;
  void receive(void* data, std::size_t count, DType, int from, Stream&) override;
  void group(const std::function<void()>& body, Stream&) override;
  // Its parts are slow, too.
  std::unique_ptr<Communicator> split(int colour, int key) override;

 private:
  SlowLink(std::unique_ptr<Communicator> part, Device& device, std::function<void()> on_use)
      : ForwardingCommunicator(std::move(part)), device_(device), on_use_(std::move(on_use)) {}
  // Adds the time that `bytes` take on the link to the stream.
  void delay_bytes(std::size_t bytes, Stream& stream);

  Device& device_;
  std::function<void()> on_use_;
  std::atomic<bool> used_{false};
  bool in_group_ = false;
  std::size_t sent_ = 0, received_ = 0;  // in the open group
};

}  // namespace assay
