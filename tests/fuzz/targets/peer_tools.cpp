// What nccl-tests and nvbandwidth print, and NCCL's log. Every input goes to all readers.
#include "harness/crosscheck/peer_tools.h"

#include "harness/comm/nccl_log.h"
#include "tests/fuzz/fuzz.h"

#include <cmath>

namespace assay::fuzz {

void peer_tools(std::string_view input) {
  const auto is_rate = [](double rate) { return rate > 0 && std::isfinite(rate); };
  accepts("all_reduce_perf: ", [&] {
    for (const auto& [bytes, rate] : crosscheck::read_all_reduce_perf(input))
      expect(bytes > 0 && is_rate(rate), "an invalid size or bandwidth");
  });
  accepts("nvbandwidth: ", [&] {
    for (const auto& [test, matrix] : crosscheck::read_nvbandwidth(input))
      for (const auto& row : matrix)
        for (const auto& rate : row) expect(!rate || is_rate(*rate), "an invalid bandwidth");
  });
  NcclLog whole, parts;
  whole.add(input);
  for (std::size_t at = 0; at < input.size(); at += 7) parts.add(input.substr(at, 7));
  if (input.size() < (1 << 16))  // a line that is longer is dropped if its end has not come yet
    expect(whole.links() == parts.links() && whole.choice() == parts.choice() && whole.warning() == parts.warning(),
           "a log that is read otherwise in parts");
  (void)whole.transports();
  (void)socket_remarks(whole.links(), {0, 0, 1, 1}, true);
}

}  // namespace assay::fuzz
