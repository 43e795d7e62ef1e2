// Passes every call to another communicator: what wrappers derive from, to change only some of the calls.
#pragma once

#include "harness/comm/communicator.h"

#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace assay {

class ForwardingCommunicator : public Communicator {
 public:
  // `inner` must outlive this.
  explicit ForwardingCommunicator(Communicator& inner) : inner_(inner) {}
  explicit ForwardingCommunicator(std::unique_ptr<Communicator> inner) : owned_(std::move(inner)), inner_(*owned_) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  std::string implementation() const override { return inner_.implementation(); }
  const CallCount& calls() const override { return inner_.calls(); }

  void all_reduce(const void* send, void* receive, std::size_t count, DType dtype, ReduceOp op,
                  Stream& stream) override {
    inner_.all_reduce(send, receive, count, dtype, op, stream);
  }
  void all_gather(const void* send, void* receive, std::size_t count, DType dtype, Stream& stream) override {
    inner_.all_gather(send, receive, count, dtype, stream);
  }
  void reduce_scatter(const void* send, void* receive, std::size_t count, DType dtype, ReduceOp op,
                      Stream& stream) override {
    inner_.reduce_scatter(send, receive, count, dtype, op, stream);
  }
  void broadcast(const void* send, void* receive, std::size_t count, DType dtype, int root, Stream& stream) override {
    inner_.broadcast(send, receive, count, dtype, root, stream);
  }
  void all_to_all(const void* send, void* receive, std::size_t count, DType dtype, Stream& stream) override {
    inner_.all_to_all(send, receive, count, dtype, stream);
  }
  void all_to_all_v(const void* send, std::span<const std::size_t> sent, void* receive,
                    std::span<const std::size_t> received, DType dtype, Stream& stream) override {
    inner_.all_to_all_v(send, sent, receive, received, dtype, stream);
  }
  void send(const void* data, std::size_t count, DType dtype, int to, Stream& stream) override {
    inner_.send(data, count, dtype, to, stream);
  }
  void receive(void* data, std::size_t count, DType dtype, int from, Stream& stream) override {
    inner_.receive(data, count, dtype, from, stream);
  }
  void group(const std::function<void()>& body, Stream& stream) override { inner_.group(body, stream); }
  void barrier() override { inner_.barrier(); }
  void line_up(Stream& stream) override { inner_.line_up(stream); }
  // Parts are not wrapped.
  std::unique_ptr<Communicator> split(int colour, int key) override { return inner_.split(colour, key); }
  [[noreturn]] void abort(const std::string& why) override {
    inner_.abort(why);
    std::abort();  // for the compiler, which does not see that a virtual call never returns
  }
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
  std::unique_ptr<Communicator> owned_;  // or null

 protected:
  Communicator& inner_;
};

}  // namespace assay
