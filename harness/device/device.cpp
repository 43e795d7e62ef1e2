// Names of device kinds, and the way to a device: the CPU in the binary, others through their module.
#include "harness/device/device.h"

#include "harness/core/error.h"
#include "harness/core/module.h"
#include "harness/device/cpu/cpu_device.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>

namespace assay {

std::string_view name_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::cpu: return "cpu";
    case DeviceKind::cuda: return "cuda";
  }
  return "unknown";
}

std::optional<DeviceKind> device_kind_from(std::string_view name) {
  for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::cuda})
    if (name == name_of(kind)) return kind;
  return std::nullopt;
}

std::unique_ptr<Device> make_device(DeviceKind kind, int local_rank) {
  if (kind == DeviceKind::cpu) return cpu::make_cpu_device();
  static const Module module = Module::load("cuda");
  using Make = Device* (*)(int);
  std::unique_ptr<Device> device(module.function<Make>("assay_make_cuda_device")(local_rank));
  ASSAY_CHECK(device, "the cuda module made no device for local rank {}", local_rank);
  return device;
}

CudaProbe probe_cuda() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {0, fmt::format("no pipe: {}", std::strerror(errno))};
  const pid_t child = ::fork();
  if (child == 0) {
    CudaProbe found;
    try {
      found.gpus = Module::load("cuda").function<int (*)()>("assay_count_gpus")();
      make_device(DeviceKind::cuda, 0);
    } catch (const std::exception& error) {
      found.problem = error.what();
    }
    const std::string line = fmt::format("{} {}", found.gpus, found.problem);
    (void)!::write(ends[1], line.data(), line.size());
    ::_exit(0);  // libraries may take their time to tidy up
  }
  ::close(ends[1]);
  std::string line;
  char block[4096];
  for (ssize_t got = 0; (got = ::read(ends[0], block, sizeof block)) > 0 || (got < 0 && errno == EINTR);)
    if (got > 0) line.append(block, static_cast<std::size_t>(got));
  ::close(ends[0]);
  int status = 0;
  if (child > 0)
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  const std::size_t space = line.find(' ');
  if (space == std::string::npos) return {0, "the process that was to ask for GPUs broke down"};
  return {std::atoi(line.c_str()), line.substr(space + 1)};
}

}  // namespace assay
