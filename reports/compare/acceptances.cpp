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
#include <array>
#include <cmath>
#include <iterator>
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

constexpr std::array together_stages = {"pairs", "collectives", "training"};

using Hosts = std::set<std::string>;

// A driver, a firmware or a setting that changed on hosts.
struct Changed {
  std::string fact, before, after;
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

std::string host_of(const Entry& entry) {
  const std::vector<std::string> hosts = entry.record->identity().hosts;
  return hosts.empty() ? std::string() : hosts.front();
}

// What all hosts reached together.
struct Together {
  const Comparison& figures;
  std::vector<std::string> notes;  // what was not compared
};

// What moved, and where.
struct Moved {
  int order = 0;  // states, what no longer holds, slower, faster, what was not compared, facts
  std::string what, how;
  auto operator<=>(const Moved&) const = default;
};

class FleetComparison {
 public:
  FleetComparison(const AcceptanceFolder& base, const AcceptanceFolder& head, const Comparison& figures,
                  const Together& together)
      : counts_(figures.counts), changes_(changes_of(base.audit, head.audit)), together_(together) {
    add_counts(together.figures.counts);
    const std::map<std::string, std::string> after(head.hosts.begin(), head.hosts.end());
    for (const auto& [host, state] : base.hosts)
      if (const auto found = after.find(host); found != after.end())
        add_states(host, rows_[host] = {.before = state, .after = found->second});
      else
        only_["base"].push_back(host);
    for (const auto& [host, state] : head.hosts)
      if (!rows_.contains(host)) only_["head"].push_back(host);
    for (const Compared& one : figures.compared)
      if (one.pair->headline) add_figure(one);
    for (const Broken& one : figures.pairing.broken) {
      ++rows_[host_of(*one.entry)].broken;
      add(1, case_title(*one.entry->record), one.text, host_of(*one.entry));
    }
    for (const LeftOut& one : figures.pairing.left_out)
      add(4, case_title(*one.entry->record), "not compared: " + one.reason, host_of(*one.entry));
    for (const auto& [changed, hosts] : changes_)
      for (const std::string& host : hosts)
        if (const auto row = rows_.find(host); row != rows_.end()) {
          row->second.changed.push_back(&changed);
          add(5, changed.fact, fmt::format("{} -> {}", changed.before, changed.after), host);
        }
  }

  CompareResult result(const std::string& headline, double tolerance) {
    CompareResult result{.document = {}, .counts = counts_};
    Document& document = result.document;
    document.title = "Assay comparison of acceptances";
    document.headline =
        headline + fmt::format(" · {} in both", plural(static_cast<std::int64_t>(rows_.size()), "host"));
    Section section{"moved", "What moved, on how many hosts", {}};
    for (const char* side : {"base", "head"}) {
      document.members[fmt::format("only_{}", side)] = only_[side];
      if (!only_[side].empty())
        section.blocks.push_back(
            Text{fmt::format("only in {}: {}", side, one_line(joined(only_[side]), 1000)), Tone::warn});
    }
    if (moved_.empty())
      section.blocks.push_back(Text{"Nothing by more than the tolerance, and no fact of the audits."});
    else
      section.blocks.push_back(moved_table());
    document.sections.push_back(std::move(section));
    Section all{"together", "All hosts together", {}};
    for (const std::string& note : together_.notes) all.blocks.push_back(Text{note, Tone::warn});
    if (Table table = together_table(); !table.rows.empty()) all.blocks.emplace_back(std::move(table));
    if (!all.blocks.empty()) document.sections.push_back(std::move(all));
    document.sections.push_back({"hosts", "Host by host", {hosts_table()}, rows_.size() <= max_rows});
    const CompareCounts& n = counts_;
    document.verdict = fmt::format(
        "hosts that passed and now fail: {} · cases slower: {} · faster: {} · same: {} · cannot say: {} · no "
        "longer holds: {} · left out: {} · tolerance {}",
        n.hosts_failed, n.slower, n.faster, n.same, n.unknown, n.broken, n.left_out, format_percent(tolerance));
    document.tone = n.exit_code() == ExitCode::ok       ? Tone::good
                    : n.exit_code() == ExitCode::failed ? Tone::bad
                                                        : Tone::warn;
    return result;
  }

 private:
  struct Row {
    std::string before, after;
    std::map<Direction, int> counts = {};
    int broken = 0;
    double worst = 1;
    std::vector<const Changed*> changed = {};

    int count(Direction direction) const { return counts.contains(direction) ? counts.at(direction) : 0; }
    // Hosts that passed and no longer do come first, then those that are slower.
    auto order() const {
      const bool passed = before == "pass" && after != "pass";
      return std::tuple(!(passed && after == "fail"), !passed, before == after, -broken, -count(Direction::slower));
    }
  };

  void add_counts(const CompareCounts& more) {
    counts_.slower += more.slower, counts_.faster += more.faster, counts_.same += more.same;
    counts_.unknown += more.unknown, counts_.unknown_slow += more.unknown_slow;
    counts_.broken += more.broken, counts_.left_out += more.left_out;
  }

  void add(int order, std::string what, const std::string& how, const std::string& host) {
    moved_[{order, one_line(what, 120), one_line(how, 200)}].insert(host);
  }

  void add_states(const std::string& host, const Row& row) {
    if (row.before == row.after) return;
    add(0, "host " + host, fmt::format("{} -> {}", row.before, row.after), host);
    if (row.before == "pass") ++(row.after == "fail" ? counts_.hosts_failed : counts_.hosts_unsure);
  }

  void add_figure(const Compared& one) {
    const std::string host = host_of(*one.pair->base);
    const Direction verdict = one.judgement.verdict;
    Row& row = rows_[host];
    ++row.counts[verdict];
    row.worst = std::min(row.worst, one.change.ratio);
    const std::string title = fmt::format("{}, {}", case_title(*one.pair->base->record), one.pair->metric->name);
    ++measured_[title];
    if (verdict != Direction::slower && verdict != Direction::faster) return;
    add(verdict == Direction::slower ? 2 : 3, title, std::string(name_of(verdict)), host);
    ratios_[{title, verdict}].push_back(one.change.ratio);
  }

  // What changed on these hosts, the most frequent first: "driver 570.86.15 -> 580.65.06 on all of them".
  std::string causes(const Hosts& hosts) const {
    std::multimap<std::size_t, std::string, std::greater<>> found;
    for (const auto& [changed, on] : changes_) {
      const auto both =
          static_cast<std::size_t>(std::ranges::count_if(on, [&](const auto& h) { return hosts.contains(h); }));
      const std::string where = both == hosts.size() ? std::string("all of them") : fmt::format("{} of them", both);
      if (both > 0)
        found.emplace(both, fmt::format("{} {} -> {} on {}", changed.fact, changed.before, changed.after, where));
    }
    std::vector<std::string> texts;
    for (const auto& [count, text] : found)
      if (texts.size() < max_causes) texts.push_back(text);
    return joined(texts, "; ") + (found.size() > max_causes ? and_more(found.size(), max_causes) : "");
  }

  Table moved_table() const {
    Table table{"moved", "", {{"what"}, {"how"}, {"hosts"}, {"changed", "changed there"}}};
    for (const auto& [moved, hosts] : moved_) {
      std::string how = moved.how;
      const bool figure = moved.order == 2 || moved.order == 3;
      const Direction direction = moved.order == 2 ? Direction::slower : Direction::faster;
      if (figure)
        how = fmt::format("{} {}", format_percent(std::abs(median(ratios_.at({moved.what, direction})) - 1)), how);
      const auto all = figure ? measured_.at(moved.what) : rows_.size();
      std::string on = hosts.size() == all ? fmt::format("all {}", all) : fmt::format("{} of {}", hosts.size(), all);
      if (moved.order == 0) on = *hosts.begin();
      const Tone tone = moved.order < 3 ? Tone::bad : moved.order == 3 ? Tone::good : Tone::plain;
      table.rows.push_back(
          {{moved.what}, {how, nullptr, tone}, {on, Json(hosts)}, {moved.order == 5 ? "" : causes(hosts)}});
    }
    return table;
  }

  // What moved first, with both figures.
  Table together_table() const {
    Table table{"together", "", {{"case"}, {"metric"}, right("base"), right("head"), right("change"), {"verdict"}}};
    std::multimap<int, std::vector<Cell>> rows;
    const Comparison& all = together_.figures;
    for (const Broken& one : all.pairing.broken)
      rows.emplace(0, std::vector<Cell>{{case_title(*one.entry->record), one.entry->record->key},
                                        {},
                                        {},
                                        {},
                                        {},
                                        {one_line(one.text, 200), nullptr, Tone::bad}});
    for (const Compared& one : all.compared) {
      if (!one.pair->headline) continue;
      const Metric& metric = *one.pair->metric;
      const auto figure = [&](const std::vector<Observation>& runs) {
        std::vector<double> values;
        for (const Observation& run : runs) values.push_back(std::exp(run.log));
        return Cell{format_quantity(median(values), metric.unit), {{"value", median(values)}, {"unit", metric.unit}}};
      };
      const Direction verdict = one.judgement.verdict;
      const int order = verdict == Direction::slower ? 1 : verdict == Direction::faster ? 2 : 3;
      const Tone tone = order == 1 ? Tone::bad : order == 2 ? Tone::good : Tone::plain;
      rows.emplace(order, std::vector<Cell>{{case_title(*one.pair->base->record), one.pair->base->record->key},
                                            {metric.name},
                                            figure(one.pair->base_runs),
                                            figure(one.pair->head_runs),
                                            {change_text(one.change.ratio, one.change.ci95), one.change.ratio},
                                            {std::string(name_of(verdict)), nullptr, tone}});
    }
    for (const LeftOut& one : all.pairing.left_out)
      rows.emplace(4, std::vector<Cell>{{case_title(*one.entry->record), one.entry->record->key},
                                        {},
                                        {},
                                        {},
                                        {},
                                        {"not compared: " + one_line(one.reason, 200)}});
    for (auto& [order, row] : rows) table.rows.push_back(std::move(row));
    return table;
  }

  Table hosts_table() const {
    Table table{"hosts", "", {{"host"}, {"base"}, {"head"}}};
    for (const char* number : {"slower", "faster", "same", "cannot say", "no longer holds", "worst"})
      table.columns.push_back(right(number));
    table.columns.push_back({"changed"});
    std::vector<std::pair<std::string, const Row*>> rows;
    for (const auto& [host, row] : rows_) rows.emplace_back(host, &row);
    std::ranges::stable_sort(rows, {}, [](const auto& one) { return one.second->order(); });
    for (const auto& [host, row] : rows) {
      std::vector<std::string> texts;
      Json data = Json::array();
      for (const Changed* one : row->changed) {
        texts.push_back(fmt::format("{} {} -> {}", one->fact, one->before, one->after));
        data.push_back({{"fact", one->fact}, {"base", one->before}, {"head", one->after}});
      }
      std::vector<Cell> cells{{one_line(host, 80), host}, {row->before}, {row->after}};
      for (const Direction each : {Direction::slower, Direction::faster, Direction::same, Direction::unknown})
        cells.push_back(
            count_cell(row->count(each), row->count(each) > 0 && each == Direction::slower ? Tone::bad : Tone::plain));
      cells.push_back(count_cell(row->broken, row->broken > 0 ? Tone::bad : Tone::plain));
      cells.push_back(row->counts.empty() ? no_cell() : Cell{change_text(row->worst, {}), row->worst});
      cells.push_back({one_line(joined(texts, "; "), 200), std::move(data)});
      table.rows.push_back(std::move(cells));
    }
    return table;
  }

  CompareCounts counts_;
  std::map<Changed, Hosts> changes_;
  const Together& together_;
  std::map<std::string, Row> rows_;
  std::map<Moved, Hosts> moved_;
  std::map<std::string, std::size_t> measured_;  // hosts by case
  std::map<std::pair<std::string, Direction>, std::vector<double>> ratios_;
  std::map<std::string, std::vector<std::string>> only_;  // hosts by side
};

template <typename F>
void keep_records(RunData& run, const F& keep) {
  std::vector<int> lines;
  std::vector<Record> records;
  for (std::size_t i = 0; i < run.records.size(); ++i)
    if (keep(run.records[i])) records.push_back(std::move(run.records[i])), lines.push_back(run.lines[i]);
  run.records = std::move(records), run.lines = std::move(lines);
}

std::vector<RunData> runs_of(const AcceptanceFolder& one, const AcceptanceFolder& other) {
  Hosts common;
  for (const auto& [host, state] : one.hosts)
    if (std::ranges::find(other.hosts, host, &std::pair<std::string, std::string>::first) != other.hosts.end())
      common.insert(host);
  std::vector<RunData> runs = read_runs(one.runs);
  for (RunData& run : runs) {
    keep_records(run, [&](const Record& record) {
      return std::ranges::all_of(record.identity().hosts, [&](const auto& host) { return common.contains(host); });
    });
    run.run["each_host"] = true;  // of a single host, too: its name joins the identity
  }
  return runs;
}

// Returns the run with the most cases of those of a stage on that many hosts. The later ones measured some of them
// again, and the judgement rests on what they found. Without pairs of hosts, which the acceptances judge.
RunData whole_run(const AcceptanceFolder& folder, const std::string& stage, std::size_t hosts) {
  std::vector<fs::path> dirs;
  for (const TogetherRun& one : folder.together)
    if (one.stage == stage && one.hosts == hosts) dirs.push_back(one.dir);
  std::vector<RunData> runs = read_runs(dirs);
  const auto most = std::ranges::max_element(runs, {}, [](const RunData& run) { return run.records.size(); });
  std::set<std::string> keys;
  for (const Record& record : most->records) keys.insert(record.key);
  for (auto later = std::next(most); later != runs.end(); ++later)
    for (std::size_t i = 0; i < later->records.size(); ++i)
      if (Record& record = later->records[i]; keys.contains(record.key) && record.status == Status::ok)
        most->records.push_back(std::move(record)), most->lines.push_back(later->lines[i]);
  keep_records(*most, [](const Record& record) { return !record.matrix; });
  return std::move(*most);
}

// Takes the runs of each stage on the most hosts that it ran on in both, and notes stages without any.
void take_together(const AcceptanceFolder& base, const AcceptanceFolder& head, std::vector<RunData>& before,
                   std::vector<RunData>& after, std::vector<std::string>& notes) {
  for (const char* const stage : together_stages) {
    const auto sizes = [stage](const AcceptanceFolder& folder) {
      std::set<std::size_t> found;
      for (const TogetherRun& one : folder.together)
        if (one.stage == stage) found.insert(one.hosts);
      return found;
    };
    const std::set<std::size_t> of_base = sizes(base), of_head = sizes(head);
    const auto common = std::ranges::find_if(of_base.rbegin(), of_base.rend(),
                                             [&](std::size_t hosts) { return of_head.contains(hosts); });
    if (common != of_base.rend()) {
      before.push_back(whole_run(base, stage, *common)), after.push_back(whole_run(head, stage, *common));
    } else if (!of_base.empty() || !of_head.empty()) {
      const auto text = [](const std::set<std::size_t>& hosts) {
        return hosts.empty() ? std::string("not run") : plural(*hosts.rbegin(), "host");
      };
      notes.push_back(
          fmt::format("{} of all hosts are not compared: base {}, head {}", stage, text(of_base), text(of_head)));
    }
  }
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
  AcceptanceFolder folder{.dir = dir, .finished = false, .hosts = {}, .audit = {}, .runs = {}, .together = {}};
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
  for (const char* const stage : together_stages)
    for (const Json& attempt : member(state, fmt::format("/stages/{}", stage))) {
      const std::string name = text_member(attempt, "/dir");
      const std::size_t hosts = member(attempt, "/hosts").size();
      if (!name.empty() && 2 * hosts > folder.hosts.size() && fs::exists(dir / name / "run.json", none))
        folder.together.push_back({stage, hosts, dir / name});
    }
  return folder;
}

CompareResult compare_acceptances(const AcceptanceFolder& base, const AcceptanceFolder& head,
                                  const CompareOptions& options, Injected handling) {
  const RunSet before(runs_of(base, head), handling), after(runs_of(head, base), handling);
  const Comparison figures = compare_sides(before, after, options.tolerance);
  std::vector<RunData> together_before, together_after;
  std::vector<std::string> notes;
  take_together(base, head, together_before, together_after, notes);
  const RunSet all_before(std::move(together_before), handling), all_after(std::move(together_after), handling);
  const Comparison all = compare_sides(all_before, all_after, options.tolerance);
  const auto side = [](const AcceptanceFolder& one) { return one_line(one.dir.string(), 80); };
  return FleetComparison(base, head, figures, {all, notes})
      .result(fmt::format("base: {} · head: {}", side(base), side(head)), options.tolerance);
}

}  // namespace assay::report
