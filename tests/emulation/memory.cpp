// Stand-ins of the CUDA runtime's memory functions. Device memory is accessible only while a stream's work runs; it
// ends at a guard page, the bytes before that page are checked when it is freed, and its start is filled with garbage.
// Free memory is counted exactly.
#include "tests/emulation/runtime.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <string_view>

namespace assay::emulation {

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t alignment = 256;
constexpr std::size_t max_garbage = std::size_t{4} << 20;  // more would only take time
constexpr int garbage = 0xff;
constexpr unsigned char guard = 0xa5;

constexpr std::size_t up(std::size_t value, std::size_t step) { return (value + step - 1) / step * step; }

struct Block {
  std::size_t bytes = 0;
  cudaMemoryType type = cudaMemoryTypeDevice;
  int device = 0;
  void* mapped = nullptr;  // null: registered host memory, owned by the caller
  std::size_t mapped_bytes = 0;
};

struct Heap {
  std::recursive_mutex mutex;
  std::map<const std::byte*, Block> blocks;
  std::map<int, std::uint64_t> used;  // by device
  int open = 0;                       // running pieces of work
};
Heap& heap() {
  static Heap& only = *new Heap;
  return only;
}

bool of_device(const Block& block) { return block.type == cudaMemoryTypeDevice && block.mapped; }
void protect(const Block& block, int access) { mprotect(block.mapped, block.mapped_bytes - page, access); }

// The block that contains the address.
const Block* block_at(const void* address) {
  auto next = heap().blocks.upper_bound(static_cast<const std::byte*>(address));
  if (next == heap().blocks.begin()) return nullptr;
  --next;
  const bool inside = static_cast<const std::byte*>(address) < next->first + next->second.bytes;
  return inside ? &next->second : nullptr;
}

// Reports a segmentation fault that is the host touching device memory, and lets it happen.
void explain_fault(int, siginfo_t* info, void*) {
  const Block* block = block_at(info->si_addr);
  if (block && of_device(*block) && heap().open == 0) {
    constexpr std::string_view text = "emulated GPU: the host touched device memory\n";
    (void)!write(STDERR_FILENO, text.data(), text.size());
  }
  std::signal(SIGSEGV, SIG_DFL);
}

void explain_faults() {
  static const bool once = [] {
    struct sigaction before {};
    sigaction(SIGSEGV, nullptr, &before);
    if (before.sa_handler != SIG_DFL) return false;
    struct sigaction action {};
    action.sa_sigaction = &explain_fault;
    action.sa_flags = SA_SIGINFO;
    return sigaction(SIGSEGV, &action, nullptr) == 0;
  }();
  (void)once;
}

std::uint64_t capacity() {
  static const std::uint64_t bytes = bytes_of(scripted("memory").value_or("4GiB"));
  return bytes;
}

cudaError_t map_block(void** data, std::size_t bytes, cudaMemoryType type) {
  *data = nullptr;
  if (const cudaError_t lost = sticky_error(); lost != cudaSuccess) return report(lost);
  if (const cudaError_t error = refuse_in_capture(); error != cudaSuccess) return report(error);
  if (bytes == 0) return cudaSuccess;
  const std::lock_guard lock(heap().mutex);
  const int device = current_device();
  const bool counted = type != cudaMemoryTypeHost;
  if (counted && bytes > capacity() - heap().used[device]) return report(cudaErrorMemoryAllocation);
  const std::size_t room = up(up(bytes, alignment), page);
  void* mapped = mmap(nullptr, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return report(cudaErrorMemoryAllocation);
  std::byte* const end = static_cast<std::byte*>(mapped) + room;
  mprotect(end, page, PROT_NONE);
  std::byte* const start = end - up(bytes, alignment);
  std::memset(start, garbage, std::min(bytes, max_garbage));
  std::memset(start + bytes, guard, static_cast<std::size_t>(end - start) - bytes);
  const Block block{bytes, type, device, mapped, room + page};
  heap().blocks[start] = block;
  if (of_device(block) && heap().open == 0) protect(block, PROT_NONE);
  explain_faults();
  if (counted) heap().used[device] += bytes;
  *data = start;
  return cudaSuccess;
}

cudaError_t unmap_block(void* data) {
  if (!data) return report(sticky_error());
  if (const cudaError_t error = refuse_in_capture(); error != cudaSuccess) return report(error);
  const std::lock_guard lock(heap().mutex);
  const auto found = heap().blocks.find(static_cast<const std::byte*>(data));
  if (found == heap().blocks.end() || !found->second.mapped) return report(cudaErrorInvalidValue);
  const Block block = found->second;
  protect(block, PROT_READ | PROT_WRITE);
  const auto* const start = static_cast<const unsigned char*>(data);
  const auto* const end = static_cast<const unsigned char*>(block.mapped) + block.mapped_bytes - page;
  for (const unsigned char* at = start + block.bytes; at != end; ++at) {
    if (*at == guard) continue;
    std::fputs(
        fmt::format("emulated GPU: byte {} of an allocation of {} was written\n", at - start, block.bytes).c_str(),
        stderr);
    std::abort();
  }
  if (block.type != cudaMemoryTypeHost) heap().used[block.device] -= block.bytes;
  heap().blocks.erase(found);
  munmap(block.mapped, block.mapped_bytes);
  return report(sticky_error());
}

// Whether `bytes` from the address on are inside the block that contains its start; true for unknown host memory.
bool fits(const void* address, std::size_t bytes) {
  const std::lock_guard lock(heap().mutex);
  const Block* block = block_at(address);
  return !block || block_at(static_cast<const std::byte*>(address) + bytes - 1) == block;
}

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return report(sticky_error());
  if (!to || !from || !fits(to, bytes) || !fits(from, bytes)) return report(cudaErrorInvalidValue);
  return enqueue(stream, [=] { std::memmove(to, from, bytes); });
}

cudaError_t set(void* at, int value, std::size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return report(sticky_error());
  if (!at || !fits(at, bytes)) return report(cudaErrorInvalidValue);
  return enqueue(stream, [=] { std::memset(at, value, bytes); });
}

cudaError_t copy_rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                      std::size_t height, cudaStream_t stream) {
  return enqueue(stream, [=] {
    for (std::size_t row = 0; row < height; ++row)
      std::memmove(static_cast<std::byte*>(to) + row * to_pitch, static_cast<const std::byte*>(from) + row * from_pitch,
                   width);
  });
}

// A synchronous copy cannot be captured.
template <typename F>
cudaError_t waiting(F work) {
  if (const cudaError_t error = refuse_in_capture(); error != cudaSuccess) return report(error);
  return work();
}

}  // namespace

OpenMemory::OpenMemory() {
  const std::lock_guard lock(heap().mutex);
  if (heap().open++ > 0) return;
  for (const auto& [start, block] : heap().blocks)
    if (of_device(block)) protect(block, PROT_READ | PROT_WRITE);
}
OpenMemory::~OpenMemory() {
  const std::lock_guard lock(heap().mutex);
  if (--heap().open > 0) return;
  for (const auto& [start, block] : heap().blocks)
    if (of_device(block)) protect(block, PROT_NONE);
}

bool known_to_device(const void* address) {
  const std::lock_guard lock(heap().mutex);
  // One past the end is a valid address to pass.
  return block_at(address) || block_at(static_cast<const std::byte*>(address) - 1);
}

int owner_of(const void* address) {
  const std::lock_guard lock(heap().mutex);
  const Block* block = block_at(address);
  return block && of_device(*block) ? block->device : -1;
}

}  // namespace assay::emulation

using namespace assay::emulation;

extern "C" {

cudaError_t cudaMalloc(void** data, size_t bytes) { return map_block(data, bytes, cudaMemoryTypeDevice); }
cudaError_t cudaFree(void* data) { return unmap_block(data); }
cudaError_t cudaMallocAsync(void** data, size_t bytes, cudaStream_t) { return cudaMalloc(data, bytes); }
cudaError_t cudaFreeAsync(void* data, cudaStream_t) { return cudaFree(data); }
cudaError_t cudaMallocManaged(void** data, size_t bytes, unsigned) {
  return map_block(data, bytes, cudaMemoryTypeManaged);
}
cudaError_t cudaHostAlloc(void** data, size_t bytes, unsigned) { return map_block(data, bytes, cudaMemoryTypeHost); }
cudaError_t cudaMallocHost(void** data, size_t bytes) { return cudaHostAlloc(data, bytes, 0); }
cudaError_t cudaFreeHost(void* data) { return unmap_block(data); }
cudaError_t cudaHostRegister(void* data, size_t bytes, unsigned) {
  if (const cudaError_t lost = sticky_error(); lost != cudaSuccess) return report(lost);
  const std::lock_guard lock(heap().mutex);
  if (block_at(data)) return report(cudaErrorHostMemoryAlreadyRegistered);
  heap().blocks[static_cast<const std::byte*>(data)] = {bytes, cudaMemoryTypeHost, current_device(), nullptr, 0};
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* data) {
  const std::lock_guard lock(heap().mutex);
  const auto found = heap().blocks.find(static_cast<const std::byte*>(data));
  if (found == heap().blocks.end() || found->second.mapped) return report(cudaErrorHostMemoryNotRegistered);
  heap().blocks.erase(found);
  return report(sticky_error());
}
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  *device = host;
  return report(sticky_error());
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  if (const cudaError_t lost = sticky_error(); lost != cudaSuccess) return report(lost);
  const std::lock_guard lock(heap().mutex);
  *total = capacity();
  *free = capacity() - heap().used[current_device()];
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  const std::lock_guard lock(heap().mutex);
  *attributes = {};
  const Block* block = block_at(address);
  attributes->type = block ? block->type : cudaMemoryTypeUnregistered;
  attributes->device = block ? block->device : cudaInvalidDeviceId;
  attributes->hostPointer = !block || block->type != cudaMemoryTypeDevice ? const_cast<void*>(address) : nullptr;
  attributes->devicePointer = block ? const_cast<void*>(address) : nullptr;
  return report(sticky_error());
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  return copy(to, from, bytes, stream);
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  return waiting([&] { return copy(to, from, bytes, nullptr); });
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, cudaStream_t stream) {
  return copy(to, from, bytes, stream);
}
cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes) {
  return waiting([&] { return copy(to, from, bytes, nullptr); });
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind, cudaStream_t stream) {
  return copy_rows(to, to_pitch, from, from_pitch, width, height, stream);
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind) {
  return waiting([&] { return copy_rows(to, to_pitch, from, from_pitch, width, height, nullptr); });
}
cudaError_t cudaMemsetAsync(void* at, int value, size_t bytes, cudaStream_t stream) {
  return set(at, value, bytes, stream);
}
cudaError_t cudaMemset(void* at, int value, size_t bytes) {
  return waiting([&] { return set(at, value, bytes, nullptr); });
}
cudaError_t cudaMemset2DAsync(void* at, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
  return enqueue(stream, [=] {
    for (std::size_t row = 0; row < height; ++row) std::memset(static_cast<std::byte*>(at) + row * pitch, value, width);
  });
}

}  // extern "C"
