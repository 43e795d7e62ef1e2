#include "harness/core/host.h"

#include "harness/core/error.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <fstream>

namespace assay {

std::string this_host() {
  if (const char* named = std::getenv("ASSAY_HOST"); named && *named) return named;
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

std::string machine_architecture() {
  utsname kernel{};
  return uname(&kernel) == 0 ? kernel.machine : "";
}

std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

std::string random_token() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) throw Error("the kernel gives no random numbers");
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

std::int64_t wall_clock_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace assay
