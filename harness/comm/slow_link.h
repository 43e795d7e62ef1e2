// The slow-link fault: one rank's link is slow, like Gigabit Ethernet among faster ones.
#pragma once

#include "harness/comm/communicator.h"
#include "harness/device/device.h"

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

namespace assay {

// Wraps a communicator on the rank with the slow link. Each call takes 100 us longer there, plus 8 ns for each byte
// that crosses the link (125 MB/s). The delay is enqueued behind the call on its stream, so timing and graph capture
// include it. Agreement between ranks (barrier, line_up, max_of, ...) is not delayed.
class SlowLink final : public Communicator {
 public:
  // The sending thread calls `on_use` once, before the first delay. All arguments must outlive this.
  SlowLink(Communicator& inner, Device& device, std::function<void()> on_use)
      : inner_(inner), device_(device), on_use_(std::move(on_use)) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  std::string implementation() const override { return inner_.implementation(); }
  const CallCount& calls() const override { return inner_.calls(); }
  void all_reduce(const void* send, void* receive, std::size_t count, DType, ReduceOp, Stream&) override;
  void all_gather(const void* send, void* receive, std::size_t count, DType, Stream&) override;
  void reduce_scatter(const void* send, void* receive, std::size_t count, DType, ReduceOp, Stream&) override;
  void broadcast(const void* send, void* receive, std::size_t count, DType, int root, Stream&) override;
  void all_to_all(const void* send, void* receive, std::size_t count, DType, Stream&) override;
  void send(const void* data, std::size_t count, DType, int to, Stream&) override;
  void receive(void* data, std::size_t count, DType, int from, Stream&) override;
  void group(const std::function<void()>& body, Stream&) override;
  void barrier() override { inner_.barrier(); }
  void line_up(Stream& stream) override { inner_.line_up(stream); }
  // Its parts are slow, too.
  std::unique_ptr<Communicator> split(int colour, int key) override;
  [[noreturn]] void abort(const std::string& why) override;
  std::string poll_error() override { return inner_.poll_error(); }
  double max_of(double value) override { return inner_.max_of(value); }
  double broadcast_value(double value, int root) override { return inner_.broadcast_value(value, root); }
  void all_gather_host(const void* send, void* receive, std::size_t bytes) override {
    inner_.all_gather_host(send, receive, bytes);
  }
  std::string connections() override { return inner_.connections(); }
  std::vector<std::string> remarks() override { return inner_.remarks(); }
  std::string choice_of(const std::function<void()>& call) override { return inner_.choice_of(call); }
  std::string why_not_registered(Registration how) override { return inner_.why_not_registered(how); }
  Buffer allocate_registered(std::size_t bytes, Registration how) override {
    return inner_.allocate_registered(bytes, how);
  }

 private:
  SlowLink(std::unique_ptr<Communicator> part, Device& device, std::function<void()> on_use)
      : owned_(std::move(part)), inner_(*owned_), device_(device), on_use_(std::move(on_use)) {}
  // Adds the time that `bytes` take on the link to the stream.
  void delay_bytes(std::size_t bytes, Stream& stream);

  std::unique_ptr<Communicator> owned_;  // of a split
  Communicator& inner_;
  Device& device_;
  std::function<void()> on_use_;
  std::atomic<bool> used_{false};
  bool in_group_ = false;
  std::size_t sent_ = 0, received_ = 0;  // in the open group
};

}  // namespace assay
