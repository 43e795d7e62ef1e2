// Fibres for the threads of a block, their barriers and warp collectives. A fibre that finishes a thread starts the
// next one, so a kernel without barriers costs one function call per thread; a switch is a _longjmp.
#include "tests/emulation/block.h"

#include "harness/core/error.h"
#include "tests/emulation/fibre.h"
#include "tests/emulation/symbols.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace assay::emulation {

namespace {

constexpr unsigned max_threads = 1024;
constexpr std::byte garbage{0xff};  // NaN, and an index out of bounds
constexpr std::size_t guard = 256;  // bytes after the dynamic shared memory that must not change

// Which ready thread runs next: the one ready first (warps run in lockstep), the one ready last (a warp runs ahead to
// the next barrier), or a random one. Each order shows bugs that others hide.
enum class Order { first, last, any };
constexpr std::uint64_t orders = 3;

enum class State { waiting_to_start, running, at_barrier, in_collective, done };

struct Thread {
  unsigned index = 0;
  State state = State::waiting_to_start;
  Fibre* fibre = nullptr;
  int predicate = 0;
  Votes votes;
  std::uint64_t value = 0;  // a collective's operand, then its result
  unsigned source = 0;
};

// Lanes waiting for the others of their mask.
struct Gathering {
  Collective kind;
  unsigned mask;
  unsigned arrived;
};

struct Warp {
  unsigned live = 0;
  std::vector<Gathering> gatherings;
};

class Block {
 public:
  void run(const void* kernel, std::size_t shared_bytes, std::uint64_t number, void (*body)(void*), void* context);

  Votes barrier(int predicate);
  std::uint64_t collective(Collective kind, unsigned mask, std::uint64_t value, unsigned source);
  void* shared() { return shared_.data() + (alignment - reinterpret_cast<std::uintptr_t>(shared_.data()) % alignment); }
  unsigned lane() const { return current_->index % 32; }
  unsigned live_lanes() const { return warps_[current_->index / 32].live; }

 private:
  static constexpr std::size_t alignment = 1024;

  static void work(void* block) { static_cast<Block*>(block)->take_threads(); }
  void take_threads();
  void start(Thread& thread);
  void finish(Thread& thread);
  void wait(State state);
  void switch_away();
  Thread& take_ready();
  void release_barrier(const Thread* last);
  void settle(Warp& warp, unsigned first_thread);
  void close(const Gathering& gathering, unsigned first_thread);
  std::string stuck() const;
  void discard();

  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<Thread*> ready_;
  std::size_t next_ready_ = 0;
  unsigned next_ = 0;  // the first thread not yet started
  unsigned live_ = 0;
  unsigned at_barrier_ = 0;
  bool backwards_ = false;
  Order order_ = Order::first;
  std::uint64_t runs_ = 0;
  std::uint64_t random_ = 1;
  Thread* current_ = nullptr;
  std::vector<std::byte> shared_;
  void (*body_)(void*) = nullptr;
  void* context_ = nullptr;
  std::exception_ptr error_;
  Fibre main_;
  Fibre* self_ = &main_;
  std::vector<std::unique_ptr<Fibre>> fibres_;
  std::vector<Fibre*> idle_;
};

void Block::run(const void* kernel, std::size_t shared_bytes, std::uint64_t number, void (*body)(void*),
                void* context) {
  const unsigned count = blockDim.x * blockDim.y * blockDim.z;
  threads_.assign(count, {});
  warps_.resize((count + 31) / 32);
  for (unsigned w = 0; w < warps_.size(); ++w) {
    const unsigned lanes = std::min(32u, count - 32 * w);
    warps_[w].live = lanes == 32 ? ~0u : (1u << lanes) - 1;
    warps_[w].gatherings.clear();
  }
  ready_.clear();
  next_ready_ = 0;
  next_ = at_barrier_ = 0;
  live_ = count;
  backwards_ = number % 2 == 1;
  order_ = static_cast<Order>(runs_++ / 2 % orders);
  shared_.resize(shared_bytes + guard + alignment);
  std::fill(shared_.begin(), shared_.end(), garbage);
  body_ = body, context_ = context;
  error_ = nullptr;

  while (!error_ && (next_ready_ < ready_.size() || next_ < count)) switch_away();
  const auto where = [&] {
    return fmt::format("kernel {}, block ({}, {}, {}) of {} threads", kernel_name(kernel), blockIdx.x, blockIdx.y,
                       blockIdx.z, count);
  };
  if (error_) {
    discard();
    std::rethrow_exception(error_);
  }
  if (live_ > 0) {
    const std::string why = stuck();
    discard();
    throw Error(fmt::format("{} never ends: {}", where(), why));
  }
  const auto* end = static_cast<const std::byte*>(shared()) + shared_bytes;
  if (std::any_of(end, end + guard, [](std::byte b) { return b != garbage; }))
    throw Error(fmt::format("{} wrote past its {} bytes of dynamic shared memory", where(), shared_bytes));
}

// A fibre's loop: runs threads until none is left to start, then lets others run until the next block.
void Block::take_threads() {
  for (;;) {
    while (!error_ && next_ < threads_.size()) {
      const unsigned taken = next_++;
      start(threads_[backwards_ ? threads_.size() - 1 - taken : taken]);
    }
    idle_.push_back(self_);
    switch_away();
  }
}

void Block::start(Thread& thread) {
  thread.index = static_cast<unsigned>(&thread - threads_.data());
  thread.fibre = self_;
  thread.state = State::running;
  current_ = &thread;
  const unsigned i = thread.index;
  threadIdx = {i % blockDim.x, i / blockDim.x % blockDim.y, i / (blockDim.x * blockDim.y)};
  try {
    body_(context_);
  } catch (...) {
    error_ = std::current_exception();
    return;
  }
  finish(thread);
}

void Block::finish(Thread& thread) {
  thread.state = State::done;
  --live_;
  if (at_barrier_ > 0 && at_barrier_ == live_) release_barrier(nullptr);
  Warp& warp = warps_[thread.index / 32];
  warp.live &= ~(1u << thread.index % 32);
  if (!warp.gatherings.empty()) settle(warp, thread.index / 32 * 32);
}

// Lets other threads run until this one is ready again.
void Block::wait(State state) {
  Thread& me = *current_;
  me.state = state;
  switch_away();
  current_ = &me;
  me.state = State::running;
  const unsigned i = me.index;
  threadIdx = {i % blockDim.x, i / blockDim.x % blockDim.y, i / (blockDim.x * blockDim.y)};
}

// Switches to a ready thread, else to one not yet started, else back to the launch: the block is done or stuck.
void Block::switch_away() {
  Fibre* target = &main_;
  if (error_) {
  } else if (next_ready_ < ready_.size()) {
    target = take_ready().fibre;
  } else if (next_ < threads_.size()) {
    if (idle_.empty()) {
      fibres_.push_back(std::make_unique<Fibre>(&Block::work, this));
      idle_.push_back(fibres_.back().get());
    }
    target = idle_.back();
    idle_.pop_back();
  }
  Fibre* const me = self_;
  if (target == me) return;
  self_ = target;
  switch_fibre(*me, *target);
  self_ = me;
}

Thread& Block::take_ready() {
  if (order_ == Order::any) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX
    std::swap(ready_[next_ready_ + (random_ >> 33) % (ready_.size() - next_ready_)], ready_.back());
  }
  Thread* taken = nullptr;
  if (order_ == Order::first)
    taken = ready_[next_ready_++];
  else
    taken = ready_.back(), ready_.pop_back();
  if (next_ready_ == ready_.size()) ready_.clear(), next_ready_ = 0;
  return *taken;
}

Votes Block::barrier(int predicate) {
  Thread& me = *current_;
  me.predicate = predicate;
  me.state = State::at_barrier;
  if (++at_barrier_ < live_) {
    wait(State::at_barrier);
  } else {
    release_barrier(&me);
  }
  return me.votes;
}

// `last` is the thread that arrived last and continues at once; null if all others were waiting for one that returned.
void Block::release_barrier(const Thread* last) {
  Votes votes;
  for (const Thread& thread : threads_)
    if (thread.state == State::at_barrier) ++votes.threads, votes.count += thread.predicate != 0;
  for (Thread& thread : threads_) {
    if (thread.state != State::at_barrier) continue;
    thread.votes = votes;
    thread.state = State::running;
    if (&thread != last) ready_.push_back(&thread);
  }
  at_barrier_ = 0;
}

std::uint64_t Block::collective(Collective kind, unsigned mask, std::uint64_t value, unsigned source) {
  Thread& me = *current_;
  const unsigned bit = 1u << me.index % 32;
  if (!(mask & bit))
    throw Error(fmt::format("thread {} of block ({}, {}, {}) is in a warp collective whose mask {:#x} leaves it out",
                            me.index, blockIdx.x, blockIdx.y, blockIdx.z, mask));
  me.value = value;
  me.source = source;
  Warp& warp = warps_[me.index / 32];
  const unsigned first_thread = me.index / 32 * 32;
  auto gathering = std::find_if(warp.gatherings.begin(), warp.gatherings.end(),
                                [&](const Gathering& m) { return m.mask == mask && m.kind == kind; });
  if (gathering == warp.gatherings.end()) gathering = warp.gatherings.insert(gathering, {kind, mask, 0});
  gathering->arrived |= bit;
  if (gathering->arrived == (mask & warp.live)) {
    const Gathering complete = *gathering;
    warp.gatherings.erase(gathering);
    close(complete, first_thread);
  } else {
    wait(State::in_collective);
  }
  return me.value;
}

// Completes a warp's gatherings that now have all their lanes.
void Block::settle(Warp& warp, unsigned first_thread) {
  for (std::size_t i = 0; i < warp.gatherings.size();) {
    const Gathering gathering = warp.gatherings[i];
    if (gathering.arrived != (gathering.mask & warp.live)) {
      ++i;
      continue;
    }
    warp.gatherings.erase(warp.gatherings.begin() + static_cast<std::ptrdiff_t>(i));
    close(gathering, first_thread);
  }
}

template <typename T, typename F>
std::uint64_t fold(unsigned lanes, const std::array<std::uint64_t, 32>& values, F combine) {
  bool first = true;
  T result{};
  for (unsigned rest = lanes; rest != 0; rest &= rest - 1) {
    const T value = static_cast<T>(values[static_cast<unsigned>(std::countr_zero(rest))]);
    result = first ? value : combine(result, value);
    first = false;
  }
  return static_cast<std::uint32_t>(result);
}

std::uint64_t result_of(Collective kind, unsigned lanes, const std::array<std::uint64_t, 32>& values) {
  using U = std::uint32_t;
  using I = std::int32_t;
  switch (kind) {
    case Collective::add: return fold<U>(lanes, values, [](U x, U y) { return x + y; });
    case Collective::min: return fold<U>(lanes, values, [](U x, U y) { return std::min(x, y); });
    case Collective::max: return fold<U>(lanes, values, [](U x, U y) { return std::max(x, y); });
    case Collective::min_signed: return fold<I>(lanes, values, [](I x, I y) { return std::min(x, y); });
    case Collective::max_signed: return fold<I>(lanes, values, [](I x, I y) { return std::max(x, y); });
    case Collective::bit_and: return fold<U>(lanes, values, [](U x, U y) { return x & y; });
    case Collective::bit_or: return fold<U>(lanes, values, [](U x, U y) { return x | y; });
    case Collective::bit_xor: return fold<U>(lanes, values, [](U x, U y) { return x ^ y; });
    case Collective::sync:
    case Collective::shuffle:
    case Collective::ballot:
    case Collective::match: break;
  }
  return 0;
}

void Block::close(const Gathering& gathering, unsigned first_thread) {
  std::array<std::uint64_t, 32> values{};
  const auto each = [&](auto visit) {
    for (unsigned rest = gathering.arrived; rest != 0; rest &= rest - 1) {
      const auto at = static_cast<unsigned>(std::countr_zero(rest));
      visit(at, threads_[first_thread + at]);
    }
  };
  each([&](unsigned at, Thread& thread) { values[at] = thread.value; });
  const auto lanes_with = [&](auto holds) {
    unsigned bits = 0;
    each([&](unsigned at, Thread&) { bits |= holds(values[at]) ? 1u << at : 0u; });
    return bits;
  };
  std::uint64_t result = result_of(gathering.kind, gathering.arrived, values);
  if (gathering.kind == Collective::ballot) result = lanes_with([](std::uint64_t value) { return value != 0; });
  each([&](unsigned, Thread& thread) {
    if (gathering.kind == Collective::shuffle)
      thread.value = gathering.arrived >> (thread.source % 32) & 1 ? values[thread.source % 32] : ~std::uint64_t{0};
    else if (gathering.kind == Collective::match)
      thread.value = lanes_with([&, mine = thread.value](std::uint64_t value) { return value == mine; });
    else
      thread.value = result;
    if (thread.state == State::in_collective) ready_.push_back(&thread);
  });
}

// What the threads of a deadlocked block are waiting for.
std::string Block::stuck() const {
  const auto barrier = std::count_if(threads_.begin(), threads_.end(),
                                     [](const Thread& thread) { return thread.state == State::at_barrier; });
  std::string text;
  if (barrier > 0) text = fmt::format("{} threads wait at a barrier of the block", barrier);
  for (std::size_t w = 0; w < warps_.size(); ++w)
    for (const Gathering& gathering : warps_[w].gatherings)
      text += fmt::format("{}lanes {:#x} of warp {} wait in a collective of mask {:#x}", text.empty() ? "" : "; ",
                          gathering.arrived, w, gathering.mask);
  return text;
}

// Fibres that stopped inside a thread are dropped with their stacks' contents.
void Block::discard() {
  idle_.clear();
  fibres_.clear();
}

// One launch at a time per process: indices and shared arrays exist once.
std::recursive_mutex running;
Block& block() {
  static Block& only = *new Block;  // never destroyed: a thread may still launch while the process exits
  return only;
}

// Steps through `count` blocks in an order that exposes dependences between neighbours: by a number coprime to the
// count.
std::uint64_t step_for(std::uint64_t count) {
  std::uint64_t step = count / 2 + count / 8 + 1;
  while (std::gcd(step, count) != 1) ++step;
  return step;
}

}  // namespace

void run_grid(const void* kernel, dim3 grid, dim3 block_size, std::size_t shared_bytes, void (*thread)(void*),
              void* context) {
  const std::lock_guard lock(running);
  gridDim = grid, blockDim = block_size;
  ASSAY_CHECK(blockDim.x * blockDim.y * blockDim.z <= max_threads, "a block of more than {} threads", max_threads);
  const std::uint64_t count = std::uint64_t{grid.x} * grid.y * grid.z, step = step_for(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t at = (i * step + step / 2) % count;
    blockIdx = {static_cast<unsigned>(at % grid.x), static_cast<unsigned>(at / grid.x % grid.y),
                static_cast<unsigned>(at / grid.x / grid.y)};
    // Fills all arrays of the module, so not for each of many blocks.
    if (i < 4 || i % 64 == 0) fill_shared_arrays(garbage);
    block().run(kernel, shared_bytes, i, thread, context);
  }
}

void check_alignment(const void* address, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(address) % bytes != 0)
    throw Error(fmt::format("thread ({}, {}, {}) of block ({}, {}, {}) accesses {} bytes at a misaligned address, {}",
                            threadIdx.x, threadIdx.y, threadIdx.z, blockIdx.x, blockIdx.y, blockIdx.z, bytes, address));
}

void* dynamic_shared() { return block().shared(); }
Votes block_barrier(int predicate) { return block().barrier(predicate); }
std::uint64_t warp_collective(Collective kind, unsigned mask, std::uint64_t value, unsigned source) {
  return block().collective(kind, mask, value, source);
}
unsigned lane() { return block().lane(); }
unsigned live_lanes() { return block().live_lanes(); }

}  // namespace assay::emulation
