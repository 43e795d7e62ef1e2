// What the stand-ins of CUDA's libraries share: work on inline streams, and the script of faults. A stand-in of another
// library enqueues its work here, so that capture and replay hold for it too.
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

// The name of the device, which every record carries.
inline constexpr const char* device_name = "emulated GPU (not a measurement)";

// Runs `work` now, or records it where `stream` is being captured; what it throws passes through.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);

// While one of these lives, device memory may be touched: for a stand-in that works outside of enqueue().
class OpenMemory {
 public:
  OpenMemory();
  ~OpenMemory();
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;
};
// Takes time that has passed from what events count: a stand-in's, which takes far longer than what it stands for.
void uncount(std::chrono::steady_clock::duration time);

// Whether the address lies in device, pinned, managed or registered memory: what a kernel may be given.
bool known_to_device(const void* address);

// The first error that a kernel left behind: it stays, as on a device whose context is lost. cudaSuccess without one.
cudaError_t sticky_error();
void lose_context(cudaError_t error);

// Throws Error that names the kernel and the argument where it is an address that a device does not know.
void check_argument(const void* kernel, std::size_t index, const void* address);

// Whether the launch is one that a device takes: sizes, dynamic shared memory. cudaSuccess or the runtime's error.
cudaError_t check_launch(const void* kernel, dim3 grid, dim3 block, std::size_t shared);
// Runs the grid unless the script makes this kernel fault.
void run_kernel(const void* kernel, dim3 grid, dim3 block, std::size_t shared, void (*thread)(void*), void* context);
// The most dynamic shared memory a block of the kernel may use, as cudaFuncSetAttribute set it.
std::size_t& shared_limit(const void* kernel);

// ASSAY_EMULATION: words apart by commas, `name` or `name=value`:
//   no_driver  driver=12.4  devices=2  capability=70  memory=512MiB  kernel_fault=PART_OF_A_NAME  cudnn=absent|refuses
//   count_error=802 (what cudaGetDeviceCount answers)  context_error=46 (cudaSetDevice, which makes a context)
// The value of `name` ("" where it has none); nothing where the script does not have it. Throws Error at an unknown
// name.
std::optional<std::string> scripted(std::string_view name);
// A size such as 512MiB.
std::uint64_t bytes_of(std::string_view text);

// Devices that the process sees: the script's number, less those that CUDA_VISIBLE_DEVICES hides.
int visible_devices();
int current_device();

// Remembers the error for cudaGetLastError and returns it.
cudaError_t report(cudaError_t error);

// Refuses what a capture on this thread forbids (allocation, waiting for the host), ending that capture; else success.
cudaError_t refuse_in_capture();

}  // namespace assay::emulation
