// Shared by the stand-ins of CUDA's libraries: work on inline streams, and scripted faults. Stand-ins of other
// libraries enqueue their work here, so that capture and replay include it.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace assay::emulation {

// The device's name, which every record contains.
inline constexpr const char* device_name = "emulated GPU (not a measurement)";

// Runs `work` now, or records it if `stream` is being captured; exceptions pass through.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);

// Makes device memory accessible for its lifetime: for a stand-in that works outside of enqueue().
class OpenMemory {
 public:
  OpenMemory();
  ~OpenMemory();
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;
};
// Excludes time from event timings: a stand-in's, which takes far longer than the real library.
void uncount(std::chrono::steady_clock::duration time);

// Whether the address is in device, pinned, managed or registered memory, which kernels may access.
bool known_to_device(const void* address);
// The device whose memory this is; -1 for memory of the host.
int owner_of(const void* address);
// Whether the GPU has been given access to the other's memory.
bool has_access(int gpu, int other);
// cudaErrorInvalidResourceHandle if the stream belongs to another device than the current one, where no kernel may be
// launched on it; else success.
cudaError_t check_stream(cudaStream_t stream);

// The first error of a kernel, which persists, as on a device whose context is lost; else cudaSuccess.
cudaError_t sticky_error();
void lose_context(cudaError_t error);

// Throws Error naming the kernel and the argument if it is an address that a device does not know.
void check_argument(const void* kernel, std::size_t index, const void* address);

// Checks a launch's sizes and dynamic shared memory: cudaSuccess or the runtime's error.
cudaError_t check_launch(const void* kernel, dim3 grid, dim3 block, std::size_t shared);
// Runs the grid, unless the script makes this kernel fault.
void run_kernel(const void* kernel, dim3 grid, dim3 block, std::size_t shared, void (*thread)(void*), void* context);
// The kernel's limit of dynamic shared memory per block, as set by cudaFuncSetAttribute.
std::size_t& shared_limit(const void* kernel);

// ASSAY_EMULATION: comma-separated words, `name` or `name=value`:
//   no_driver  driver=12.4  devices=2  capability=70  memory=512MiB  kernel_fault=PART_OF_A_NAME
//   peers=1>0 (only GPU 1 can access another's memory, that of GPU 0)
//   cudnn=absent|refuses|any_order|wrong  fusion_error=14 (what cuBLASLt's heuristics return for any epilogue), with
//   fusion_loses_device also an error that persists
//   numa_node=1 (of every device)  nccl=2.26.2 (its version)  nccl_memory=64MiB (that a communicator allocates at its
//   first call)  nccl_windows=refused
//   count_error=802 (what cudaGetDeviceCount returns)  context_error=46 (cudaSetDevice, which creates a context)
//   gate_times_out=2 (the first two gates closed open by themselves, as if the host waited for work behind them)
// The value of `name` ("" if it has none); nothing if the script does not contain it. Throws Error at an unknown name.
std::optional<std::string> scripted(std::string_view name);
// Whether the next gate opens by itself.
bool gate_times_out();
// A size such as 512MiB.
std::uint64_t bytes_of(std::string_view text);

// Devices visible to the process: the script's number, minus those hidden by CUDA_VISIBLE_DEVICES.
int visible_devices();
int current_device();

// Remembers the error for cudaGetLastError and returns it.
cudaError_t report(cudaError_t error);

// Returns an error, and ends the capture, if this thread is capturing, which forbids allocating and waiting; else
// success.
cudaError_t refuse_in_capture();

}  // namespace assay::emulation
