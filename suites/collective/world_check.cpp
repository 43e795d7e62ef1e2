#include "suites/collective/world_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::collective {

void add_check(Checks& checks, Communicator& comm, const char* name, const Wrong& wrong) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  constexpr std::size_t text_bytes = 320;
  std::array<char, text_bytes> own{};
  std::string text;
  for (const std::string& line : wrong.detail) text += (text.empty() ? "" : "; ") + line;
  if (wrong.count > wrong.detail.size()) text += fmt::format("; {} in all", wrong.count);
  std::copy_n(text.begin(), std::min(text.size(), text_bytes - 1), own.begin());

  const auto count = static_cast<std::int64_t>(wrong.count);
  std::vector<std::int64_t> counts(ranks);
  std::vector<char> texts(ranks * text_bytes);
  comm.all_gather_host(&count, counts.data(), sizeof count);
  comm.all_gather_host(own.data(), texts.data(), text_bytes);

  std::int64_t total = 0;
  std::vector<std::string> detail;
  for (std::size_t r = 0; r < ranks; ++r) {
    total += counts[r];
    if (counts[r] && comm.rank() == 0 && detail.size() < 20)
      detail.push_back(fmt::format("rank {}: {}", r, texts.data() + r * text_bytes));
  }
  checks.at_most(name, static_cast<double>(total), 0, detail);
}

}  // namespace assay::collective
