#include "tests/support/thread_communicator.h"

#include "harness/comm/bf16_reduce.h"
#include "harness/core/error.h"

#include <algorithm>
#include <barrier>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>

namespace assay::test {

namespace {

using Bytes = std::vector<char>;

// Shared by the ranks of one world.
struct Shared {
  explicit Shared(int ranks) : barrier(ranks), posted(ranks) {}

  std::barrier<> barrier;
  std::vector<Bytes> posted;                        // one per rank
  std::vector<std::tuple<int, int, int>> split_of;  // colour, key, rank
  std::map<int, std::shared_ptr<Shared>> parts;     // by colour
  std::mutex mutex;
  std::condition_variable arrived;
  std::map<std::pair<int, int>, std::vector<Bytes>> mail;  // (from, to)
};

template <typename T>
void reduce_as(ReduceOp op, const void* in, void* in_out, std::size_t count) {
  const T* a = static_cast<const T*>(in);
  T* b = static_cast<T*>(in_out);
  for (std::size_t i = 0; i < count; ++i)
    b[i] = op == ReduceOp::sum   ? static_cast<T>(a[i] + b[i])
           : op == ReduceOp::max ? std::max(a[i], b[i])
                                 : std::min(a[i], b[i]);
}

void reduce(ReduceOp op, DType dtype, const void* in, void* in_out, std::size_t count) {
  switch (dtype) {
    case DType::f64: return reduce_as<double>(op, in, in_out, count);
    case DType::f32: return reduce_as<float>(op, in, in_out, count);
    case DType::i64: return reduce_as<std::int64_t>(op, in, in_out, count);
    case DType::bf16: return reduce_bf16(op, static_cast<const bf16*>(in), static_cast<bf16*>(in_out), count);
    default: throw Error("tests do not reduce this type");
  }
}

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<Shared> shared, int rank, int size)
      : shared_(std::move(shared)), rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string implementation() const override { return "threads"; }

  void all_reduce(const void* send, void* receive, std::size_t count, DType dtype, ReduceOp op, Stream&) override {
    exchange(send, count * size_of(dtype), [&](const std::vector<Bytes>& all) {
      Bytes sum = all[0];
      for (int r = 1; r < size_; ++r) reduce(op, dtype, all[index(r)].data(), sum.data(), count);
      put(receive, sum.data(), sum.size());
    });
  }
  void all_gather(const void* send, void* receive, std::size_t count, DType dtype, Stream&) override {
    const std::size_t block = count * size_of(dtype);
    const void* own = send == receive ? offset(receive, block, rank_) : send;
    exchange(own, block, [&](const std::vector<Bytes>& all) {
      for (int r = 0; r < size_; ++r) put(offset(receive, block, r), all[index(r)].data(), block);
    });
  }
  void reduce_scatter(const void* send, void* receive, std::size_t count, DType dtype, ReduceOp op, Stream&) override {
    const std::size_t block = count * size_of(dtype);
    void* to = send == receive ? offset(receive, block, rank_) : receive;
    exchange(send, block * index(size_), [&](const std::vector<Bytes>& all) {
      const std::size_t at = block * index(rank_);
      Bytes sum(all[0].begin() + static_cast<std::ptrdiff_t>(at),
                all[0].begin() + static_cast<std::ptrdiff_t>(at + block));
      for (int r = 1; r < size_; ++r) reduce(op, dtype, all[index(r)].data() + at, sum.data(), count);
      put(to, sum.data(), block);
    });
  }
  void broadcast(const void* send, void* receive, std::size_t count, DType dtype, int root, Stream&) override {
    const std::size_t bytes = count * size_of(dtype);
    exchange(send, rank_ == root ? bytes : 0,
             [&](const std::vector<Bytes>& all) { put(receive, all[index(root)].data(), bytes); });
  }
  void all_to_all(const void* send, void* receive, std::size_t count, DType dtype, Stream&) override {
    const std::size_t block = count * size_of(dtype);
    exchange(send, block * index(size_), [&](const std::vector<Bytes>& all) {
      for (int r = 0; r < size_; ++r)
        put(offset(receive, block, r), all[index(r)].data() + block * index(rank_), block);
    });
  }
  void send(const void* data, std::size_t count, DType dtype, int to, Stream&) override {
    const char* from = static_cast<const char*>(data);
    const std::lock_guard lock(shared_->mutex);
    shared_->mail[{rank_, to}].emplace_back(from, from + count * size_of(dtype));
    shared_->arrived.notify_all();
  }
  void receive(void* data, std::size_t count, DType dtype, int from, Stream&) override {
    if (in_group_) {
      waiting_.push_back([=, this] { collect(data, count * size_of(dtype), from); });
    } else {
      collect(data, count * size_of(dtype), from);
    }
  }
  void group(const std::function<void()>& body, Stream&) override {
    in_group_ = true;
    body();
    in_group_ = false;
    for (const auto& wait : waiting_) wait();
    waiting_.clear();
  }
  void barrier() override {
    const CountedCall call(calls_, "barrier");
    meet();
  }

  std::unique_ptr<Communicator> split(int colour, int key) override {
    {
      const std::lock_guard lock(shared_->mutex);
      shared_->split_of.emplace_back(colour, key, rank_);
    }
    meet();
    std::vector<std::tuple<int, int, int>> members;
    for (const auto& entry : shared_->split_of)
      if (std::get<0>(entry) == colour) members.push_back(entry);
    std::sort(members.begin(), members.end());
    const int size = static_cast<int>(members.size());
    const auto own = std::find(members.begin(), members.end(), std::tuple(colour, key, rank_));
    std::shared_ptr<Shared> part;
    {
      const std::lock_guard lock(shared_->mutex);
      auto& slot = shared_->parts[colour];
      if (!slot) slot = std::make_shared<Shared>(size);
      part = slot;
    }
    meet();
    if (rank_ == 0) {
      shared_->split_of.clear();
      shared_->parts.clear();
    }
    meet();
    return std::make_unique<ThreadCommunicator>(part, static_cast<int>(own - members.begin()), size);
  }
  [[noreturn]] void abort(const std::string& why) override { throw Error("abort: " + why); }

 private:
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  static void* offset(void* base, std::size_t block, int rank) {
    return static_cast<char*>(base) + block * index(rank);
  }
  static void put(void* to, const void* from, std::size_t bytes) {
    if (bytes) std::memcpy(to, from, bytes);
  }

  void meet() { shared_->barrier.arrive_and_wait(); }
  // Every rank posts its bytes, then reads everyone's.
  template <typename F>
  void exchange(const void* data, std::size_t bytes, const F& read) {
    const CountedCall call(calls_, "exchange");
    const char* from = static_cast<const char*>(data);
    shared_->posted[index(rank_)].assign(from, from + bytes);
    meet();
    read(shared_->posted);
    meet();
  }
  void collect(void* data, std::size_t bytes, int from) {
    std::unique_lock lock(shared_->mutex);
    auto& box = shared_->mail[{from, rank_}];
    shared_->arrived.wait(lock, [&] { return !box.empty(); });
    ASSAY_CHECK(box.front().size() == bytes, "{} bytes arrived, {} expected", box.front().size(), bytes);
    put(data, box.front().data(), bytes);
    box.erase(box.begin());
  }

  std::shared_ptr<Shared> shared_;
  int rank_;
  int size_;
  bool in_group_ = false;
  std::vector<std::function<void()>> waiting_;
};

}  // namespace

void run_ranks(int ranks, const std::function<void(Communicator&)>& fn) {
  const auto shared = std::make_shared<Shared>(ranks);
  std::exception_ptr failure;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        ThreadCommunicator comm(shared, rank, ranks);
        fn(comm);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace assay::test
