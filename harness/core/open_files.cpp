#include "harness/core/open_files.h"

#include <sys/resource.h>

#include <algorithm>

namespace assay {

std::size_t reserve_open_files(std::size_t needed) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return needed;
  const rlim_t now = limit.rlim_cur;
  limit.rlim_cur = std::min<rlim_t>(needed, limit.rlim_max);
  return limit.rlim_cur > now && ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : now;
}

}  // namespace assay
