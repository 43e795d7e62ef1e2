#include "reports/references/references.h"

#include "harness/core/configs.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/runs/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

namespace assay::report {

namespace fs = std::filesystem;

fs::path reference_folder() { return configs_dir() / "reference"; }

References shipped_references() {
  std::vector<fs::path> dirs;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(reference_folder(), none))
    if (fs::exists(entry.path() / "run.json", none)) dirs.push_back(entry.path());
  std::ranges::sort(dirs);
  return {std::make_shared<const RunSet>(read_runs(dirs)), load_published(configs_dir() / "published")};
}

Beside beside(const KeyFigure& figure, const MachineRuns& machine, const References& references) {
  Beside found;
  for (const PublishedFigure& published : references.published)
    if (is_of(published, *figure.entry, *figure.metric)) found.published.push_back(&published);
  if (!references.runs || machine.machine.name.empty()) return found;
  const Record& own = *figure.entry->record;
  for (const Entry& entry : references.runs->entries()) {
    const Record& other = *entry.record;
    if (other.key != own.key || other.device != own.device || other.world_ranks != own.world_ranks ||
        other.status != Status::ok || machine_of(*entry.run).name != machine.machine.name ||
        text_member(entry.run->run, "/id") == text_member(figure.entry->run->run, "/id") ||
        !differences(own, other, {.sides = true}).empty())
      continue;
    const Metric* metric = find_metric(other, figure.metric->name);
    if (!metric) continue;
    found.values.push_back(*metric->value);
    found.runs.push_back(entry.run_index);
  }
  std::ranges::sort(found.values);
  return found;
}

std::string place_among(const Metric& metric, const std::vector<double>& references) {
  constexpr std::size_t enough_for_percentiles = 8;
  if (references.empty()) return {};
  std::string text =
      fmt::format("{} of such machines: {} – {}", plural(references.size(), "run"),
                  format_quantity(references.front(), metric.unit), format_quantity(references.back(), metric.unit));
  if (references.size() < enough_for_percentiles) return text;
  const auto not_better = std::ranges::count_if(references, [&](double other) {
    return metric.better == Better::lower ? other >= *metric.value : other <= *metric.value;
  });
  return text + fmt::format(", as good as {:.0f} % of them",
                            100.0 * static_cast<double>(not_better) / static_cast<double>(references.size()));
}

}  // namespace assay::report
