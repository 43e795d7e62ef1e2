// One rank, no library: every call is the identity, a copy if send and receive differ, by the device or, without one,
// by the host.
#include "harness/comm/communicator.h"
#include "harness/core/error.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace assay {

namespace {

class SelfCommunicator final : public Communicator {
 public:
  explicit SelfCommunicator(Device* device) : device_(device) {}
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string implementation() const override { return "self"; }

  void all_reduce(const void* send, void* receive, std::size_t count, DType dtype, ReduceOp, Stream& stream) override {
    copy(send, receive, count, dtype, stream);
  }
  void all_gather(const void* send, void* receive, std::size_t count, DType dtype, Stream& stream) override {
    copy(send, receive, count, dtype, stream);
  }
  void reduce_scatter(const void* send, void* receive, std::size_t count, DType dtype, ReduceOp,
                      Stream& stream) override {
    copy(send, receive, count, dtype, stream);
  }
  void broadcast(const void* send, void* receive, std::size_t count, DType dtype, int root, Stream& stream) override {
    check_rank("broadcast", root);
    copy(send, receive, count, dtype, stream);
  }
  void all_to_all(const void* send, void* receive, std::size_t count, DType dtype, Stream& stream) override {
    copy(send, receive, count, dtype, stream);
  }

  void send(const void* data, std::size_t count, DType dtype, int to, Stream&) override {
    check_rank("send", to);
    ASSAY_CHECK(in_group_, "send to the rank itself outside a group would wait forever");
    sends_.push_back({data, nullptr, count * size_of(dtype)});
  }
  void receive(void* data, std::size_t count, DType dtype, int from, Stream&) override {
    check_rank("receive", from);
    ASSAY_CHECK(in_group_, "receive from the rank itself outside a group would wait forever");
    receives_.push_back({nullptr, data, count * size_of(dtype)});
  }
  void group(const std::function<void()>& body, Stream& stream) override {
    ASSAY_CHECK(!in_group_, "groups do not nest");
    const Group open(*this);
    body();
    ASSAY_CHECK(sends_.size() == receives_.size(), "group: {} sends and {} receives", sends_.size(), receives_.size());
    for (std::size_t i = 0; i < sends_.size(); ++i) {
      ASSAY_CHECK(sends_[i].bytes == receives_[i].bytes, "group: {} bytes sent and {} received", sends_[i].bytes,
                  receives_[i].bytes);
      move(sends_[i].from, receives_[i].to, sends_[i].bytes, stream);
    }
  }
  void barrier() override {}

  void all_gather_host(const void* send, void* receive, std::size_t bytes) override {
    if (send != receive && bytes > 0) std::memmove(receive, send, bytes);
  }

  std::unique_ptr<Communicator> split(int, int) override { return make_self_communicator(device_); }
  [[noreturn]] void abort(const std::string& why) override {
    std::fprintf(stderr, "abort: %s\n", why.c_str());
    std::_Exit(static_cast<int>(ExitCode::broken));
  }

 private:
  struct Message {
    const void* from;
    void* to;
    std::size_t bytes;
  };
  // Messages of an open group; dropped if the body throws.
  struct Group {
    explicit Group(SelfCommunicator& owner) : comm(owner) { comm.in_group_ = true; }
    ~Group() {
      comm.in_group_ = false;
      comm.sends_.clear();
      comm.receives_.clear();
    }
    SelfCommunicator& comm;
  };

  void move(const void* from, void* to, std::size_t bytes, Stream& stream) const {
    if (from == to || bytes == 0) return;
    if (device_)
      device_->copy(to, from, bytes, stream);
    else
      std::memmove(to, from, bytes);
  }
  void copy(const void* send, void* receive, std::size_t count, DType dtype, Stream& stream) const {
    move(send, receive, count * size_of(dtype), stream);
  }
  static void check_rank(const char* call, int rank) {
    ASSAY_CHECK(rank == 0, "{}: no rank {} in a world of 1", call, rank);
  }

  Device* device_;
  bool in_group_ = false;
  std::vector<Message> sends_;
  std::vector<Message> receives_;
};

}  // namespace

std::unique_ptr<Communicator> make_self_communicator(Device* device) {
  return std::make_unique<SelfCommunicator>(device);
}

}  // namespace assay
