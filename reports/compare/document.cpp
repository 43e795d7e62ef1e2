// The document of a comparison: environments, cases, what broke, what was left out, every figure.
#include "harness/core/plain_text.h"
#include "harness/json/json.h"
#include "reports/compare/comparison.h"
#include "reports/compare/costs.h"
#include "reports/compare/jobs.h"
#include "reports/compare/words.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/runs/machine.h"
#include "reports/model/cells.h"
#include "reports/ranking/ranking.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace assay::report::comparison {

namespace {

constexpr std::size_t max_rows = 20;       // of what was left out, in the terminal
constexpr std::size_t max_in_figure = 60;  // cases

double middle(const std::vector<Observation>& runs) {
  double sum = 0;
  for (const Observation& run : runs) sum += run.log;
  return std::exp(sum / static_cast<double>(runs.size()));
}

Json interval_data(const Change& change) {
  if (!change.ci95) return nullptr;
  return {{"low", change.ci95->low}, {"high", change.ci95->high}, {"noise", std::string(name_of(change.noise))}};
}

class Builder {
 public:
  Builder(const Comparison& comparison, const CompareOptions& options) : c_(comparison), options_(options) {
    std::set<std::pair<const Entry*, std::string>> seen;
    for (const Pair& pair : c_.pairing.pairs)
      if (seen.insert({pair.base, pair.machine}).second) ++ways_[{pair.base->record->identity(), pair.machine}];
  }

  Document build() {
    document_.title = "Assay comparison";
    document_.headline = headline();
    add_ranking();
    add_environment();
    add_broken();
    add_cases();
    std::ranges::move(job_sections(c_), std::back_inserter(document_.sections));
    if (auto costs = cost_comparison(c_, options_.prices)) document_.sections.push_back(std::move(*costs));
    add_left_out();
    add_problems();
    add_figures();
    add_runs();
    add_counts();
    add_method();
    document_.verdict = verdict();
    document_.tone = tone();
    return std::move(document_);
  }

 private:
  static std::string machines(const RunSet& set) {
    std::vector<std::string> names;
    for (const RunData& run : set.runs()) {
      const std::string name = machine_of(run).name;
      if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
    std::ranges::sort(names);
    if (names.size() > 2) return plural(names.size(), "machine");
    return joined(names, "; ");
  }

  static std::string side(const char* name, const RunSet& set) {
    const std::string on = machines(set);
    return fmt::format("{}: {}{}", name, plural(set.runs().size(), "run"), on.empty() ? "" : " on " + on);
  }

  std::string headline() const { return side("base", c_.base) + " · " + side("head", c_.head); }

  std::string verdict() const {
    const CompareCounts& n = c_.counts;
    std::string line =
        fmt::format("slower: {} · faster: {} · same: {} · cannot say: {}", n.slower, n.faster, n.same, n.unknown);
    if (n.broken > 0) line += fmt::format(" · no longer holds: {}", n.broken);
    line += fmt::format(" · left out: {} · tolerance {}", n.left_out, format_percent(options_.tolerance));
    return line;
  }

  Tone tone() const {
    switch (c_.counts.exit_code()) {
      case ExitCode::ok: return Tone::good;
      case ExitCode::failed: return Tone::bad;
      default: return Tone::warn;
    }
  }

  // If the sides have several kinds of machines, says which is the fastest and which the cheapest, as the head of their
  // report does.
  void add_ranking() {
    if (c_.same_runs) return;
    std::vector<RunData> runs = c_.base.runs();
    runs.insert(runs.end(), c_.head.runs().begin(), c_.head.runs().end());
    const RunSet both(std::move(runs));
    const ranking::Ranking ranking = ranking::rank(both, options_.prices);
    for (Section& section : ranking::sections_of(ranking)) document_.sections.push_back(std::move(section));
    if (!ranking.cases.empty() || !ranking.not_ranked.empty()) document_.members["ranking"] = ranking::json_of(ranking);
  }

  void add_environment() {
    Section section{"environment", "What differs between the sides", {}};
    if (c_.environment.fields.empty()) {
      section.blocks.push_back(
          Text{c_.same_runs ? "Nothing: both sides are the same runs." : "Nothing that the runs recorded."});
    } else {
      Table table{"environment", "", {{"field"}, {"base"}, {"head"}}};
      for (const EnvironmentField& field : c_.environment.fields)
        table.rows.push_back(
            {{field.title, field.pointer}, {field.base_text, Json(field.base)}, {field.head_text, Json(field.head)}});
      section.blocks.push_back(std::move(table));
    }
    const auto mixed = [&](const char* name, const std::vector<std::string>& titles) {
      if (titles.empty()) return;
      section.blocks.push_back(
          Text{fmt::format("The runs of {} differ from each other: {}.", name, fmt::join(titles, ", ")), Tone::warn});
    };
    mixed("base", c_.environment.within_base);
    mixed("head", c_.environment.within_head);
    document_.sections.push_back(std::move(section));
  }

  void add_broken() {
    if (c_.pairing.broken.empty()) return;
    Table table{"broken", "", {{"case"}, {"what"}, {"place"}}};
    for (const Broken& one : c_.pairing.broken) {
      table.rows.push_back(
          {case_cell(*one.entry->record), {one.text, nullptr, Tone::bad}, {one.entry->place(), nullptr, Tone::faint}});
      name_machine(table, one.machine);
    }
    document_.sections.push_back({"broken", "Held in base, does not hold in head", {std::move(table)}});
  }

  // A case measured in several ways on both sides appears several times: its title names the way.
  std::string title_of(const Pair& pair) const {
    const Record& record = *pair.base->record;
    const Metric* usual = headline_metric(record);
    std::string title = case_title(record);
    if (!usual || usual->name != pair.metric->name) title += ", " + pair.metric->name;
    if (const auto several = ways_.find({record.identity(), pair.machine});
        several != ways_.end() && several->second > 1)
      for (const char* way : {"implementation", "isa"})
        if (const auto made = record.attribute(way)) title += ", " + *made;
    return title;
  }

  // A side's figure: the geometric mean of its runs, with the digits that the change's interval allows.
  static Cell side_cell(const Compared& one, const std::vector<Observation>& runs) {
    const Metric& metric = *one.pair->metric;
    const double value = middle(runs);
    std::optional<double> half;
    if (one.change.ci95)
      half = value * (one.change.ci95->high - one.change.ci95->low) / (2 * std::sqrt(2.0) * one.change.ratio);
    return {format_quantity(value, metric.unit, half && std::isfinite(*half) && *half > 0 ? half : std::nullopt),
            {{"metric", metric.name}, {"value", value}, {"unit", metric.unit}, {"runs", runs.size()}},
            Tone::plain,
            {},
            value};
  }

  Cell change_interval_cell(const Change& change, bool name_noise) const {
    std::string text = interval_text(change.ci95);
    if (name_noise && change.ci95 && change.noise == Noise::within_run) text += " w";
    return {std::move(text), interval_data(change), change.ci95 ? Tone::plain : Tone::faint};
  }

  static Cell change_cell(const Compared& one) {
    return {change_text(one.change.ratio, one.change.ci95),
            one.change.ratio,
            one.pair->headline ? tone_of(one.judgement.verdict) : Tone::plain,
            {},
            one.change.ratio};
  }

  static Cell judgement_cell(const Judgement& judgement) {
    return {std::string(name_of(judgement.verdict, cannot_say)),
            {{"verdict", std::string(name_of(judgement.verdict, cannot_say))}, {"reason", judgement.reason}},
            tone_of(judgement.verdict)};
  }

  void add_cases() {
    Section section{"cases", "What changed, case by case", {}};
    std::size_t within = 0, between = 0;
    for (const Compared& one : c_.compared) {
      if (!one.pair->headline) continue;
      within += one.change.noise == Noise::within_run;
      between += one.change.noise == Noise::between_runs;
    }
    const bool mixed = within > 0 && between > 0;
    Table table{"cases",
                "",
                {{"case"},
                 right("base"),
                 right("head"),
                 right("ratio", "speed"),
                 right("ci95", within > 0 && !mixed ? "95 %, within-run" : "95 %"),
                 right("detectable", "detects"),
                 {"verdict"}}};
    for (const Compared& one : c_.compared) {
      if (!one.pair->headline) continue;
      table.rows.push_back({{title_of(*one.pair), one.pair->base->record->key, Tone::plain, one.pair->base->anchor()},
                            side_cell(one, one.pair->base_runs),
                            side_cell(one, one.pair->head_runs),
                            change_cell(one),
                            change_interval_cell(one.change, mixed),
                            {detectable_text(one.change.detectable), or_null(one.change.detectable)},
                            judgement_cell(one.judgement)});
      name_machine(table, one.pair->machine);
    }
    if (table.rows.empty()) {
      section.blocks.push_back(Text{"No case was measured in the same way on both sides.", Tone::warn});
    } else {
      section.blocks.push_back(std::move(table));
      add_reasons(section);
      if (within > 0)
        section.blocks.push_back(Text{std::string(mixed ? "w: " : "") +
                                          "With one run per side the interval covers noise within a run, not between "
                                          "runs. Use three or more runs per side: assay compare --base A1 A2 A3 "
                                          "--head B1 B2 B3.",
                                      Tone::faint});
      add_pictures(section);
    }
    document_.sections.push_back(std::move(section));
  }

  // Why verdicts are unknown, and how often.
  void add_reasons(Section& section) {
    std::map<std::string, std::size_t> reasons;
    for (const Compared& one : c_.compared)
      if (one.pair->headline && one.judgement.verdict == Direction::unknown) ++reasons[one.judgement.reason];
    for (const auto& [reason, n] : reasons)
      section.blocks.push_back(Text{fmt::format("Cannot say, {}: {}.", plural(n, "case"), reason), Tone::warn});
  }

  // A picture of each machine, as names of cases with machines would be too long.
  void add_pictures(Section& section) {
    std::vector<std::string> machines;
    for (const Compared& one : c_.compared)
      if (one.pair->headline && std::ranges::find(machines, one.pair->machine) == machines.end())
        machines.push_back(one.pair->machine);
    for (const std::string& machine : machines) add_picture(section, machine);
  }

  void add_picture(Section& section, const std::string& machine) {
    Figure figure{machine.empty() ? "changes" : "changes-" + machine,
                  "Speed of head relative to base" + (machine.empty() ? "" : ": " + machine),
                  "",
                  {"case", ""},
                  {"speed relative to base", "1"},
                  {}};
    std::map<Direction, Curve> curves;
    double low = 1, high = 1;
    for (const Compared& one : c_.compared) {
      if (!one.pair->headline || one.pair->machine != machine) continue;
      const double x = static_cast<double>(figure.x.categories.size());
      figure.x.categories.push_back(title_of(*one.pair));
      Curve& curve = curves[one.judgement.verdict];
      curve.name = name_of(one.judgement.verdict, cannot_say);
      curve.points.push_back({x, one.change.ratio, one.change.ci95, figure.x.categories.back()});
      low = std::min(low, one.change.ratio);
      high = std::max(high, one.change.ratio);
    }
    if (figure.x.categories.size() > max_in_figure) return;
    figure.y.logarithmic = high > 4 * low;
    std::vector<std::string> counts;
    for (auto& [verdict, curve] : curves) {
      counts.push_back(fmt::format("{} {}", curve.points.size(), curve.name));
      figure.curves.push_back(std::move(curve));
    }
    const double last = static_cast<double>(figure.x.categories.size()) - 1;
    figure.curves.push_back({"base", Mark::line, {{0, 1}, {last, 1}}, true});
    figure.alt = fmt::format("{} in {}, from {:.3g} to {:.3g}: {}.", figure.title,
                             plural(figure.x.categories.size(), "case"), low, high, fmt::join(counts, ", "));
    section.blocks.push_back(std::move(figure));
  }

  void add_left_out() {
    if (c_.pairing.left_out.empty()) return;
    Table table{"left_out", "", {{"case"}, {"side"}, right("figure"), {"reason"}}};
    std::map<std::string, std::size_t> kinds;
    for (const LeftOut& one : c_.pairing.left_out) {
      const Record& record = *one.entry->record;
      table.rows.push_back(
          {case_cell(record), {one.side, nullptr}, figure_cell(headline_metric(record)), {one.reason, nullptr}});
      name_machine(table, one.machine);
      ++kinds[one.reason.substr(0, one.reason.find(':'))];
    }
    const bool many = table.rows.size() > max_rows;
    if (many) {
      List list{"left_out_kinds", {}};
      for (const auto& [kind, n] : kinds) list.items.push_back(fmt::format("{}: {}", kind, n));
      document_.sections.push_back({"left_out_kinds", "What was left out", {std::move(list)}});
    }
    document_.sections.push_back(
        {"left_out", many ? "What was left out, case by case" : "What was left out", {std::move(table)}, !many});
  }

  void add_problems() {
    List list{"unreadable", {}};
    std::size_t count = 0;
    for (const RunSet* set : {&c_.base, &c_.head})
      for (const RunData& run : set->runs()) {
        const std::string name = fmt::format("{}: {}", set == &c_.base ? "base" : "head", run.dir.filename().string());
        std::ranges::move(first_ten(run.problems, name), std::back_inserter(list.items));
        count += run.problems.size();
      }
    if (list.items.empty()) return;
    const std::string title = fmt::format("Unreadable: {}", plural(count, "line"));
    const bool many = list.items.size() > max_rows;
    if (many) document_.sections.push_back({"unreadable_count", title, {}});
    document_.sections.push_back({"unreadable", title, {std::move(list)}, !many});
  }

  void add_figures() {
    if (c_.compared.empty()) return;
    Table table{"figures",
                "",
                {{"key"},
                 right("ranks"),
                 {"metric"},
                 right("base"),
                 right("head"),
                 right("base_runs", "base runs"),
                 right("head_runs", "head runs"),
                 right("ratio", "speed"),
                 right("ci95", "95 % interval"),
                 {"noise"},
                 right("freedom", "degrees of freedom"),
                 right("p"),
                 right("q"),
                 right("detectable", "detects"),
                 {"verdict"},
                 {"reason", "why"}}};
    const auto number = [](const std::optional<double>& value, const char* format) {
      return Cell{value ? fmt::format(fmt::runtime(format), *value) : "–", or_null(value), Tone::plain, {}, value};
    };
    std::set<const Entry*> seen;
    for (const Compared& one : c_.compared) {
      const Record& record = *one.pair->base->record;
      const bool judged = one.pair->headline;
      table.rows.push_back({{record.key, nullptr},
                            count_cell(record.world_ranks),
                            {one.pair->metric->name, nullptr},
                            side_cell(one, one.pair->base_runs),
                            side_cell(one, one.pair->head_runs),
                            count_cell(one.pair->base_runs.size()),
                            count_cell(one.pair->head_runs.size()),
                            change_cell(one),
                            change_interval_cell(one.change, false),
                            {std::string(name_of(one.change.noise)), nullptr},
                            number(one.change.freedom, "{:.1f}"),
                            number(one.change.p, "{:.2g}"),
                            number(one.change.q, "{:.2g}"),
                            {detectable_text(one.change.detectable), or_null(one.change.detectable)},
                            judged ? judgement_cell(one.judgement) : no_cell(),
                            {judged ? one.judgement.reason : "not judged: another figure of this case is", nullptr}});
      name_machine(table, one.pair->machine);
      table.anchors.push_back(seen.insert(one.pair->base).second ? one.pair->base->anchor() : "");
    }
    document_.sections.push_back({"figures", "Every figure", {std::move(table)}, false});
  }

  void add_runs() {
    Table table{"runs", "", {{"side"}, {"run"}, {"started"}, {"machine"}, {"plan"}, right("cases")}};
    for (const RunSet* set : {&c_.base, &c_.head})
      for (std::size_t i = 0; i < set->runs().size(); ++i) {
        const RunData& run = set->runs()[i];
        table.rows.push_back({{set == &c_.base ? "base" : "head", nullptr},
                              {run.dir.filename().string(), nullptr},
                              {text_member(run.run, "/started"), nullptr},
                              {machine_of(run).name, nullptr},
                              {text_member(run.run, "/plan/name"), nullptr},
                              count_cell(set->entries_of(i).size())});
      }
    document_.sections.push_back({"runs", "The runs", {std::move(table)}, false});
  }

  void add_counts() {
    const CompareCounts& n = c_.counts;
    Table table{"counts", "", {}, {{}}};
    const auto add = [&](const char* id, const char* title, const Json& value, std::string text) {
      table.columns.push_back(right(id, title));
      table.rows[0].push_back({std::move(text), value});
    };
    const auto number = [&](const char* id, const char* title, int value) {
      add(id, title, value, std::to_string(value));
    };
    number("slower", "slower", n.slower);
    number("faster", "faster", n.faster);
    number("same", "same", n.same);
    number("cannot_say", "cannot say", n.unknown);
    number("maybe_slower", "of these possibly slower", n.unknown_slow);
    number("broken", "no longer holds", n.broken);
    number("left_out", "left out", n.left_out);
    add("tolerance", "tolerance", options_.tolerance, format_percent(options_.tolerance));
    number("exit_code", "exit code", static_cast<int>(n.exit_code()));
    document_.sections.push_back({"counts", "Counts", {std::move(table)}, false});
  }

  void add_method() {
    List list{
        "method",
        {"Paired by key, device, ranks, nodes and seed (and hosts, if all runs were made with --each-host; and the "
         "kind of machine, if a side has several); compared if protocol, implementation, instruction set, unit and "
         "direction are equal.",
         "speed: head over base, so that more than 1 is faster whichever way the metric counts; figures of several "
         "runs are geometric means.",
         "Several runs per side: Welch's t test of the logarithms of the runs' figures; a run's variance is at least "
         "what its own samples show, and at least 0.1 % squared.",
         fmt::format("One run per side: the interval is that of the samples (their range, if they give none). A change "
                     "must also exceed what noise between runs explains: {} per run; from {} cases on, the scatter of "
                     "their ratios, and at least {}.",
                     fmt::format("{:.3g} %", 100 * assumed_run_noise), scatter_cases,
                     fmt::format("{:.3g} %", 100 * quiet_run_noise)),
         "q is p adjusted for the number of cases (Benjamini & Hochberg): at q = 5 %, 5 % of the reported changes are "
         "expected to be false.",
         fmt::format("same: the interval is within ± {0} (the tolerance). slower, faster: q is at most 0.05 and the "
                     "change exceeds {0}; with one run per side the whole interval does.",
                     format_percent(options_.tolerance)),
         "detects: the smallest change that four out of five such comparisons would find at 5 %."}};
    document_.sections.push_back({"method", "How it was judged", {std::move(list)}, false});
  }

  const Comparison& c_;
  const CompareOptions& options_;
  std::map<std::pair<Identity, std::string>, int>
      ways_;  // number of ways (protocol, conditions, choices) each case was measured
  Document document_;
};

}  // namespace

Document comparison_document(const Comparison& comparison, const CompareOptions& options) {
  return Builder(comparison, options).build();
}

}  // namespace assay::report::comparison
