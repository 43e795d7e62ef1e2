// Grouping of two sides' records by identity, then by how they were measured.
#include "reports/compare/pairing.h"

#include "harness/core/text.h"
#include "harness/json/json.h"
#include "harness/runs/figures.h"
#include "harness/runs/host_runs.h"
#include "harness/runs/machine_kind.h"
#include "harness/runs/why_left_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::report::comparison {

namespace {

using Entries = std::vector<const Entry*>;

struct Case {
  Entries base, head;
  std::string machine = {};
};

bool each_host(const RunSet& set) {
  return std::ranges::all_of(set.runs(), [](const RunData& run) {
    if (ran_on_each_host(run)) return true;
    const Json argv = member(run.run, "/argv");
    return argv.is_array() && std::ranges::find(argv, Json("--each-host")) != argv.end();
  });
}

Identity paired_by(const Record& record, bool join_hosts) {
  const Identity identity = record.identity();
  return join_hosts ? identity : identity.on_any_host();
}

// Why a record is not a measurement; absent if it is one.
std::optional<WhyLeftOut> why_unusable(const Record& record) {
  if (auto why = why_left_out(record)) return why;
  if (!headline_metric(record)) return WhyLeftOut{"no figure", ""};
  return std::nullopt;
}

bool broke(const Entry* entry) {
  return !injected(*entry->record) &&
         (entry->record->status == Status::failed || entry->record->status == Status::error);
}

bool held(const Entry* entry) { return !injected(*entry->record) && entry->record->status == Status::ok; }

constexpr Scope between_sides{.sides = true};

bool comparable(const Entry* a, const Entry* b) { return differences(*a->record, *b->record, between_sides).empty(); }

// "different protocol: cache cold / hot", base's first.
std::string what_differs(const Record& base, const Record& head) {
  std::vector<std::string> fields, parts;
  for (const Difference& one : differences(base, head, between_sides)) {
    if (one.protocol) {
      fields.push_back(fmt::format("{} {} / {}", one.name, one.own.value_or("none"), one.other.value_or("none")));
      continue;
    }
    parts.push_back(fmt::format("different {}: {} / {}", one.name == "isa" ? "instruction set" : one.name,
                                one.own.value_or("not recorded"), one.other.value_or("not recorded")));
  }
  if (!fields.empty()) parts.insert(parts.begin(), fmt::format("different protocol: {}", fmt::join(fields, ", ")));
  return joined(parts, "; ");
}

// The interval of a figure by its samples alone: the metric's own, else the whole range of the samples about their
// median (wider than any interval of it; what correlated or few samples leave).
std::optional<Interval> within_run(const Entry& entry, const Metric& metric) {
  const double log = std::log(*metric.value);
  if (metric.ci95 && metric.ci95->low > 0 && metric.ci95->low <= metric.ci95->high && std::isfinite(metric.ci95->high))
    return Interval{std::min(std::log(metric.ci95->low), log), std::max(std::log(metric.ci95->high), log)};
  std::vector<double> samples;
  try {
    samples = all_samples(*entry.run, *entry.record);
  } catch (const MissingSeries&) {  // nothing is known then
  }
  std::erase_if(samples, [](double value) { return !std::isfinite(value) || value <= 0; });
  if (samples.size() < 2) return std::nullopt;
  const auto [min, max] = std::ranges::minmax_element(samples);
  const double middle = median(samples), slow = std::log(*max / middle), fast = std::log(middle / *min);
  return metric.better == Better::higher ? Interval{log - slow, log + fast} : Interval{log - fast, log + slow};
}

// One observation per run; several hosts of a run are averaged.
std::vector<Observation> observe(const Entries& entries, const std::string& metric) {
  struct Sum {
    double log = 0, down = 0, up = 0;
    int n = 0;
    bool known = true;
  };
  std::map<std::size_t, Sum> runs;
  for (const Entry* entry : entries) {
    const Metric* found = positive_metric(*entry->record, metric);
    Sum& sum = runs[entry->directory];
    const double log = std::log(*found->value);
    sum.log += log;
    ++sum.n;
    if (const auto within = within_run(*entry, *found)) {
      sum.down = std::hypot(sum.down, log - within->low);
      sum.up = std::hypot(sum.up, within->high - log);
    } else {
      sum.known = false;
    }
  }
  std::vector<Observation> observations;
  for (const auto& [run, sum] : runs) {
    const double mean = sum.log / sum.n;
    Observation made{mean};
    if (sum.known) made.within = Interval{mean - sum.down / sum.n, mean + sum.up / sum.n};
    observations.push_back(made);
  }
  return observations;
}

class Pairer {
 public:
  explicit Pairer(Pairing& out) : out_(out) {}

  void add(const Case& one) {
    machine_ = one.machine;
    const bool found = find_broken(one);
    if (only_checks(one.base) && (found || only_checks(one.head))) return;  // they have nothing to compare
    if (one.base.empty() || one.head.empty()) {
      const bool in_base = one.head.empty();
      const Entry* entry = in_base ? one.base.front() : one.head.front();
      const auto why = why_unusable(*entry->record);
      const std::string side = in_base ? "base" : "head";
      leave_out(entry, side, WhyLeftOut{"only in " + side, why ? why->text() : ""}.text());
      return;
    }
    const Entries base = usable(one.base, "base", false), head = usable(one.head, "head", found);
    if (base.empty() || head.empty()) return;
    std::vector<std::pair<const Entry*, Case>> groups;  // by the first entry of each
    const auto group = [&](const Entries& entries, Entries Case::*side) {
      for (const Entry* entry : entries) {
        auto place = std::ranges::find_if(groups, [&](const auto& known) { return comparable(known.first, entry); });
        if (place == groups.end()) place = groups.insert(place, {entry, {}});
        (place->second.*side).push_back(entry);
      }
    };
    group(base, &Case::base);
    group(head, &Case::head);
    for (const auto& [first, alike] : groups) {
      if (!alike.base.empty() && !alike.head.empty())
        add_metrics(alike);
      else if (alike.head.empty())
        leave_out(alike.base.front(), "base", what_differs(*alike.base.front()->record, *head.front()->record));
      else
        leave_out(alike.head.front(), "head", what_differs(*base.front()->record, *alike.head.front()->record));
    }
  }

 private:
  void leave_out(const Entry* entry, std::string side, std::string reason) {
    out_.left_out.push_back({entry, std::move(side), std::move(reason), machine_});
  }

  // Checks without figures, such as return codes, that hold.
  static bool only_checks(const Entries& entries) {
    return !entries.empty() && std::ranges::all_of(entries, [](const Entry* entry) {
      return held(entry) && entry->record->metrics.empty() && !entry->record->checks.empty();
    });
  }

  bool find_broken(const Case& one) {
    const bool base_held = std::ranges::any_of(one.base, held) && std::ranges::none_of(one.base, broke);
    const auto count = std::ranges::count_if(one.head, broke);
    if (!base_held || count == 0) return false;
    const Entry* first = *std::ranges::find_if(one.head, broke);
    std::string text = why_left_out(*first->record)->text();
    if (one.head.size() > 1) text += fmt::format(" (in {} of {} runs of head)", count, one.head.size());
    out_.broken.push_back({first, std::move(text), machine_});
    return true;
  }

  // The measurements among them; the others are left out, each reason once, except broken ones already reported.
  Entries usable(const Entries& entries, const char* side, bool broken_reported) {
    Entries good;
    std::vector<std::pair<WhyLeftOut, Entries>> bad;
    for (const Entry* entry : entries) {
      const auto why = why_unusable(*entry->record);
      if (!why) good.push_back(entry);
      if (!why || (broken_reported && broke(entry))) continue;
      auto found = std::ranges::find_if(bad, [&](const auto& known) { return known.first == *why; });
      if (found == bad.end()) found = bad.insert(bad.end(), {*why, {}});
      found->second.push_back(entry);
    }
    for (const auto& [why, those] : bad) {
      const std::string part =
          entries.size() == 1 ? "" : fmt::format(" ({} of {} records)", those.size(), entries.size());
      leave_out(those.front(), side, WhyLeftOut{fmt::format("{} in {}{}", why.what, side, part), why.detail}.text());
    }
    return good;
  }

  void add_metrics(const Case& alike) {
    const Record& first = *alike.base.front()->record;
    const Metric* headline = headline_metric(first);
    add_metric(alike, *headline, true);
    std::set<std::string> seen{headline->name};
    for (const Metric& metric : first.metrics)
      if (metric.value && seen.insert(metric.name).second) add_metric(alike, metric, metric.name == "throughput");
  }

  // Keeps the entries that have the metric in its unit and direction.
  void add_metric(const Case& alike, const Metric& metric, bool headline) {
    Pair pair;
    pair.metric = &metric;
    pair.headline = headline;
    pair.machine = machine_;
    std::set<std::string> reasons;
    const auto keep = [&](const Entries& entries, const char* side, Entries& kept) {
      for (const Entry* entry : entries) {
        const Metric* found = find_metric(*entry->record, metric.name);
        if (!found)
          reasons.insert(fmt::format("{} absent in {}", metric.name, side));
        else if (found->unit != metric.unit)
          reasons.insert(fmt::format("{} in different units: {} / {}", metric.name, metric.unit, found->unit));
        else if (found->better != metric.better)
          reasons.insert(fmt::format("{} in different directions: {} is better", metric.name,
                                     metric.better == Better::higher ? "higher / lower" : "lower / higher"));
        else if (!positive_metric(*entry->record, metric.name))
          reasons.insert(fmt::format("{} in {} is not above 0: no ratio", metric.name, side));
        else
          kept.push_back(entry);
      }
    };
    keep(alike.base, "base", pair.base_entries);
    keep(alike.head, "head", pair.head_entries);
    if (headline && !reasons.empty()) leave_out(alike.base.front(), "both", joined(reasons, "; "));
    if (pair.base_entries.empty() || pair.head_entries.empty()) return;
    pair.base = pair.base_entries.front();
    pair.head = pair.head_entries.front();
    pair.base_runs = observe(pair.base_entries, metric.name);
    pair.head_runs = observe(pair.head_entries, metric.name);
    out_.pairs.push_back(std::move(pair));
  }

  Pairing& out_;
  std::string machine_;  // of the case at hand
};

std::string kinds_text(const RunSet& set, const std::vector<MachineKind>& kinds) {
  std::vector<std::string> texts;
  for (const MachineKind& kind : kinds) {
    std::set<std::string> dirs;
    for (const std::size_t run : kind.runs) dirs.insert(set.runs()[run].dir.string());
    texts.push_back(fmt::format("{} ({})", kind.name.empty() ? "unknown machine" : one_line(kind.name),
                                one_line(joined(dirs, " "))));
  }
  return joined(texts);
}

// Runs of one kind of machine on each side.
struct KindPair {
  std::string machine;
  std::set<std::size_t> base, head;
};

// Empty if neither side has several kinds.
std::vector<KindPair> pair_kinds(const RunSet& base, const RunSet& head) {
  const std::vector<MachineKind> kinds = machine_kinds(base.runs()), others = machine_kinds(head.runs());
  std::vector<KindPair> pairs;
  if (kinds.empty() || others.empty() || kinds.size() + others.size() == 2) return pairs;
  const auto add = [&](const MachineKind& one, const MachineKind& other, const std::string& name) {
    pairs.push_back({name, {one.runs.begin(), one.runs.end()}, {other.runs.begin(), other.runs.end()}});
  };
  if (kinds.size() == 1 || others.size() == 1) {
    for (const MachineKind& kind : kinds)
      for (const MachineKind& other : others) add(kind, other, kinds.size() > 1 ? kind.name : other.name);
    return pairs;
  }
  std::set<std::size_t> partners;
  for (const MachineKind& kind : kinds)
    for (std::size_t i = 0; i < others.size(); ++i)
      if (same_kind(kind, others[i])) partners.insert(i), add(kind, others[i], kind.name);
  if (pairs.size() != kinds.size() || partners.size() != kinds.size() || partners.size() != others.size())
    throw UsageError(fmt::format(
        "compare: different kinds of machines are not samples of one side, and these do not pair: base has {}; head "
        "has {}; give one side a single kind",
        kinds_text(base, kinds), kinds_text(head, others)));
  return pairs;
}

// A test of another tool that broke as a whole takes the cases with it that head lacks: those below its key, or beside
// its return code.
void add_lost(const std::vector<Case>& cases, Pairing& pairing) {
  for (const Case& whole : cases) {
    const auto found = std::ranges::find_if(whole.head, broke);
    if (found == whole.head.end() || (*found)->record->family != "imported") continue;
    const Record& record = *(*found)->record;
    const std::size_t last = record.key.rfind('/') + 1;
    const bool code = record.key.substr(last).starts_with("return_code");
    const std::string below = code ? record.key.substr(0, last) : record.key + "/";
    for (const Case& one : cases)
      if (one.head.empty() && one.machine == whole.machine && std::ranges::any_of(one.base, held) &&
          one.base.front()->record->key.starts_with(below))
        pairing.broken.push_back(
            {one.base.front(),
             fmt::format("absent in head, where {} broke: {}", one_line(record.key), why_left_out(record)->text()),
             one.machine});
  }
}

}  // namespace

Pairing pair_sides(const RunSet& base, const RunSet& head) {
  const bool join_hosts = each_host(base) && each_host(head);
  std::vector<KindPair> kinds;
  if (!join_hosts) kinds = pair_kinds(base, head);
  const bool one_kind = kinds.empty();
  if (one_kind) kinds.emplace_back();
  std::vector<Case> cases;
  std::map<std::pair<Identity, std::size_t>, std::size_t> places;
  const auto collect = [&](const RunSet& set, std::set<std::size_t> KindPair::*runs, Entries Case::*side) {
    for (const Entry& entry : set.entries())
      for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
        if (!one_kind && !(kinds[kind].*runs).contains(entry.run_index)) continue;
        const auto [place, fresh] = places.try_emplace({paired_by(*entry.record, join_hosts), kind}, cases.size());
        if (fresh) cases.push_back({{}, {}, kinds[kind].machine});
        (cases[place->second].*side).push_back(&entry);
      }
  };
  collect(base, &KindPair::base, &Case::base);
  collect(head, &KindPair::head, &Case::head);
  Pairing pairing;
  Pairer pairer(pairing);
  for (const Case& one : cases) pairer.add(one);
  add_lost(cases, pairing);
  return pairing;
}

}  // namespace assay::report::comparison
