#include "harness/machine/cpu_ticks.h"

#include <algorithm>

namespace assay {

std::optional<CpuTicks> cpu_ticks(const Root& root, const std::vector<int>& cpus) {
  const auto stat = root.text("proc/stat");
  if (!stat) return std::nullopt;
  CpuTicks sum;
  bool found = false;
  for (const auto& line : lines(*stat)) {
    if (!line.starts_with("cpu")) break;  // the CPUs come first; what follows is long on large machines
    const auto columns = words(line);
    const auto number = to_integer(std::string_view(columns[0]).substr(3));
    const bool wanted = cpus.empty() ? !number : number && std::ranges::find(cpus, *number) != cpus.end();
    if (!wanted || columns.size() < 5) continue;
    // user nice system idle iowait irq softirq steal; guest time is inside user already.
    const auto column = [&](std::size_t i) {
      return i < columns.size() ? to_integer(columns[i]).value_or(0) : std::int64_t{0};
    };
    const auto idle = column(4) + column(5);
    const auto steal = column(8);
    const auto busy = column(1) + column(2) + column(3) + column(6) + column(7) + steal;
    sum.busy += busy;
    sum.steal += steal;
    sum.total += busy + idle;
    found = true;
  }
  if (!found) return std::nullopt;
  return sum;
}

}  // namespace assay
