#include "harness/device/cpu/cpu_list.h"

#include "harness/core/whole_number.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace assay {

std::vector<int> cpu_list(std::string_view text) {
  constexpr int max = 1 << 20;  // more CPUs than any kernel supports
  std::vector<int> cpus;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const std::size_t dash = part.find('-');
    const auto first = whole_number<int>(part.substr(0, dash));
    const auto last = dash == part.npos ? first : whole_number<int>(part.substr(dash + 1));
    if (first && last && *last < max)
      for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

std::string cpu_list_text(std::vector<int> cpus) {
  std::ranges::sort(cpus);
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", cpus[i]);
    if (last > i) text += fmt::format("-{}", cpus[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace assay
