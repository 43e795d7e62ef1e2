#include "harness/comm/rank_hosts.h"

#include "harness/core/host.h"

#include <algorithm>
#include <array>

namespace assay {

std::vector<std::string> hosts_of_ranks(Communicator& comm) {
  constexpr std::size_t name_bytes = 256;
  std::array<char, name_bytes> own{};
  const std::string name = this_host();
  std::copy_n(name.begin(), std::min(name.size(), name_bytes - 1), own.begin());
  std::vector<char> all(static_cast<std::size_t>(comm.size()) * name_bytes);
  comm.all_gather_host(own.data(), all.data(), name_bytes);
  std::vector<std::string> hosts;
  for (std::size_t at = 0; at < all.size(); at += name_bytes) hosts.emplace_back(all.data() + at);
  return hosts;
}

}  // namespace assay
