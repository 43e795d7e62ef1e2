#include "harness/record/validation.h"

#include "harness/core/text.h"
#include "harness/record/run_dir.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace assay {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view separator = ", ";

bool holds(std::string_view text, std::string_view word) { return text.find(word) != text.npos; }

bool any_above_zero(const Record& record, const char* sensor) {
  const auto series = record.telemetry.find(sensor);
  return series != record.telemetry.end() &&
         std::ranges::any_of(series->second.values, [](const auto& value) { return value.value_or(0) > 0; });
}

// Connections are reported as far as the process has made them, which earlier cases may have done: the algorithm of the
// call itself, where it is known, says more. Names with MC are NCCL's kernels that use multicast on symmetric memory.
bool uses_nvls(const Record& record, const Attributes& attributes) {
  if (const auto algorithm = record.choices.find("algorithm"); algorithm != record.choices.end()) {
    const std::string& name = algorithm->second;
    return holds(name, "NVLS") || holds(name, "LDMC") || holds(name, "STMC");
  }
  return std::ranges::any_of(attributes, [](const auto& one) { return holds(one.second, "NVLS"); });
}

}  // namespace

std::vector<std::string> hardware_paths(const Record& record) {
  std::vector<std::string> paths;
  if (record.device != "cuda" || record.metrics.empty()) return paths;
  std::set<std::string> gpus;
  for (const RankResult& rank : record.ranks) {
    gpus.insert(rank.uuid);
    if (!rank.device.empty() && std::ranges::find(paths, rank.device) == paths.end()) paths.push_back(rank.device);
  }
  // One rank measures the copies between every pair of GPUs, and says how many there are.
  const auto pairs_of = record.conditions.find("gpus");
  if (gpus.size() > 1 || (pairs_of != record.conditions.end() && pairs_of->second != "1"))
    paths.emplace_back("several GPUs");
  const Attributes attributes = record.attributes();
  if (any_above_zero(record, "gpu_nvlink_sent") || any_above_zero(record, "gpu_nvlink_received"))
    paths.emplace_back("NVLink");
  if (uses_nvls(record, attributes)) paths.emplace_back("NVLS");
  if (std::ranges::any_of(attributes, [](const auto& one) { return holds(one.second, "NET/IB"); }))
    paths.emplace_back("InfiniBand");
  return paths;
}

std::set<std::string> validated_paths(const fs::path& folder) {
  std::set<std::string> paths;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none))
    if (fs::exists(entry.path() / "run.json", none))
      for (const Record& record : read_run(entry.path()).final_records())
        if (record.status == Status::ok && record.comparable)
          for (std::string& path : hardware_paths(record)) paths.insert(std::move(path));
  return paths;
}

void label_unvalidated(Record& record, const std::set<std::string>& validated) {
  const std::vector<std::string> paths = hardware_paths(record);
  if (paths.empty()) return;
  record.labels[unvalidated_label] = joined(paths, separator);
  lift_label(record, validated);
}

void lift_label(Record& record, const std::set<std::string>& validated) {
  const auto label = record.labels.find(unvalidated_label);
  if (label == record.labels.end()) return;
  std::vector<std::string> left;
  for (std::string_view rest = label->second; !rest.empty();) {
    const std::size_t end = std::min(rest.find(separator), rest.size());
    if (std::string path(rest.substr(0, end)); !validated.contains(path)) left.push_back(std::move(path));
    rest.remove_prefix(std::min(end + separator.size(), rest.size()));
  }
  if (left.empty())
    record.labels.erase(label);
  else
    label->second = joined(left, separator);
}

}  // namespace assay
