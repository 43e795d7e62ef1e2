// The launcher's word, then the kernel's.
#include "harness/core/host.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>

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

}  // namespace assay
