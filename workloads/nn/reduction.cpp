#include "workloads/nn/reduction.h"

#include "harness/device/urgent_stream.h"
#include "workloads/nn/reducer.h"

namespace assay::nn {

namespace {

class ThreadReduction final : public Reduction {
 public:
  ThreadReduction(Communicator& comm, Device& device) : device_(device), reducer_(comm, device) {}

  void submit(Job job, Stream& compute) override {
    std::shared_ptr<Event> ready = device_.make_event();
    ready->record(compute);
    reducer_.submit([ready, job = std::move(job)](Communicator& comm, Stream& stream) {
      ready->synchronize();
      job(comm, stream);
    });
  }
  void join(Stream&) override { reducer_.wait(); }
  Mark mark() override { return reducer_.submitted(); }
  void after(Mark mark, Stream&) override { reducer_.wait_for(mark); }
  double cpu_seconds() const override { return reducer_.cpu_seconds(); }
  double wall_seconds() const override { return reducer_.wall_seconds(); }

 private:
  Device& device_;
  Reducer reducer_;
};

// Forks and joins by events, so that capturing `compute` into a graph includes the other stream's work. That stream has
// high priority: a collective needs few multiprocessors, but would wait for them behind every block of a large product.
class StreamReduction final : public Reduction {
 public:
  StreamReduction(Communicator& comm, Device& device)
      : comm_(comm), device_(device), stream_(make_urgent_stream(device)), joined_(device.make_event()) {}

  void submit(Job job, Stream& compute) override {
    if (forked_ == forks_.size()) forks_.push_back(device_.make_event());
    Event& fork = *forks_[forked_++];
    fork.record(compute);
    stream_->wait(fork);
    job(comm_, *stream_);
  }
  Mark mark() override {
    if (marked_ == marks_.size()) marks_.push_back(device_.make_event());
    marks_[marked_]->record(*stream_);
    return marked_++;
  }
  void after(Mark mark, Stream& compute) override { compute.wait(*marks_[mark]); }
  void join(Stream& compute) override {
    forked_ = marked_ = 0;
    joined_->record(*stream_);
    compute.wait(*joined_);
  }

 private:
  Communicator& comm_;
  Device& device_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::unique_ptr<Event>> forks_;  // of one step, in order; reused by the next
  std::size_t forked_ = 0;
  std::vector<std::unique_ptr<Event>> marks_;  // the same
  std::size_t marked_ = 0;
  std::unique_ptr<Event> joined_;
};

}  // namespace

std::unique_ptr<Reduction> make_reduction(Communicator& comm, Device& device) {
  if (device.kind() == DeviceKind::cpu) return std::make_unique<ThreadReduction>(comm, device);
  return std::make_unique<StreamReduction>(comm, device);
}

}  // namespace assay::nn
