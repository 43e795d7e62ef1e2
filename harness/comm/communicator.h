// Collectives between the ranks of a world. Every rank issues them in the same order.
#pragma once

#include "harness/core/dtype.h"
#include "harness/device/device.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace assay {

enum class ReduceOp { sum, max, min };

// How far this rank has come in the calls that all ranks make in the same order. Written by one thread at a time, read
// by another that answers for a rank which hangs. Two plain stores a call: 1 ns.
class CallCount {
 public:
  struct Seen {
    std::uint64_t begun = 0;
    std::uint64_t ended = 0;
    const char* name = "";  // of the last one begun
  };
  Seen seen() const {
    Seen now;
    now.ended = ended_.load(std::memory_order_relaxed);
    now.begun = begun_.load(std::memory_order_relaxed);
    now.name = name_.load(std::memory_order_relaxed);
    return now;
  }
  void begin(const char* name) {
    name_.store(name, std::memory_order_relaxed);
    begun_.store(begun_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void end() { ended_.store(begun_.load(std::memory_order_relaxed), std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> begun_{0}, ended_{0};
  std::atomic<const char*> name_{""};
};

// A call while it lasts.
class CountedCall {
 public:
  CountedCall(CallCount& count, const char* name) : count_(count) { count_.begin(name); }
  ~CountedCall() { count_.end(); }
  CountedCall(const CountedCall&) = delete;
  CountedCall& operator=(const CountedCall&) = delete;

 private:
  CallCount& count_;
};

// Buffers are dense arrays of `count` elements; every call is enqueued on `stream` (inline on a CPU).
// `send == receive` means in place, by MPI's and NCCL's conventions: in an all-gather the rank's part lies at
// receive + rank * count, in a reduce-scatter the result is written at send + rank * count.
// At size 1 each call is the identity. Errors throw Error that names the call and the library's word.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Library and version, and the transport where it can be known: "Open MPI 4.1.4, vader".
  virtual std::string implementation() const = 0;

  virtual void all_reduce(const void* send, void* receive, std::size_t count, DType, ReduceOp, Stream&) = 0;
  // receive holds size * count elements.
  virtual void all_gather(const void* send, void* receive, std::size_t count, DType, Stream&) = 0;
  // send holds size * count elements, receive count.
  virtual void reduce_scatter(const void* send, void* receive, std::size_t count, DType, ReduceOp, Stream&) = 0;
  // The root's `send` to every rank's `receive`, its own too; elsewhere `send` is not read.
  virtual void broadcast(const void* send, void* receive, std::size_t count, DType, int root, Stream&) = 0;
  // send and receive hold size * count elements: count to and from every rank.
  virtual void all_to_all(const void* send, void* receive, std::size_t count, DType, Stream&) = 0;
  virtual void send(const void* data, std::size_t count, DType, int to, Stream&) = 0;
  virtual void receive(void* data, std::size_t count, DType, int from, Stream&) = 0;
  // Sends and receives issued inside `body` progress together, so that a pair cannot deadlock.
  virtual void group(const std::function<void()>& body, Stream&) = 0;
  virtual void barrier() = 0;

  // Ranks with the same colour, ordered by key.
  virtual std::unique_ptr<Communicator> split(int colour, int key) = 0;
  // Ends the whole world, now.
  [[noreturn]] virtual void abort(const std::string& why) = 0;
  // Collectives, groups and barriers so far; sends and receives outside groups are not counted.
  virtual const CallCount& calls() const { return calls_; }
  // An error that arrived since the last call; empty when all is well.
  virtual std::string poll_error() { return {}; }

  // Host-side agreement on a few numbers, used by the sampler outside the timed region. Memory is the host's, and the
  // work is done when the call returns, whatever device the communicator serves.
  virtual double max_of(double value);
  virtual double broadcast_value(double value, int root = 0);
  // `bytes` of every rank to every rank; `receive` holds size * bytes.
  virtual void all_gather_host(const void* send, void* receive, std::size_t bytes);

  // How the bytes of this rank travel, as far as the library has told by now: "NVLS, P2P/CUMEM". Empty: unknown.
  virtual std::string transport() { return {}; }
  // What readers of a record must see of it, each with its mend: a socket between two GPUs of one host.
  virtual std::vector<std::string> remarks() { return {}; }
  // Runs `call`, which makes one collective call, and says what the library took for it: "RING/LL". Empty: unknown.
  virtual std::string choice_of(const std::function<void()>& call) {
    call();
    return {};
  }
  // Device memory that the library knows of and may reach directly, without copies of its own. Empty where the library
  // has no such thing; throws Error when there is not enough. To be released before the communicator.
  virtual Buffer allocate_registered(std::size_t bytes) {
    (void)bytes;
    return {};
  }

 protected:
  CallCount calls_;
};

// One rank, no library. `device`, where given, makes the copies, in the order of the stream; it must outlive this.
std::unique_ptr<Communicator> make_self_communicator(Device* device = nullptr);
// Which threads may call the communicator: only the one that made it, or several that take turns (a gradient reducer).
// Open MPI 4.1 locks from the second on, which costs 12 to 25 % of an 8-byte all-reduce on one host, and nothing that
// can be seen of a bucket of gradients.
enum class MpiThreads { single, serialized };
// The world that MPI was started with; loads libassay-mpi.so. MPI is initialised once, at the level that the first call
// asks for, and finalised at exit. Throws Error when this MPI has no such level.
std::unique_ptr<Communicator> make_mpi_communicator(MpiThreads threads = MpiThreads::single);

}  // namespace assay
