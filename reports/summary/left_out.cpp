#include "reports/summary/sections.h"

#include "harness/core/text.h"
#include "harness/runs/host_runs.h"
#include "reports/model/cells.h"

#include <fmt/format.h>

namespace assay::report {

namespace {

constexpr std::size_t max_items = 200;  // nobody reads a longer list

std::string why_not(const Record& record) {
  std::vector<std::string> why;
  for (const Check& check : record.checks) {
    if (check.passed) continue;
    std::string line = "check " + check.name + " failed";
    if (check.value && check.limit) line += fmt::format(": {:.4g} over the limit {:.4g}", *check.value, *check.limit);
    if (!check.detail.empty())
      line += fmt::format(" [{}{}]", check.detail.front(), check.detail.size() > 1 ? ", …" : "");
    why.push_back(line);
  }
  if ((why.empty() || record.status == Status::error) && !record.reason.empty())
    why.push_back(first_line(record.reason));
  return why.empty() ? "no reason given" : joined(why, "; ");
}

void end_list(List& list, std::size_t total) {
  if (total > list.items.size()) list.items.push_back(fmt::format("and {} more", total - list.items.size()));
}

}  // namespace

std::vector<Section> attention_sections(const RunSet& runs) {
  List list{"attention", {}};
  std::size_t total = 0;
  for (const Entry& entry : runs.entries()) {
    const Record& record = *entry.record;
    if (record.status != Status::failed && record.status != Status::error) continue;
    if (++total > max_items) continue;
    const std::vector<std::string> hosts = record.identity().hosts;
    const std::string where = ran_on_each_host(*entry.run) && !hosts.empty() ? " on " + hosts.front() : "";
    list.items.push_back(fmt::format("{} ({}{}): {} [{}]", record.key, plural(record.world_ranks, "rank"), where,
                                     why_not(record), entry.place()));
  }
  end_list(list, total);
  if (total == 0) return {};
  return {{"attention", "What failed", {std::move(list)}}};
}

std::vector<Section> skipped_sections(const RunSet& runs) {
  std::map<std::string, std::map<std::string, int>> reasons;  // case titles by reason
  for (const Entry& entry : runs.entries())
    if (entry.record->status == Status::skipped) ++reasons[first_line(entry.record->reason)][case_title(*entry.record)];
  if (reasons.empty()) return {};
  Table table{"skipped", "", {{"reason"}, right("count", "cases"), {"cases", "which"}}};
  for (const auto& [reason, titles] : reasons) {
    Json names = Json::array();
    std::string text;
    int count = 0;
    std::size_t shown = 0;
    for (const auto& [title, n] : titles) {
      names.push_back(title);
      count += n;
      if (shown < 3) text += (shown ? "; " : "") + title;
      if (++shown == 4) text += "; …";
    }
    table.rows.push_back(
        {{reason.empty() ? "no reason given" : reason, nullptr}, count_cell(count), {text, std::move(names)}});
  }
  return {{"skipped", "Skipped, and why", {std::move(table)}, false}};
}

std::vector<Section> unreadable_sections(const RunSet& runs) {
  List list{"unreadable", {}};
  std::size_t total = 0;
  for (const RunData& run : runs.runs()) {
    for (const std::string& problem : run.problems)
      if (++total <= max_items)
        list.items.push_back(runs.runs().size() == 1 ? problem : run.dir.filename().string() + "/" + problem);
  }
  end_list(list, total);
  if (total == 0) return {};
  Section section{"unreadable", "Not read", {}};
  section.blocks.push_back(Text{
      plural(total, "line") + (total == 1 ? " is not a record" : " are not records") + "; everything else was used.",
      Tone::warn});
  section.blocks.push_back(std::move(list));
  return {section};
}

}  // namespace assay::report
