// What nccl-tests and nvbandwidth print. Every input goes to both readers.
#include "harness/crosscheck/peer_tools.h"

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
}

}  // namespace assay::fuzz
