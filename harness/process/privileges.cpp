#include "harness/process/privileges.h"

#include "harness/core/error.h"
#include "harness/core/trust.h"

#include <fmt/format.h>
#include <grp.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

extern char** environ;

namespace assay {

Variables trusted_variables(std::vector<std::string>& left_out) {
  Variables all{{"PATH", "/usr/sbin:/usr/bin:/sbin:/bin"}};
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    const std::string name(text.substr(0, text.find('='))), value(text.substr(std::min(name.size() + 1, text.size())));
    bool kept = name.starts_with("ASSAY_") || name.starts_with("SLURM");
    for (const char* known : {"HOME", "LANG", "NO_COLOR", "TERM", "XDG_CACHE_HOME", "CUDA_DEVICE_ORDER",
                              "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "NCCL_IB_HCA", "NCCL_TOPO_FILE"})
      kept = kept || name == known;
    if (name == "TMPDIR") kept = why_untrusted(value).empty();
    if (kept)
      all[name] = value;
    else if (name.starts_with("LD_") || name == "GLIBC_TUNABLES" || name == "TMPDIR" || name == "OMPI_COMM_WORLD_SIZE")
      left_out.push_back(name);
  }
  std::ranges::sort(left_out);
  // Where containers mount a driver without telling the loader (as in nvml_library.cpp).
  for (const char* folder : {"/usr/local/nvidia/lib64", "/usr/lib64-nvidia", "/usr/lib/wsl/lib"})
    if (::access(folder, X_OK) == 0 && why_untrusted(folder).empty()) {
      std::string& path = all["LD_LIBRARY_PATH"];
      path += (path.empty() ? "" : ":") + std::string(folder);
    }
  return all;
}

void become_nobody() {
  int signal = 0;
  ::prctl(PR_GET_PDEATHSIG, &signal);  // is lost with the user
  if (::setgroups(0, nullptr) != 0 || ::setresgid(nobody, nobody, nobody) != 0 ||
      ::setresuid(nobody, nobody, nobody) != 0 || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    throw Error(fmt::format("cannot become nobody: {}", std::strerror(errno)));
  ::prctl(PR_SET_DUMPABLE, 1);
  ::prctl(PR_SET_PDEATHSIG, signal);
}

}  // namespace assay
