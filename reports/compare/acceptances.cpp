#include "reports/compare/acceptances.h"

#include "harness/core/files.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/members.h"
#include "harness/runs/figures.h"
#include "reports/compare/comparison.h"
#include "reports/compare/words.h"
#include "reports/model/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace assay::report {

using namespace comparison;

namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t max_file_bytes = std::uintmax_t{1} << 30;
constexpr std::size_t max_rows = 200;  // in the terminal
constexpr std::size_t max_causes = 4;  // named in a sentence

using Hosts = std::set<std::string>;

// A driver, a firmware or a setting that changed on hosts.
struct Changed {
  std::string fact, before, after;

  std::string text() const { return fmt::format("{} {} -> {}", fact, before, after); }
  auto operator<=>(const Changed&) const = default;
};

template <typename Value>
Value value_in(const fs::path& file, Value (*read)(const std::string&)) {
  try {
    return read(read_whole(file, max_file_bytes));
  } catch (const Error& error) {
    throw UsageError(fmt::format("compare: {}: {}", file.string(), error.what()));
  }
}

Json json_in(const std::string& text) { return parse_untrusted(text); }
fitness::AuditedFleet fleet_in(const std::string& text) { return read_text<fitness::AuditedFleet>(text); }

// Returns the facts that differ by host. A host of which one audit says nothing has none.
std::map<Changed, Hosts> changes_of(const fitness::AuditedFleet& base, const fitness::AuditedFleet& head) {
  std::map<Changed, Hosts> changes;
  for (fitness::AuditedHost before : base.hosts) {
    const auto found = std::ranges::find(head.hosts, before.host, &fitness::AuditedHost::host);
    if (found == head.hosts.end()) continue;
    fitness::AuditedHost after = *found;
    const std::string host = std::exchange(before.host, "base");
    after.host = "head";
    // Of two that differ neither is the more frequent, so that both are listed.
    for (const fitness::Drift& one : fitness::drift_of({before, after})) {
      const auto text = [&](std::size_t side) {
        return side < one.hosts.size() && one.hosts[side].value ? one_line(*one.hosts[side].value, 80) : "absent";
      };
      changes[{one_line(one.fact, 80), text(0), text(1)}].insert(host);
    }
  }
  return changes;
}

// "all 64 hosts", "62 of 64 hosts".
std::string on_hosts(std::size_t some, std::size_t all) {
  return some == all ? "all " + plural(static_cast<std::int64_t>(all), "host")
                     : fmt::format("{} of {} hosts", some, all);
}

// What one case did on each host.
struct FleetCase {
  const Compared* first = nullptr;
  std::map<Direction, Hosts> by;
  std::map<Direction, std::vector<double>> ratios;
  Hosts hosts;

  std::string title() const {
    return fmt::format("{}, {}", case_title(*first->pair->base->record), first->pair->metric->name);
  }
};

std::string host_of(const Entry& entry) {
  const std::vector<std::string> hosts = entry.record->identity().hosts;
  return hosts.empty() ? std::string() : hosts.front();
}

class FleetComparison {
 public:
  FleetComparison(const AcceptanceFolder& base, const AcceptanceFolder& head, const Comparison& figures,
                  const CompareOptions& options)
      : base_(base), head_(head), figures_(figures), options_(options), changes_(changes_of(base.audit, head.audit)) {
    const std::map<std::string, std::string> after(head.hosts.begin(), head.hosts.end());
    for (const auto& [host, state] : base.hosts) {
      const auto found = after.find(host);
      if (found == after.end())
        only_base_.push_back(host);
      else
        rows_[host] = {.before = state, .after = found->second};
    }
    for (const auto& [host, state] : head.hosts)
      if (!rows_.contains(host)) only_head_.push_back(host);
    for (const Compared& one : figures.compared) {
      if (!one.pair->headline) continue;
      const std::string host = host_of(*one.pair->base);
      const Direction verdict = one.judgement.verdict;
      Row& row = rows_[host];
      ++row.counts[verdict];
      row.worst = std::min(row.worst, one.change.ratio);
      FleetCase& fleet = cases_[{one.pair->base->record->key, one.pair->metric->name}];
      if (!fleet.first) fleet.first = &one;
      fleet.hosts.insert(host), fleet.by[verdict].insert(host);
      fleet.ratios[verdict].push_back(one.change.ratio);
    }
    for (const Broken& one : figures.pairing.broken) ++rows_[host_of(*one.entry)].broken;
    for (const auto& [changed, hosts] : changes_)
      for (const std::string& host : hosts)
        if (const auto row = rows_.find(host); row != rows_.end()) row->second.changed.push_back(&changed);
  }

  CompareResult result() const {
    CompareResult result{.document = {}, .counts = figures_.counts};
    for (const auto& [host, row] : rows_) {
      if (row.before != "pass" || row.after == "pass") continue;
      ++(row.after == "fail" ? result.counts.hosts_failed : result.counts.hosts_unsure);
    }
    Document& document = result.document;
    document.title = "Assay comparison of acceptances";
    document.headline = fmt::format("base: {} · head: {} · {} in both", side(base_), side(head_),
                                    plural(static_cast<std::int64_t>(rows_.size()), "host"));
    add_only(document);
    add_states(document);
    add_moved(document);
    add_hosts(document);
    add_cases(document);
    add_changes(document);
    add_broken(document);
    const CompareCounts& n = result.counts;
    document.verdict = fmt::format(
        "hosts that passed and now fail: {} · cases on hosts slower: {} · faster: {} · same: {} · cannot say: {} · no "
        "longer holds: {} · left out: {} · tolerance {}",
        n.hosts_failed, n.slower, n.faster, n.same, n.unknown, n.broken, n.left_out,
        format_percent(options_.tolerance));
    const ExitCode code = n.exit_code();
    document.tone = code == ExitCode::ok ? Tone::good : code == ExitCode::failed ? Tone::bad : Tone::warn;
    document.members["counts"] = {{"hosts_failed", n.hosts_failed},
                                  {"hosts_unsure", n.hosts_unsure},
                                  {"slower", n.slower},
                                  {"faster", n.faster},
                                  {"same", n.same},
                                  {"cannot_say", n.unknown},
                                  {"maybe_slower", n.unknown_slow},
                                  {"broken", n.broken},
                                  {"left_out", n.left_out},
                                  {"tolerance", options_.tolerance},
                                  {"exit_code", static_cast<int>(code)}};
    return result;
  }

 private:
  struct Row {
    std::string before, after;
    std::map<Direction, int> counts = {};
    int broken = 0;
    double worst = 1;
    std::vector<const Changed*> changed = {};

    bool moved() const { return before != after || broken > 0 || counts.contains(Direction::slower); }
    // Hosts that passed and no longer do come first, then those that are slower.
    auto order() const {
      return std::tuple(!(before == "pass" && after == "fail"), !(before == "pass" && after != "pass"), before == after,
                        -broken, counts.contains(Direction::slower) ? -counts.at(Direction::slower) : 0);
    }
    int count(Direction direction) const { return counts.contains(direction) ? counts.at(direction) : 0; }
  };

  static std::string side(const AcceptanceFolder& one) { return one_line(one.dir.string(), 80); }

  std::vector<std::pair<std::string, const Row*>> ordered() const {
    std::vector<std::pair<std::string, const Row*>> rows;
    for (const auto& [host, row] : rows_) rows.emplace_back(host, &row);
    std::ranges::stable_sort(rows, {}, [](const auto& one) { return one.second->order(); });
    return rows;
  }

  // What changed on these hosts, the most frequent first: "driver 570.86.15 -> 580.65.06 on all 62".
  std::vector<std::string> causes(const Hosts& hosts) const {
    std::vector<std::pair<std::size_t, std::string>> found;
    for (const auto& [changed, on] : changes_) {
      const auto both =
          static_cast<std::size_t>(std::ranges::count_if(on, [&](const auto& h) { return hosts.contains(h); }));
      if (both > 0)
        found.emplace_back(both, fmt::format("{} on {}", changed.text(),
                                             both == hosts.size() ? "all of them" : fmt::format("{} of them", both)));
    }
    std::ranges::stable_sort(found, std::greater(), &std::pair<std::size_t, std::string>::first);
    std::vector<std::string> texts;
    for (auto& [count, text] : found) texts.push_back(std::move(text));
    return texts;
  }

  std::string with_causes(std::string text, const Hosts& hosts) const {
    std::vector<std::string> why = causes(hosts);
    const std::size_t all = why.size();
    why.resize(std::min(all, max_causes));
    for (const std::string& one : why) text += "; " + one;
    if (all > max_causes) text += "; " + plural(static_cast<std::int64_t>(all - max_causes), "more change");
    return text;
  }

  void add_only(Document& document) const {
    Section section{"only", "", {}};
    for (const auto& [name, hosts] : {std::pair("base", &only_base_), std::pair("head", &only_head_)}) {
      document.members[fmt::format("only_{}", name)] = *hosts;
      if (!hosts->empty())
        section.blocks.push_back(Text{fmt::format("only in {}: {}", name, one_line(joined(*hosts), 1000)), Tone::warn});
    }
    if (!section.blocks.empty()) document.sections.push_back(std::move(section));
  }

  void add_states(Document& document) const {
    Table table{"states", "", {{"host"}, {"base"}, {"head"}, {"changed"}}};
    for (const auto& [host, row] : ordered())
      if (row->before != row->after)
        table.rows.push_back({{one_line(host, 80), host},
                              {row->before},
                              {row->after, nullptr,
                               row->after == "pass"   ? Tone::good
                               : row->after == "fail" ? Tone::bad
                                                      : Tone::warn},
                              {with_causes("", {host}).erase(0, 2)}});
    if (!table.rows.empty()) document.sections.push_back({"states", "Hosts whose state changed", {std::move(table)}});
  }

  void add_moved(Document& document) const {
    List list{"moved", {}};
    for (const Direction direction : {Direction::slower, Direction::faster})
      for (const auto& [key, one] : cases_) {
        const auto found = one.by.find(direction);
        if (found == one.by.end()) continue;
        const double ratio = median(one.ratios.at(direction));
        list.items.push_back(
            with_causes(fmt::format("{}: {} {} on {}", one.title(), format_percent(std::abs(ratio - 1)),
                                    name_of(direction), on_hosts(found->second.size(), one.hosts.size())),
                        found->second));
      }
    if (list.items.empty()) list.items.emplace_back("no figure by more than the tolerance");
    document.sections.push_back({"moved", "What moved, on how many hosts", {std::move(list)}});
  }

  void add_hosts(Document& document) const {
    Table table{"hosts",
                "",
                {{"host"},
                 {"base"},
                 {"head"},
                 right("slower"),
                 right("faster"),
                 right("same"),
                 right("cannot_say", "cannot say"),
                 right("broken", "no longer holds"),
                 right("worst"),
                 {"changed"}}};
    for (const auto& [host, row] : ordered()) {
      std::vector<std::string> texts;
      Json data = Json::array();
      for (const Changed* one : row->changed) {
        texts.push_back(one->text());
        data.push_back({{"fact", one->fact}, {"base", one->before}, {"head", one->after}});
      }
      const int slower = row->count(Direction::slower);
      table.rows.push_back({{one_line(host, 80), host, row->moved() ? Tone::bad : Tone::plain},
                            {row->before},
                            {row->after},
                            count_cell(slower, slower > 0 ? Tone::bad : Tone::plain),
                            count_cell(row->count(Direction::faster)),
                            count_cell(row->count(Direction::same)),
                            count_cell(row->count(Direction::unknown)),
                            count_cell(row->broken, row->broken > 0 ? Tone::bad : Tone::plain),
                            row->counts.empty() ? no_cell() : Cell{change_text(row->worst, {}), row->worst},
                            {one_line(joined(texts, "; "), 200), std::move(data)}});
    }
    const bool many = table.rows.size() > max_rows;
    if (many) document.sections.push_back({"many_hosts", "", {Text{"a row for each host: --html, --md or --json"}}});
    document.sections.push_back({"hosts", "Host by host", {std::move(table)}, !many});
  }

  void add_cases(Document& document) const {
    Table table{"cases",
                "",
                {{"case"},
                 {"metric"},
                 right("hosts"),
                 right("slower"),
                 right("faster"),
                 right("same"),
                 right("cannot_say", "cannot say"),
                 right("ratio", "speed"),
                 {"changed"}}};
    for (const auto& [key, one] : cases_) {
      std::vector<double> all;
      Hosts moved;
      for (const auto& [direction, ratios] : one.ratios) all.insert(all.end(), ratios.begin(), ratios.end());
      const auto count = [&](Direction direction) {
        const auto found = one.by.find(direction);
        return count_cell(found == one.by.end() ? 0 : static_cast<std::int64_t>(found->second.size()),
                          found == one.by.end() ? Tone::plain : tone_of(direction));
      };
      for (const Direction direction : {Direction::slower, Direction::faster})
        if (const auto found = one.by.find(direction); found != one.by.end())
          moved.insert(found->second.begin(), found->second.end());
      const std::vector<std::string> why = causes(moved);
      table.rows.push_back({case_cell(*one.first->pair->base->record),
                            {one.first->pair->metric->name},
                            count_cell(static_cast<std::int64_t>(one.hosts.size())),
                            count(Direction::slower),
                            count(Direction::faster),
                            count(Direction::same),
                            count(Direction::unknown),
                            {change_text(median(all), {}), median(all)},
                            {one_line(joined(why, "; "), 400), why}});
    }
    if (!table.rows.empty())
      document.sections.push_back({"cases", "Case by case", {std::move(table)}, table.rows.size() <= max_rows});
  }

  void add_changes(Document& document) const {
    Table table{"changes", "", {{"fact"}, {"base"}, {"head"}, {"hosts"}}};
    for (const auto& [changed, hosts] : changes_)
      table.rows.push_back(
          {{changed.fact}, {changed.before}, {changed.after}, {on_hosts(hosts.size(), rows_.size()), Json(hosts)}});
    Section section{"changes", "What changed on the hosts", {}};
    if (table.rows.empty())
      section.blocks.push_back(Text{"Nothing that the audits of both say."});
    else
      section.blocks.push_back(std::move(table));
    document.sections.push_back(std::move(section));
  }

  void add_broken(Document& document) const {
    Table table{"broken", "", {{"host"}, {"case"}, {"what"}}};
    for (const Broken& one : figures_.pairing.broken)
      table.rows.push_back({{host_of(*one.entry)}, case_cell(*one.entry->record), {one_line(one.text, 400)}});
    if (!table.rows.empty()) document.sections.push_back({"broken", "No longer holds", {std::move(table)}});
    Table left{"left_out", "", {{"host"}, {"case"}, {"side"}, {"reason"}}};
    for (const LeftOut& one : figures_.pairing.left_out)
      left.rows.push_back(
          {{host_of(*one.entry)}, case_cell(*one.entry->record), {one.side}, {one_line(one.reason, 400)}});
    if (left.rows.empty()) return;
    const bool many = left.rows.size() > max_rows / 10;
    document.sections.push_back({"left_out", "Figures that were not compared", {std::move(left)}, !many});
  }

  const AcceptanceFolder& base_;
  const AcceptanceFolder& head_;
  const Comparison& figures_;
  const CompareOptions& options_;
  std::map<Changed, Hosts> changes_;
  std::map<std::string, Row> rows_;
  std::map<std::pair<std::string, std::string>, FleetCase> cases_;  // by key and metric
  std::vector<std::string> only_base_, only_head_;
};

std::vector<RunData> runs_of(const AcceptanceFolder& one, const AcceptanceFolder& other) {
  Hosts common;
  for (const auto& [host, state] : one.hosts)
    if (std::ranges::find(other.hosts, host, &std::pair<std::string, std::string>::first) != other.hosts.end())
      common.insert(host);
  std::vector<RunData> runs = read_runs(one.runs);
  for (RunData& run : runs) {
    std::vector<int> lines;
    std::vector<Record> records;
    for (std::size_t i = 0; i < run.records.size(); ++i) {
      const auto hosts = run.records[i].identity().hosts;
      if (!std::ranges::all_of(hosts, [&](const std::string& host) { return common.contains(host); })) continue;
      records.push_back(std::move(run.records[i])), lines.push_back(run.lines[i]);
    }
    run.records = std::move(records), run.lines = std::move(lines);
    run.run["each_host"] = true;  // of a single host, too: its name joins the identity
  }
  return runs;
}

bool is_acceptance(const fs::path& dir) {
  std::error_code none;
  return fs::is_regular_file(dir / "state.json", none) && !fs::exists(dir / "run.json", none);
}

}  // namespace

bool are_acceptances(const std::vector<std::string>& base, const std::vector<std::string>& head) {
  std::vector<std::string> acceptances, runs;
  for (const auto* side : {&base, &head})
    for (const std::string& dir : *side) (is_acceptance(dir) ? acceptances : runs).push_back(dir);
  if (acceptances.empty()) return false;
  if (!runs.empty())
    throw UsageError(fmt::format("compare: {} is an acceptance, {} a run: give two acceptances, or runs alone",
                                 acceptances.front(), runs.front()));
  if (base.size() != 1 || head.size() != 1)
    throw UsageError(fmt::format("compare: {} acceptances: give one as base and one as head", acceptances.size()));
  return true;
}

AcceptanceFolder read_acceptance(const fs::path& dir) {
  AcceptanceFolder folder{.dir = dir, .finished = false, .hosts = {}, .audit = {}, .runs = {}};
  const fs::path file = dir / "accept.json";
  std::error_code none;
  const Json state = value_in(dir / "state.json", json_in);
  if (!text_member(state, "/state").starts_with("assay accept"))
    throw UsageError(fmt::format("compare: {}: it is no acceptance", (dir / "state.json").string()));
  if (!fs::exists(file, none)) return folder;
  const Json accept = value_in(file, json_in);
  folder.finished = member(accept, "/verdict").is_string();
  if (!folder.finished) return folder;
  for (const Json& host : member(accept, "/hosts"))
    folder.hosts.emplace_back(text_member(host, "/host"), text_member(host, "/state"));
  folder.audit = value_in(dir / "audit.json", fleet_in);
  for (const Json& attempt : member(state, "/stages/host"))
    if (const std::string name = text_member(attempt, "/dir");
        !name.empty() && fs::exists(dir / name / "run.json", none))
      folder.runs.push_back(dir / name);
  return folder;
}

CompareResult compare_acceptances(const AcceptanceFolder& base, const AcceptanceFolder& head,
                                  const CompareOptions& options, Injected handling) {
  const RunSet before(runs_of(base, head), handling), after(runs_of(head, base), handling);
  const Comparison figures = compare_sides(before, after, options.tolerance);
  return FleetComparison(base, head, figures, options).result();
}

}  // namespace assay::report
