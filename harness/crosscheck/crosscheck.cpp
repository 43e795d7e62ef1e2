#include "harness/crosscheck/crosscheck.h"

#include "harness/core/files.h"
#include "harness/core/streams.h"
#include "harness/core/units.h"
#include "harness/runs/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace assay::crosscheck {

namespace fs = std::filesystem;

namespace {

// Remarks for readers of the figures, and those of them that leave a size without a ratio.
struct Remarks {
  std::set<std::string> all, missing;
  void miss(const std::string& text) { all.insert(text), missing.insert(text); }
};

// Adds what readers of our figures must know to `remarks`.
Figures figures_of(const RunData& run, const Tool& tool, Remarks& remarks) {
  Figures figures;
  for (const Record& record : run.final_records()) {
    for (const std::string& flag : record.flags) remarks.all.insert("ours: " + flag);
    if (record.status != Status::ok) {
      remarks.all.insert(fmt::format("ours: {}: {}: {}", record.key, name_of(record.status), record.reason));
      continue;
    }
    const auto [test, metric] = tool.test_and_metric(record);
    const Metric* const found = find_metric(record, metric);
    const auto bytes = param_number(record, "bytes");
    if (found && bytes && *found->value > 0) figures[{test, static_cast<std::int64_t>(*bytes)}] = *found->value;
  }
  return figures;
}

Fitness judge(const Interval& interval, double tolerance) {
  const double low = 1 / (1 + tolerance), high = 1 + tolerance;
  if (interval.low > high || interval.high < low) return Fitness::fail;
  return interval.low >= low && interval.high <= high ? Fitness::pass : Fitness::unsure;
}

std::string no_figure(const char* side, const Figures::key_type& place) {
  return fmt::format("{}: no figure of {} at {}", side, place.first, format_bytes(static_cast<double>(place.second)));
}

// The sides alternate: ours theirs, theirs ours, ...
std::vector<Row> compare(const Request& request, const Machine& machine, const Tool& tool, const std::string& path,
                         int gpus, Remarks& remarks) {
  const TemporaryFolder folder(fs::temp_directory_path() / "assay-crosscheck");
  const fs::path plan = folder.path() / "crosscheck.json";
  replace_file(plan, Json{{"schema", 1},
                          {"name", "crosscheck"},
                          {"protocol", {{"max_seconds", "500ms"}, {"min_samples", 10}}},
                          {"cases", tool.cases(request.sizes, gpus)}}
                         .dump());
  std::map<Figures::key_type, Row> rows;
  for (int pair = 0; pair < request.pairs; ++pair) {
    Figures ours, theirs;
    const auto measure_own = [&] { ours = figures_of(machine.run(plan), tool, remarks); };
    if (pair % 2 == 0) measure_own();
    theirs = tool.measure(path, request.sizes, gpus, machine.printed);
    if (pair % 2 == 1) measure_own();
    for (const auto& [place, bandwidth] : ours) {
      const auto other = theirs.find(place);
      if (other == theirs.end()) {
        remarks.miss(no_figure(tool.name, place));
        continue;
      }
      Row& row = rows[place];
      row.ours.push_back(bandwidth);
      row.theirs.push_back(other->second);
      row.ratios.push_back(bandwidth / other->second);
    }
    for (const auto& [place, bandwidth] : theirs)
      if (!ours.contains(place)) remarks.miss(no_figure("ours", place));
    say("assay: crosscheck: {}: pair {} of {}\n", tool.name, pair + 1, request.pairs);
  }
  std::vector<Row> kept;
  for (auto& [place, row] : rows) {
    const auto interval = median_interval(row.ratios);
    if (!interval) {
      remarks.miss(fmt::format("{} {} at {}: {} of {} pairs, too few", tool.name, place.first,
                               format_bytes(static_cast<double>(place.second)), row.ratios.size(), request.pairs));
      continue;
    }
    row.tool = tool.name;
    std::tie(row.test, row.bytes) = place;
    row.ratio = median(row.ratios);
    row.interval = *interval;
    row.fitness = judge(row.interval, request.tolerance);
    kept.push_back(std::move(row));
  }
  return kept;
}

}  // namespace

Result compare_with_tools(const Request& request, const Machine& machine) {
  Result result;
  result.tolerance = request.tolerance;
  Remarks remarks;
  std::optional<CudaProbe> gpus;  // asked only if there is a tool
  for (const Tool& tool : all_tools()) {
    const std::string path = machine.find(tool.name);
    result.tools.push_back({tool.name, path});
    if (path.empty()) {
      result.remarks.push_back(fmt::format("{} is not on the PATH; to get it: {}", tool.name, tool.source));
      continue;
    }
    if (!gpus) gpus = machine.gpus();
    const std::string obstacle = !gpus->problem.empty() ? gpus->problem : tool.obstacle(request.sizes, gpus->gpus);
    if (!obstacle.empty()) {
      result.remarks.push_back(fmt::format("{} was not run: {}", tool.name, obstacle));
      continue;
    }
    std::vector<Row> rows = compare(request, machine, tool, path, gpus->gpus, remarks);
    std::move(rows.begin(), rows.end(), std::back_inserter(result.rows));
  }
  result.remarks.insert(result.remarks.end(), remarks.all.begin(), remarks.all.end());
  result.missing = remarks.missing.size();
  return result;
}

}  // namespace assay::crosscheck
