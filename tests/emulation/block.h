// Runs a kernel on the host: block by block, each thread of a block in a fibre. Threads synchronise at barriers and in
// their warp's collectives; everything runs on the launching thread, one launch at a time per process.
#pragma once

#include <vector_types.h>

#include <cstddef>
#include <cstdint>

// The built-in variables of the running thread.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

namespace assay::emulation {

// Runs a whole grid: calls `thread(context)` for every thread, with the indices set. Blocks run in an order shuffled
// the same way in every process, some blocks' threads in reverse, warps in lockstep, one ahead of the others or at
// random; shared memory is garbage at the start of a block. Throws Error naming kernel and block if threads wait for
// others that never arrive, or if the block wrote past its dynamic shared memory.
void run_grid(const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes, void (*thread)(void*),
              void* context);

// The rest is for a running kernel.
void* dynamic_shared();

// The block's barrier, and its votes on the threads' predicates. A thread that has returned counts as arrived.
struct Votes {
  int count = 0;  // nonzero predicates
  int threads = 0;
};
Votes block_barrier(int predicate);

// A collective of the lanes in `mask`; a lane that has returned counts as arrived. Throws Error if the caller is not in
// the mask.
enum class Collective { sync, shuffle, ballot, match, add, min_signed, min, max_signed, max, bit_and, bit_or, bit_xor };
// Shuffle returns the value of lane `source`, or garbage if that is not in the mask. The others ignore `source`; their
// values have 32 bits.
std::uint64_t warp_collective(Collective kind, unsigned mask, std::uint64_t value, unsigned source);
unsigned lane();
// Lanes of this warp that have not returned.
unsigned live_lanes();

// Ends the kernel like a fault: the context is lost.
[[noreturn]] void trap();

// Called for every access by words: throws Error if the address is not a multiple of their size, a fault on a device.
void check_alignment(const void* address, std::size_t bytes);

// A kernel's name from the module's symbol table; its address if there is none.
const char* kernel_name(const void* kernel);

}  // namespace assay::emulation
