// Collectives between the ranks of a world. Every rank calls them in the same order.
#pragma once

#include "harness/core/dtype.h"
#include "harness/device/device.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace assay {

enum class ReduceOp { sum, max, min };

// How memory is registered with the library: by each rank for itself, or by all ranks together as a window in which
// equal offsets belong together, so that ranks may read and write each other's part (NCCL's symmetric memory).
enum class Registration { local, symmetric };

// Counts the collective calls of this rank. One thread writes it; another reads it to report on a rank that hangs. Two
// plain stores per call: 1 ns.
class CallCount {
 public:
  struct Seen {
    std::uint64_t begun = 0;
    std::uint64_t ended = 0;
    const char* name = "";  // the last call that was begun
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

// Counts a call for its lifetime.
class CountedCall {
 public:
  CountedCall(CallCount& count, const char* name) : count_(count) { count_.begin(name); }
  ~CountedCall() { count_.end(); }
  CountedCall(const CountedCall&) = delete;
  CountedCall& operator=(const CountedCall&) = delete;

 private:
  CallCount& count_;
};

// Buffers are dense arrays of `count` elements; every call is enqueued on `stream` (inline on a CPU). `send == receive`
// means in place, with MPI's and NCCL's conventions: in an all-gather the rank's part is at receive + rank * count, in
// a reduce-scatter the result is written to send + rank * count. At size 1 each call is the identity. Errors throw
// Error with the call and the library's message.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Library, version and the transport if known: "Open MPI 4.1.4, vader".
  virtual std::string implementation() const = 0;

  virtual void all_reduce(const void* send, void* receive, std::size_t count, DType, ReduceOp, Stream&) = 0;
  // `receive` has size * count elements.
  virtual void all_gather(const void* send, void* receive, std::size_t count, DType, Stream&) = 0;
  // `send` has size * count elements, `receive` has count.
  virtual void reduce_scatter(const void* send, void* receive, std::size_t count, DType, ReduceOp, Stream&) = 0;
  // The root's `send` to every rank's `receive`, the root's included; other ranks' `send` is not read.
  virtual void broadcast(const void* send, void* receive, std::size_t count, DType, int root, Stream&) = 0;
  // `send` and `receive` have size * count elements: count to and from every rank.
  virtual void all_to_all(const void* send, void* receive, std::size_t count, DType, Stream&) = 0;
  // Blocks of different sizes: `sent[r]` elements to rank r and `received[r]` from it, one after another in both
  // buffers. By default a group of messages.
  virtual void all_to_all_v(const void* send, std::span<const std::size_t> sent, void* receive,
                            std::span<const std::size_t> received, DType, Stream&);
  virtual void send(const void* data, std::size_t count, DType, int to, Stream&) = 0;
  virtual void receive(void* data, std::size_t count, DType, int from, Stream&) = 0;
  // Sends and receives issued inside `body` progress together, so a pair cannot deadlock.
  virtual void group(const std::function<void()>& body, Stream&) = 0;
  virtual void barrier() = 0;
  // Enqueues a collective of a few bytes, which ends on all ranks at the same time: what follows it on `stream` starts
  // together, even where ranks come out of barrier() one after another. Nothing on inline streams, where no collective
  // ends more evenly than the barrier itself.
  virtual void line_up(Stream& stream) { (void)stream; }

  // A communicator of the ranks with the same colour, ordered by key.
  virtual std::unique_ptr<Communicator> split(int colour, int key) = 0;
  // Kills the whole world at once.
  [[noreturn]] virtual void abort(const std::string& why) = 0;
  // Collectives, groups and barriers so far; sends and receives outside groups do not count.
  virtual const CallCount& calls() const { return calls_; }
  // An asynchronous error since the last call; empty if there was none.
  virtual std::string poll_error() { return {}; }

  // Host-side agreement on a few numbers, for the sampler, outside the timed region. Uses host memory on any device;
  // complete when the call returns.
  virtual double max_of(double value);
  virtual double broadcast_value(double value, int root = 0);
  // `bytes` of every rank to every rank; `receive` has size * bytes.
  virtual void all_gather_host(const void* send, void* receive, std::size_t bytes);

  // The transports of every connection that this process has made so far: "P2P/CUMEM, SHM/direct/direct". Libraries
  // connect at the first call that needs it and keep the connection, so it may be from before this case. Empty:
  // none, or this communicator does not report them. Throws Error with the reason if they are unknown here.
  virtual std::string connections() { return {}; }
  // Warnings for readers of a record, with a fix for each, such as a socket between two GPUs of one host.
  virtual std::vector<std::string> remarks() { return {}; }
  // Runs `call`, which makes one collective call, and returns what the library chose for it: "RING/LL". Empty: unknown.
  virtual std::string choice_of(const std::function<void()>& call) {
    call();
    return {};
  }
  // Why the library cannot register memory in this way; empty if it can. Called on every rank.
  virtual std::string why_not_registered(Registration how) {
    (void)how;
    return implementation() + " registers no memory";
  }
  // Device memory registered with the library, which may then access it directly. Empty if the library cannot
  // register memory; throws Error if there is not enough. Symmetric memory is allocated on every rank, the same number
  // of bytes. Release it before the communicator.
  virtual Buffer allocate_registered(std::size_t bytes, Registration how) {
    (void)bytes, (void)how;
    return {};
  }

 protected:
  CallCount calls_;
};

// One rank, no library. `device`, if given, makes the copies, in stream order; it must outlive the communicator.
std::unique_ptr<Communicator> make_self_communicator(Device* device = nullptr);
// Which threads may call the communicator: only the one that made it, or several, one at a time (a gradient reducer).
// Open MPI 4.1 locks in the latter case, which costs 12 to 25 % of an 8-byte all-reduce on one host, and nothing
// measurable of a bucket of gradients.
enum class MpiThreads { single, serialized };
// The world that MPI was started with; loads libassay-mpi.so. The first call initialises MPI at the level it requests;
// MPI is finalised at exit. Throws Error if this MPI does not support that level.
std::unique_ptr<Communicator> make_mpi_communicator(MpiThreads threads = MpiThreads::single);

}  // namespace assay
