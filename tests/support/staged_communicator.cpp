#include "tests/support/staged_communicator.h"

#include "harness/comm/forwarding_communicator.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace assay::test {

namespace {

class StagedCommunicator final : public ForwardingCommunicator {
 public:
  StagedCommunicator(Communicator& inner, Device& device)
      : ForwardingCommunicator(inner), device_(device), stream_(device.make_stream()) {}
  StagedCommunicator(std::unique_ptr<Communicator> owned, Device& device)
      : ForwardingCommunicator(std::move(owned)), device_(device), stream_(device.make_stream()) {}

  void all_reduce(const void* send, void* receive, std::size_t count, DType dtype, ReduceOp op, Stream&) override {
    const std::size_t bytes = count * size_of(dtype);
    both(send, bytes, receive, bytes,
         [&](const void* from, void* to) { inner_.all_reduce(from, to, count, dtype, op, *stream_); });
  }
  void all_gather(const void* send, void* receive, std::size_t count, DType dtype, Stream&) override {
    const std::size_t block = count * size_of(dtype);
    both(send, send == receive ? all(block) : block, receive, all(block),
         [&](const void* from, void* to) { inner_.all_gather(from, to, count, dtype, *stream_); });
  }
  void reduce_scatter(const void* send, void* receive, std::size_t count, DType dtype, ReduceOp op, Stream&) override {
    const std::size_t block = count * size_of(dtype);
    both(send, all(block), receive, send == receive ? all(block) : block,
         [&](const void* from, void* to) { inner_.reduce_scatter(from, to, count, dtype, op, *stream_); });
  }
  void broadcast(const void* send, void* receive, std::size_t count, DType dtype, int root, Stream&) override {
    both(send, count * size_of(dtype), receive, count * size_of(dtype),
         [&](const void* from, void* to) { inner_.broadcast(from, to, count, dtype, root, *stream_); });
  }
  void all_to_all(const void* send, void* receive, std::size_t count, DType dtype, Stream&) override {
    const std::size_t bytes = all(count * size_of(dtype));
    both(send, bytes, receive, bytes,
         [&](const void* from, void* to) { inner_.all_to_all(from, to, count, dtype, *stream_); });
  }
  void all_to_all_v(const void* send, std::span<const std::size_t> sent, void* receive,
                    std::span<const std::size_t> received, DType dtype, Stream&) override {
    const auto bytes = [&](std::span<const std::size_t> blocks) {
      return std::accumulate(blocks.begin(), blocks.end(), std::size_t{0}) * size_of(dtype);
    };
    both(send, bytes(sent), receive, bytes(received),
         [&](const void* from, void* to) { inner_.all_to_all_v(from, sent, to, received, dtype, *stream_); });
  }
  void send(const void* data, std::size_t count, DType dtype, int to, Stream&) override {
    Buffer& buffer = staged_.emplace_back(on_device(data, count * size_of(dtype)));
    inner_.send(buffer.data(), count, dtype, to, *stream_);
    if (!in_group_) finish();
  }
  void receive(void* data, std::size_t count, DType dtype, int from, Stream&) override {
    const std::size_t bytes = count * size_of(dtype);
    Buffer& buffer = staged_.emplace_back(on_device(data, bytes));
    backs_.push_back({data, buffer.data(), bytes});
    inner_.receive(buffer.data(), count, dtype, from, *stream_);
    if (!in_group_) finish();
  }
  void group(const std::function<void()>& body, Stream&) override {
    in_group_ = true;
    inner_.group(body, *stream_);
    in_group_ = false;
    finish();
  }
  std::unique_ptr<Communicator> split(int colour, int key) override {
    return std::make_unique<StagedCommunicator>(inner_.split(colour, key), device_);
  }

 private:
  struct Back {
    void* host;
    const void* device;
    std::size_t bytes;
  };

  std::size_t all(std::size_t block) const { return block * static_cast<std::size_t>(size()); }
  Buffer on_device(const void* data, std::size_t bytes) {
    Buffer buffer = device_.allocate(std::max<std::size_t>(bytes, 1));
    device_.copy(buffer.data(), data, bytes, *stream_);
    return buffer;
  }
  void finish() {
    for (const Back& back : backs_) device_.copy(back.host, back.device, back.bytes, *stream_);
    stream_->synchronize();
    backs_.clear();
    staged_.clear();
  }
  template <typename Call>
  void both(const void* send, std::size_t send_bytes, void* receive, std::size_t receive_bytes, const Call& call) {
    staged_.push_back(on_device(send, send_bytes));
    void* to = staged_.front().data();
    if (send != receive) to = staged_.emplace_back(on_device(receive, receive_bytes)).data();
    call(staged_.front().data(), to);
    if (send != receive) backs_.push_back({const_cast<void*>(send), staged_.front().data(), send_bytes});
    backs_.push_back({receive, to, receive_bytes});
    finish();
  }

  Device& device_;
  std::unique_ptr<Stream> stream_;
  bool in_group_ = false;
  std::vector<Buffer> staged_;
  std::vector<Back> backs_;
};

}  // namespace

std::unique_ptr<Communicator> make_staged_communicator(Communicator& inner, Device& device) {
  return std::make_unique<StagedCommunicator>(inner, device);
}

}  // namespace assay::test
