#include "harness/device/memory_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace assay {

namespace {

// If so, the GPU's free memory says nothing about a single process.
bool gpu_is_shared() { return std::getenv("ASSAY_SHARE_GPU") != nullptr; }

std::optional<std::uint64_t> status_bytes(const std::string& wanted) {
  std::ifstream status("/proc/self/status");
  for (std::string name; status >> name;) {
    std::uint64_t kilobytes = 0;
    if (name == wanted && status >> kilobytes) return kilobytes * 1024;
    std::getline(status, name);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> resident_bytes() { return status_bytes("VmRSS:"); }

std::optional<std::uint64_t> peak_resident_bytes() { return status_bytes("VmHWM:"); }

bool forget_peak() {
  const int fd = ::open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool done = ::write(fd, "5", 1) == 1;
  ::close(fd);
  return done;
}

MemoryWatch::MemoryWatch(Device& device) : device_(device) {
  if (device.kind() != DeviceKind::cpu && gpu_is_shared()) return;
  free_ = device.free_bytes();
  if (free_) return;
  forget_peak();
  resident_ = resident_bytes();
}

std::optional<std::uint64_t> MemoryWatch::peak() const {
  if (!free_ && !resident_) return std::nullopt;
  if (!free_) return peak_resident_bytes();
  const auto now = device_.free_bytes();
  return now ? std::optional(*free_ > *now ? *free_ - *now : std::uint64_t{0}) : std::nullopt;
}

std::optional<double> MemoryWatch::growth() const {
  const auto most = peak();
  if (!most || (!free_ && !resident_)) return std::nullopt;
  return static_cast<double>(*most) - static_cast<double>(free_ ? 0 : *resident_);
}

}  // namespace assay
