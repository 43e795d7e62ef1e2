// How a kernel runs on the host: block by block, each thread of a block a fibre. Threads meet at barriers and in the
// collectives of their warp; everything happens on the thread that launched, one launch at a time in a process.
#pragma once

#include <vector_types.h>

#include <cstddef>
#include <cstdint>

// Of the thread that runs, as a kernel reads them.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

namespace assay::emulation {

// Runs a grid to its end: `thread(context)` is called for every thread with the indices set. Blocks run in an order
// that is shuffled the same way in every process, threads of some blocks backwards, warps abreast, one ahead of the
// others or at random; shared memory is garbage at the start of a block. Throws Error that names kernel and block where
// threads wait for others that never come, or where the block wrote past its dynamic shared memory.
void run_grid(const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes, void (*thread)(void*),
              void* context);

// All of what follows is for a running kernel.
void* dynamic_shared();

// The block's barrier; what it says of the predicates of its threads. A thread that has returned counts as arrived.
struct Votes {
  int count = 0;  // of those not zero
  int threads = 0;
};
Votes block_barrier(int predicate);

// What the lanes of `mask` do together; a lane that has returned counts as arrived. Throws Error where the caller is
// not in the mask.
enum class Collective { sync, shuffle, ballot, match, add, min_signed, min, max_signed, max, bit_and, bit_or, bit_xor };
// Shuffle: the value of lane `source`, garbage where that is not in the mask. Others ignore `source`; their values are
// of 32 bits.
std::uint64_t warp_collective(Collective kind, unsigned mask, std::uint64_t value, unsigned source);
unsigned lane();
// Lanes of this warp that have not returned.
unsigned live_lanes();

// Ends the kernel as a fault does: the context is lost.
[[noreturn]] void trap();

// For every access by words: throws Error where the address is no multiple of their size, which on a device is a fault.
void check_alignment(const void* address, std::size_t bytes);

// The name of a kernel from the module's symbol table; its address where that has none.
const char* kernel_name(const void* kernel);

}  // namespace assay::emulation
