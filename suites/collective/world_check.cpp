#include "suites/collective/world_check.h"

#include <utility>
#include "harness/comm/gather.h"

#include <fmt/core.h>

#include <algorithm>

namespace assay::collective {

void add_check(Checks& checks, Communicator& comm, const char* name, const Wrong& wrong) {
  constexpr std::size_t text_bytes = 320, max_senders = 4;
  std::array<char, text_bytes> own{};
  std::string text;
  for (const std::string& line : wrong.detail) text += (text.empty() ? "" : "; ") + line;
  if (wrong.count > wrong.detail.size()) text += fmt::format("; {} in all", wrong.count);
  std::copy_n(text.begin(), std::min(text.size(), text_bytes - 1), own.begin());

  std::array<int, max_senders> senders{};
  senders.fill(-1);
  std::copy_n(wrong.senders.begin(), std::min(wrong.senders.size(), max_senders), senders.begin());

  const std::vector<std::uint64_t> counts = gather(comm, wrong.count);
  const std::vector<std::array<int, max_senders>> senders_of = gather(comm, senders);
  const std::vector<std::array<char, text_bytes>> texts = gather(comm, own);

  std::uint64_t total = 0;
  std::vector<std::string> detail;
  std::vector<Culprit> culprits;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    total += counts[r];
    if (counts[r] == 0) continue;
    const int rank = static_cast<int>(r);
    if (senders_of[r].front() < 0) culprits.push_back({rank});
    for (const int sender : senders_of[r])
      if (sender >= 0) culprits.push_back({rank, sender});
    if (comm.rank() == 0 && detail.size() < 20) detail.push_back(fmt::format("rank {}: {}", r, texts[r].data()));
  }
  checks.at_most(name, static_cast<double>(total), 0, detail, std::move(culprits));
}

}  // namespace assay::collective
