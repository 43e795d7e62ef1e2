// A communicator that calls a function after each barrier, and another after each line-up: to let ranks come out of a
// barrier at different times.
#pragma once

#include "harness/comm/communicator.h"

#include <cstdlib>
#include <functional>
#include <utility>

namespace assay::test {

class HookedCommunicator final : public Communicator {
 public:
  // `inner` must outlive this.
  HookedCommunicator(
      Communicator& inner, std::function<void()> after_barrier, std::function<void()> after_line_up = [] {})
      : inner_(inner), after_barrier_(std::move(after_barrier)), after_line_up_(std::move(after_line_up)) {}

  void barrier() override {
    inner_.barrier();
    after_barrier_();
  }
  void line_up(Stream& stream) override {
    inner_.line_up(stream);
    after_line_up_();
  }

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  std::string implementation() const override { return inner_.implementation(); }
  const CallCount& calls() const override { return inner_.calls(); }
  void all_reduce(const void* send, void* receive, std::size_t n, DType dtype, ReduceOp op, Stream& stream) override {
    inner_.all_reduce(send, receive, n, dtype, op, stream);
  }
  void all_gather(const void* send, void* receive, std::size_t n, DType dtype, Stream& stream) override {
    inner_.all_gather(send, receive, n, dtype, stream);
  }
  void reduce_scatter(const void* send, void* receive, std::size_t n, DType dtype, ReduceOp op,
                      Stream& stream) override {
    inner_.reduce_scatter(send, receive, n, dtype, op, stream);
  }
  void broadcast(const void* send, void* receive, std::size_t n, DType dtype, int root, Stream& stream) override {
    inner_.broadcast(send, receive, n, dtype, root, stream);
  }
  void all_to_all(const void* send, void* receive, std::size_t n, DType dtype, Stream& stream) override {
    inner_.all_to_all(send, receive, n, dtype, stream);
  }
  void send(const void* data, std::size_t n, DType dtype, int to, Stream& stream) override {
    inner_.send(data, n, dtype, to, stream);
  }
  void receive(void* data, std::size_t n, DType dtype, int from, Stream& stream) override {
    inner_.receive(data, n, dtype, from, stream);
  }
  void group(const std::function<void()>& body, Stream& stream) override { inner_.group(body, stream); }
  std::unique_ptr<Communicator> split(int colour, int key) override { return inner_.split(colour, key); }
  [[noreturn]] void abort(const std::string& why) override {
    inner_.abort(why);
    std::abort();
  }
  double max_of(double value) override { return inner_.max_of(value); }
  double broadcast_value(double value, int root) override { return inner_.broadcast_value(value, root); }
  void all_gather_host(const void* send, void* receive, std::size_t bytes) override {
    inner_.all_gather_host(send, receive, bytes);
  }

 private:
  Communicator& inner_;
  std::function<void()> after_barrier_, after_line_up_;
};

}  // namespace assay::test
