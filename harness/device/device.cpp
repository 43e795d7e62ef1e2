// Names of device kinds, and making a device: the CPU is in the binary, others come from their module.
#include "harness/device/device.h"

#include "harness/core/error.h"
#include "harness/core/module.h"
#include "harness/device/cpu/cpu_device.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
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

std::string_view l2_level(const DeviceInfo& gpu, double bytes) {
  const auto l2 = static_cast<double>(gpu.last_level_cache_bytes);
  return bytes <= l2 / 2 ? "L2" : bytes <= l2 ? "L2, in part memory" : "";
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
  using Clock = std::chrono::steady_clock;
  constexpr auto timeout = std::chrono::seconds(120);  // a driver takes a few seconds to start eight GPUs
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
    ::_exit(0);  // without the slow exit handlers of libraries
  }
  ::close(ends[1]);
  std::string line;
  bool late = false;
  for (const Clock::time_point end = Clock::now() + timeout; child > 0 && !late;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd answer{ends[0], POLLIN, 0};
    late = left <= 0 || ::poll(&answer, 1, static_cast<int>(left)) == 0;
    if (late || answer.revents == 0) continue;
    char block[4096];
    const ssize_t got = ::read(ends[0], block, sizeof block);
    if (got == 0 || (got < 0 && errno != EINTR)) break;
    if (got > 0) line.append(block, static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  if (late) {
    // Not reaped: it may hang inside the driver, where no signal reaches it.
    ::kill(child, SIGKILL);
    return {0, fmt::format("the NVIDIA driver has not answered for {} s (does nvidia-smi?)", timeout.count())};
  }
  int status = 0;
  if (child > 0)
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  const std::size_t space = line.find(' ');
  if (space == std::string::npos)
    return {0, fmt::format("the process that looks for GPUs crashed{}",
                           WIFSIGNALED(status) ? fmt::format(" (signal {})", WTERMSIG(status)) : "")};
  return {std::atoi(line.c_str()), line.substr(space + 1)};
}

}  // namespace assay
