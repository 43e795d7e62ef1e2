#include "tests/emulation/nccl_world.h"

#include "tests/emulation/runtime.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace assay::emulation {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int max_ranks = 64;
constexpr std::size_t piece_bytes = std::size_t{256} << 10;
constexpr std::size_t slot_bytes = std::size_t{64} << 10;

}  // namespace

// Mapped by every rank; initially zero. The ranks' pieces follow.
class WorldMemory {
 public:
  struct Rank {
    std::atomic<std::int32_t> pid;
    std::atomic<std::uint32_t> bell;  // futex: incremented when a peer has written or emptied a slot
    std::uint64_t stamp;
    std::uint64_t bytes;  // of the whole message
  };
  std::atomic<std::uint32_t> arrived;
  std::atomic<std::uint32_t> round;  // futex: incremented when all have arrived
  std::atomic<std::uint32_t> fault;
  Rank ranks[max_ranks];

  // A piece that one rank has written for another, which has not read it yet.
  struct Slot {
    std::atomic<std::uint32_t> bytes;  // 0: empty; else one more than the slot's bytes
    std::uint64_t whole;               // of the message
    char data[slot_bytes];
  };

  char* piece(int rank) { return reinterpret_cast<char*>(this) + head + static_cast<std::size_t>(rank) * piece_bytes; }
  Slot& slot(int from, int to, int size) {
    auto* slots = reinterpret_cast<Slot*>(piece(size));
    return slots[from * size + to];
  }
  static std::size_t bytes_for(int size) {
    const auto ranks = static_cast<std::size_t>(size);
    return head + ranks * piece_bytes + ranks * ranks * sizeof(Slot);
  }

 private:
  static constexpr std::size_t head = 4096;
};
static_assert(sizeof(WorldMemory) <= 4096);

namespace {

void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t seen, long milliseconds) {
  const timespec limit{milliseconds / 1000, milliseconds % 1000 * 1'000'000};
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, seen, &limit, nullptr, 0);
}
void wake_all(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// Dead, or a zombie that is not reaped yet.
bool process_is_gone(std::int32_t pid) {
  if (pid == 0) return false;  // has not joined yet
  if (::kill(pid, 0) != 0 && errno == ESRCH) return true;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return true;
  char text[512] = {};
  const ssize_t got = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  const char* end = got > 0 ? std::strrchr(text, ')') : nullptr;
  return end && (end[2] == 'Z' || end[2] == 'X');
}

}  // namespace

std::unique_ptr<SharedWorld> SharedWorld::join(const std::string& name, int rank, int size, double timeout_seconds) {
  if (size > max_ranks) return nullptr;
  const int fd = ::shm_open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return nullptr;
  const std::size_t bytes = WorldMemory::bytes_for(size);
  const bool grown = ::ftruncate(fd, static_cast<off_t>(bytes)) == 0;
  void* memory = grown ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
  ::close(fd);
  if (memory == MAP_FAILED) return nullptr;
  auto* shared = static_cast<WorldMemory*>(memory);
  std::unique_ptr<SharedWorld> world(new SharedWorld(name, rank, size, shared, bytes));
  shared->ranks[rank].pid.store(::getpid());
  const auto start = Clock::now();
  for (;;) {
    int come = 0;
    for (int other = 0; other < size; ++other) {
      const std::int32_t pid = shared->ranks[other].pid.load();
      if (pid == 0) continue;
      if (process_is_gone(pid)) return nullptr;
      ++come;
    }
    if (come == size) break;
    if (timeout_seconds >= 0 && std::chrono::duration<double>(Clock::now() - start).count() > timeout_seconds)
      return nullptr;
    ::usleep(500);
  }
  // All have mapped it: drop the name, so that nothing is left behind if they die.
  if (!world->barrier()) return nullptr;
  ::shm_unlink(name.c_str());
  return world;
}

SharedWorld::SharedWorld(std::string name, int rank, int size, WorldMemory* shared, std::size_t mapped)
    : name_(std::move(name)), rank_(rank), size_(size), shared_(shared), mapped_(mapped) {}

SharedWorld::~SharedWorld() {
  ::shm_unlink(name_.c_str());
  ::munmap(shared_, mapped_);
}

WorldFault SharedWorld::fault() const { return static_cast<WorldFault>(shared_->fault.load()); }

void SharedWorld::fail_with(WorldFault fault) {
  std::uint32_t none = 0;
  shared_->fault.compare_exchange_strong(none, static_cast<std::uint32_t>(fault));
  shared_->round.fetch_add(1);
  wake_all(shared_->round);
}

bool SharedWorld::barrier() {
  const std::uint32_t round = shared_->round.load();
  if (fault() != WorldFault::none) return false;
  if (shared_->arrived.fetch_add(1) + 1 == static_cast<std::uint32_t>(size_)) {
    shared_->arrived.store(0);
    shared_->round.fetch_add(1);
    wake_all(shared_->round);
    return fault() == WorldFault::none;
  }
  while (shared_->round.load() == round) {
    sleep_on(shared_->round, round, 100);
    if (shared_->round.load() != round) break;
    watch_peers();
  }
  return fault() == WorldFault::none;
}

void SharedWorld::watch_peers() {
  for (int other = 0; other < size_; ++other)
    if (process_is_gone(shared_->ranks[other].pid.load())) fail_with(WorldFault::gone);
}

// Moves one piece if the slot allows; true if it did.
bool SharedWorld::step(Transfer& one) {
  WorldMemory::Slot& slot = one.sends ? shared_->slot(rank_, one.peer, size_) : shared_->slot(one.peer, rank_, size_);
  const std::uint32_t state = slot.bytes.load(std::memory_order_acquire);
  if (one.sends == (state != 0)) return false;
  if (one.sends) {
    const std::size_t length = std::min(slot_bytes, one.bytes - one.moved);
    slot.whole = one.bytes;
    std::memcpy(slot.data, one.data + one.moved, length);
    one.moved += length;
    slot.bytes.store(static_cast<std::uint32_t>(length) + 1, std::memory_order_release);
  } else {
    const std::size_t length = state - 1;
    if (slot.whole != one.bytes || one.moved + length > one.bytes) {
      fail_with(WorldFault::mismatch);
      return true;
    }
    std::memcpy(one.data + one.moved, slot.data, length);
    one.moved += length;
    slot.bytes.store(0, std::memory_order_release);
  }
  auto& bell = shared_->ranks[one.peer].bell;
  bell.fetch_add(1, std::memory_order_release);
  wake_all(bell);
  one.done = one.moved == one.bytes;
  return true;
}

bool SharedWorld::transfer(std::vector<Transfer> transfers) {
  auto seen = Clock::now();
  auto& bell = shared_->ranks[rank_].bell;
  for (;;) {
    const std::uint32_t rung = bell.load(std::memory_order_acquire);
    bool open = false, moved = false;
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      Transfer& one = transfers[i];
      if (one.done) continue;
      open = true;
      const bool behind = std::any_of(transfers.begin(), transfers.begin() + static_cast<std::ptrdiff_t>(i),
                                      [&](const Transfer& earlier) {
                                        return !earlier.done && earlier.sends == one.sends && earlier.peer == one.peer;
                                      });
      if (!behind) moved = step(one) || moved;
    }
    if (fault() != WorldFault::none) return false;
    if (!open) return true;
    if (moved) continue;
    // On a busy machine a yielding process waits for the others' time slices; one that is woken does not.
    sleep_on(bell, rung, 100);
    if (Clock::now() - seen > std::chrono::milliseconds(100)) {
      watch_peers();
      seen = Clock::now();
    }
  }
}

bool SharedWorld::exchange(std::uint64_t stamp, const void* data, std::size_t bytes, const Read& read) {
  WorldMemory::Rank& own = shared_->ranks[rank_];
  own.stamp = stamp;
  own.bytes = bytes;
  std::size_t most = 0;
  for (std::size_t offset = 0;; offset += piece_bytes) {
    if (offset < bytes)
      std::memcpy(shared_->piece(rank_), static_cast<const char*>(data) + offset,
                  std::min(piece_bytes, bytes - offset));
    if (!barrier()) return false;
    if (offset == 0)
      for (int other = 0; other < size_; ++other) {
        most = std::max<std::size_t>(most, shared_->ranks[other].bytes);
        if (shared_->ranks[other].stamp != stamp) fail_with(WorldFault::mismatch);
      }
    if (fault() != WorldFault::none) return false;
    for (int other = 0; other < size_; ++other) {
      const std::size_t whole = shared_->ranks[other].bytes;
      if (offset < whole) read(other, offset, shared_->piece(other), std::min(piece_bytes, whole - offset));
    }
    if (!barrier()) return false;
    if (offset + piece_bytes >= most) return true;
  }
}

ConnectionMemory::~ConnectionMemory() { cudaFree(data_); }

void ConnectionMemory::connect() {
  if (const auto bytes = scripted("nccl_memory"); bytes && !data_) cudaMalloc(&data_, bytes_of(*bytes));
}

}  // namespace assay::emulation
