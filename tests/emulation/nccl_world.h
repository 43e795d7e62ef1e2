// The shared memory of emulated NCCL communicators: one file per communicator, named by its id and mapped by every
// rank's process. Ranks write their bytes there in pieces and read the others' between two barriers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace assay::emulation {

// Why a world failed: a rank's process is gone, or ranks made different calls.
enum class WorldFault : std::uint32_t { none, gone, mismatch, aborted };

class WorldMemory;

// One rank's view of a world. All ranks make the same calls in the same order; each call waits for the others.
class SharedWorld {
 public:
  // Waits until all ranks have joined, at most `timeout_seconds` (negative: forever); null if they have not.
  static std::unique_ptr<SharedWorld> join(const std::string& name, int rank, int size, double timeout_seconds);
  ~SharedWorld();
  SharedWorld(const SharedWorld&) = delete;
  SharedWorld& operator=(const SharedWorld&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& name() const { return name_; }
  WorldFault fault() const;
  void fail_with(WorldFault fault);

  // One call of all ranks; `stamp` identifies it and must be the same everywhere. Each rank publishes `bytes` at `data`
  // in pieces, and read(rank, offset, piece, length) is called for each piece of every rank. `bytes` may differ between
  // ranks. False if the world failed.
  using Read = std::function<void(int rank, std::size_t offset, const char* piece, std::size_t length)>;
  bool exchange(std::uint64_t stamp, const void* data, std::size_t bytes, const Read& read);
  // Messages between two ranks, in order; those of one call progress together. False if the world failed.
  struct Transfer {
    bool sends = false;
    int peer = 0;
    char* data = nullptr;
    std::size_t bytes = 0;
    std::size_t moved = 0;
    bool done = false;
  };
  bool transfer(std::vector<Transfer> transfers);
  // A new number at each call, the same on every rank: names the parts of a split.
  std::uint64_t next_part() { return ++parts_; }

 private:
  SharedWorld(std::string name, int rank, int size, WorldMemory* shared, std::size_t mapped);
  bool barrier();
  bool step(Transfer& transfer);
  void watch_peers();

  std::string name_;
  int rank_;
  int size_;
  WorldMemory* shared_;
  std::size_t mapped_;
  std::uint64_t parts_ = 0;
};

// Device memory of a communicator, which it allocates at its first call: nccl_memory of the script.
class ConnectionMemory {
 public:
  ConnectionMemory() = default;
  ~ConnectionMemory();
  ConnectionMemory(const ConnectionMemory&) = delete;
  ConnectionMemory& operator=(const ConnectionMemory&) = delete;
  void connect();

 private:
  void* data_ = nullptr;
};

}  // namespace assay::emulation
