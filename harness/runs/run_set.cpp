#include "harness/runs/run_set.h"

#include "harness/core/configs.h"
#include "harness/record/content_hash.h"
#include "harness/record/flags.h"
#include "harness/record/validation.h"
#include "harness/runs/host_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>

namespace assay {

namespace {

// The start in run.json, else that of the first record.
std::string started(const RunData& run) {
  if (run.run.is_object()) {
    const auto found = run.run.find("started");
    if (found != run.run.end() && found->is_string()) return found->get<std::string>();
  }
  const std::string* first = nullptr;
  for (const Record& record : run.records)
    if (!record.started.empty() && (!first || record.started < *first)) first = &record.started;
  return first ? *first : std::string();
}

// Covers all that a report may print of a run except its place; the order of records does not matter.
std::uint64_t content_hash(const RunData& run) {
  if (run.content) return *run.content;
  std::uint64_t lines = 0;
  for (const Record& record : run.records)
    lines += hash64(record.to_json().dump(-1, ' ', false, Json::error_handler_t::replace));
  for (const std::string& problem : run.problems) lines += hash64(problem);
  return hash64(run.run.dump(-1, ' ', false, Json::error_handler_t::replace), lines);
}

// Whether this flag makes a record not comparable, apart from faults.
bool prevents_comparison(const std::string& text) {
  constexpr std::string_view all[] = {flag::oversubscribed, flag::shared_gpu, flag::one_machine, flag::emulated_gpu,
                                      flag::described_machine};
  return std::ranges::find(all, text) != std::end(all);
}

void treat_as_measured(Record& record) {
  std::string faults;
  for (const std::string& text : record.flags)
    if (text.starts_with(flag::injected)) faults += (faults.empty() ? "" : ", ") + text.substr(flag::injected.size());
  std::erase_if(record.flags, [](const std::string& text) { return text.starts_with(flag::injected); });
  record.labels["injected"] = faults;
  record.comparable = std::ranges::none_of(record.flags, prevents_comparison);
}

// Reference runs may have been added since these records were written.
void lift_labels(std::vector<RunData>& runs) {
  std::optional<std::set<std::string>> validated;
  for (RunData& run : runs)
    for (Record& record : run.records) {
      if (!record.labels.contains(unvalidated_label)) continue;
      if (!validated) validated = validated_paths(configs_dir() / "reference");
      lift_label(record, *validated);
    }
}

}  // namespace

std::string Entry::place() const { return fmt::format("{}/records.jsonl line {}", run->dir.filename().string(), line); }

std::string Entry::anchor() const {
  const std::uint64_t of_run = hash64(started(*run), run->content.value_or(0));
  const std::uint64_t hash = hash64(record->identity().text(), hash64(record->started, of_run));
  return fmt::format("r-{:012x}", hash >> 16);  // long enough for two thousand rows, short for the page
}

RunSet::RunSet(std::vector<RunData> runs, Injected handling) {
  struct Place {
    std::string started;
    std::uint64_t hash;
    std::string dir;  // breaks ties between copies
    std::size_t index;
    auto operator<=>(const Place&) const = default;
  };
  std::vector<Place> order;
  for (std::size_t i = 0; i < runs.size(); ++i)
    order.push_back({started(runs[i]), content_hash(runs[i]), runs[i].dir.string(), i});
  std::ranges::sort(order);
  for (std::size_t i = 0; i < order.size(); ++i) {
    RunData& run = runs[order[i].index];
    if (i > 0 && order[i].started == order[i - 1].started && order[i].hash == order[i - 1].hash)
      duplicates_.push_back(fmt::format("{}: the same run as {}", run.dir.string(), runs_.back().dir.string()));
    else
      runs_.push_back(std::move(run));
  }
  directories_ = runs_.size();
  std::vector<std::size_t> directory;  // of each run
  std::vector<RunData> split;
  for (std::size_t i = 0; i < directories_; ++i)
    for (RunData& part : split_hosts(std::move(runs_[i]))) {
      split.push_back(std::move(part));
      directory.push_back(i);
    }
  runs_ = std::move(split);
  lift_labels(runs_);
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (handling == Injected::include)
      for (Record& record : runs_[i].records)
        if (record.injected()) treat_as_measured(record);
    const RunData& run = runs_[i];
    first_.push_back(entries_.size());
    std::map<Identity, std::size_t> places;
    for (std::size_t r = 0; r < run.records.size(); ++r) {
      const auto [place, fresh] = places.try_emplace(run.records[r].identity(), entries_.size());
      if (fresh) entries_.push_back({&run, nullptr, i, directory[i], 0});
      Entry& entry = entries_[place->second];
      entry.record = &run.records[r];
      entry.line = r < run.lines.size() ? run.lines[r] : static_cast<int>(r) + 1;
    }
    if (handling != Injected::exclude) continue;
    // Check the last attempt for faults: an earlier one must not take its place.
    const auto first = entries_.begin() + static_cast<std::ptrdiff_t>(first_.back());
    const auto kept =
        std::remove_if(first, entries_.end(), [](const Entry& entry) { return entry.record->injected(); });
    injected_ += static_cast<std::size_t>(entries_.end() - kept);
    entries_.erase(kept, entries_.end());
  }
  first_.push_back(entries_.size());
}

std::span<const Entry> RunSet::entries_of(std::size_t run_index) const {
  return std::span(entries_).subspan(first_[run_index], first_[run_index + 1] - first_[run_index]);
}

bool injected(const Record& record) { return record.injected(); }

std::string injected_text(const RunSet& runs) {
  const std::size_t count = runs.injected();
  if (count == 0) return {};
  return fmt::format(
      "{} record{} injected faults and {} left out: such records test the checks and are not measurements (include "
      "them with --injected)",
      count, count == 1 ? " has" : "s have", count == 1 ? "was" : "were");
}

}  // namespace assay
