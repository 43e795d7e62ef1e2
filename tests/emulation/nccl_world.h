// The world in which emulated NCCL communicators meet: one file of shared memory a communicator, named by its id,
// mapped by every rank's process. Ranks put their bytes there, in pieces, and read those of the others between two
// barriers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace assay::emulation {

// What breaks a world: a rank's process that is gone, or ranks that make different calls.
enum class WorldFault : std::uint32_t { none, gone, mismatch, aborted };

class WorldMemory;

// One rank's hold on a world. Calls are made in the same order by all ranks; each waits for the others.
class SharedWorld {
 public:
  // Waits until all ranks have come, at most `patience_seconds` (below 0: for ever); null when they have not.
  static std::unique_ptr<SharedWorld> join(const std::string& name, int rank, int size, double patience_seconds);
  ~SharedWorld();
  SharedWorld(const SharedWorld&) = delete;
  SharedWorld& operator=(const SharedWorld&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& name() const { return name_; }
  WorldFault fault() const;
  void break_with(WorldFault fault);

  // One call of all ranks: `stamp` says which, and must be the same everywhere. In rounds, each rank shows `bytes` at
  // `data` in pieces; read(rank, offset, piece, length) is called for every rank and every piece of its bytes. `bytes`
  // may differ between ranks. False when the world broke.
  using Read = std::function<void(int rank, std::size_t offset, const char* piece, std::size_t length)>;
  bool exchange(std::uint64_t stamp, const void* data, std::size_t bytes, const Read& read);
  // Messages between two ranks, in order; those given together progress together. False when the world broke.
  struct Transfer {
    bool sends = false;
    int peer = 0;
    char* data = nullptr;
    std::size_t bytes = 0;
    std::size_t moved = 0;
    bool done = false;
  };
  bool transfer(std::vector<Transfer> transfers);
  // A number that is the same on every rank and new each time: names parts of a split.
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

}  // namespace assay::emulation
