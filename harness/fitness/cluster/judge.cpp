// The judgement of runs: every host by itself, and all of them together.
#include "harness/fitness/cluster/cluster.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/fitness/cluster/equal_losses.h"
#include "harness/fitness/cluster/gpus.h"
#include "harness/fitness/cluster/groups.h"
#include "harness/fitness/cluster/pairs.h"
#include "harness/fitness/cluster/rails.h"
#include "harness/fitness/floors/judge.h"
#include "harness/record/flags.h"
#include "harness/statistics/statistics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace assay::fitness {

namespace {

// What run, record or device says about itself that makes this a drill, by the flags of records.
std::string drill_of(const std::string& text) {
  if (text == flag::one_machine) return text + ": they share its cores, so their figures disturb each other";
  if (text.starts_with(flag::injected)) return "faults were injected on purpose (" + text + ")";
  return text == flag::emulated_gpu || text == flag::described_machine ? text : std::string();
}

// A drill is judged like an acceptance, and says that it is one.
RunData as_acceptance(RunData run) {
  for (Record& record : run.records)
    for (const std::string& text : record.flags) record.comparable = record.comparable || !drill_of(text).empty();
  return run;
}

std::string wrong_text(const Record& record) {
  std::vector<std::string> parts;
  for (const Check& check : record.checks)
    if (!check.passed)
      parts.push_back(check.detail.empty() ? check.name : fmt::format("{} ({})", check.name, check.detail.front()));
  return fmt::format("wrong result: {}: {}", record.key,
                     parts.empty() ? one_line(record.reason) : one_line(joined(parts, "; "), 300));
}

// How far from the limit, as a fraction; above 0: beyond it.
double beyond(const Judgement& one, const Floor& floor) {
  return one.value && one.limit ? shortfall(*one.value, floor.bound, *one.limit) : 0;
}

// Which of several ranks the figure comes from; a single one is the host itself.
std::string culprit_of(const Judgement& one) {
  return one.entry.record->ranks.size() > 1 ? one.culprit : std::string();
}

void show(HostCheck& check, const Judgement& one, const Floor& floor) {
  check.of = one.entry.record->key + " " + floor.metric;
  check.unit = floor.unit;
  check.figure = one.value;
  check.floor = one.limit;
  check.at_most = floor.bound == Bound::at_most;
  check.culprit = culprit_of(one);
}

std::string line_of(const Judgement& one, const Floor& floor) {
  std::string line = fmt::format(
      "{} {} {}, {} {}{}: {}", one.entry.record->key, floor.metric, format_quantity(*one.value, floor.unit),
      floor.bound == Bound::at_least ? "floor" : "ceiling", format_quantity(*one.limit, floor.unit),
      one.median ? fmt::format(" ({} of {} hosts' median)", format_percent(*one.limit / *one.median), one.members)
                 : std::string(),
      one.reason);
  if (const std::string culprit = culprit_of(one); !culprit.empty() && !one.entry.record->matrix)
    line += "; " + culprit;
  const auto& outside = one.entry.record->outside_cpu;
  if (outside && outside->throttled && *outside->throttled > 0.05)
    line += fmt::format("; a CPU quota held back {:.2g} CPUs", *outside->throttled);
  return line;
}

// Returns the name that a record of one host gives it.
std::string host_in(const Record& record, const std::string& host) {
  const auto named = record.identity().hosts;
  return named.size() == 1 ? named.front() : host;
}

void blame_rank(HostCheck& check, const Record& record, const RankResult* rank) {
  const std::string name = !rank ? "" : rank->pci.empty() ? rank->uuid : rank->pci;
  if (!rank || (name.empty() && record.device == "cpu")) return check.blame("host");
  check.blame("gpu", name.empty() && record.ranks.size() > 1 ? fmt::format("of rank {}", rank->rank) : name);
}

// The rank that the record's failure names, else the one on this host that took longest, else its only one.
void blame_failed(HostCheck& check, const Record& record, const std::string& host) {
  if (record.failure && record.failure->rank)
    for (const RankResult& rank : record.ranks)
      if (rank.rank == *record.failure->rank) return blame_rank(check, record, &rank);
  blame_rank(check, record, slowest_rank(record, host));
}

MissedFloor missed(const Judgement& one, const Floor& floor) {
  return {.key = one.entry.record->key,
          .metric = floor.metric,
          .unit = floor.unit,
          .bound = floor.bound == Bound::at_least ? "at_least" : "at_most",
          .value = one.value,
          .limit = one.limit,
          .source = floor.source,
          .reason = one.reason};
}

// The judgements of one floor: of each host's attempts at a case the best counts.
class OfFloor {
 public:
  OfFloor(const FloorResult& result, const std::vector<std::string>& hosts) : floor_(*result.floor) {
    for (const Judgement& one : result.records) {
      const std::string host = host_of(*one.entry.record, hosts);
      if (one.outcome == Outcome::refused) continue;
      const auto [place, fresh] = best_.try_emplace({host, one.entry.record->identity().unplaced().text()}, &one);
      if (!fresh && better(one, *place->second)) place->second = &one;
    }
  }

  // `nearest`: per host, how far the figure shown so far is beyond its limit.
  void add_to(HostChecks& checks, std::map<std::string, double>& nearest) const {
    for (const auto& [place, one] : best_) {
      const auto check = checks.find(place.first);
      if (check == checks.end() || !one->value || !one->limit) continue;
      if (one->outcome != Outcome::pass) {
        const bool fails = one->outcome == Outcome::fail;
        add_line(check->second, fails ? Fitness::fail : Fitness::unsure, line_of(*one, floor_));
        check->second.repeat.insert(one->entry.record->key);
        if (fails) check->second.missed.push_back(missed(*one, floor_));
        const Record& record = *one->entry.record;
        const auto slow = slow_ranks(record, floor_, *one->limit, host_in(record, place.first));
        for (const RankResult* rank : slow) blame_rank(check->second, record, rank);
        if (slow.empty()) check->second.blame("host");
      } else {
        check->second.note(Fitness::pass, "");
      }
      const auto [far, fresh] = nearest.try_emplace(place.first, beyond(*one, floor_));
      if (!fresh && beyond(*one, floor_) <= far->second) continue;
      far->second = beyond(*one, floor_);
      show(check->second, *one, floor_);
    }
  }

  // Hosts without a usable record of a floor that requires one, if any host has it: what none has is not measured, and
  // no host's fault.
  void require(HostChecks& checks) const {
    std::set<std::string> have;
    for (const auto& [place, one] : best_)
      if (one->limit) have.insert(place.first);
    if (!floor_.required || have.empty()) return;
    for (auto& [host, check] : checks) {
      if (!have.contains(host))
        add_line(check, Fitness::fail,
                 fmt::format("no usable record for the required floor {} {}", floor_.key, floor_.metric));
    }
  }

 private:
  bool better(const Judgement& one, const Judgement& other) const {
    if (one.outcome != other.outcome) return one.outcome == Outcome::unusable ? false : one.outcome > other.outcome;
    return beyond(one, floor_) < beyond(other, floor_);
  }

  const Floor& floor_;
  std::map<std::pair<std::string, std::string>, const Judgement*> best_;
};

// Wrong, broken and missing records of each host; whether what broke is the host's fault is seen from the others.
void judge_status(const RunSet& runs, const std::vector<std::string>& hosts, HostChecks& checks) {
  struct Counts {
    std::size_t ok = 0;
    std::vector<std::pair<std::string, const Record*>> others;  // by host
  };
  std::map<std::string, Counts> by_case;
  std::map<std::pair<std::string, std::string>, int> finished_by;  // by host and key: the fewest ranks
  std::set<std::string> heard;
  for (const Entry& entry : runs.entries()) {
    const Record& record = *entry.record;
    const std::string host = host_of(record, hosts);
    if (!checks.contains(host)) continue;
    heard.insert(host);
    Counts& counts = by_case[record.identity().unplaced().text()];
    if (record.status == Status::ok) {
      ++counts.ok, checks[host].note(Fitness::pass, "");
      int& ranks = finished_by.try_emplace({host, record.key}, record.world_ranks).first->second;
      ranks = std::min(ranks, record.world_ranks);
    } else if (record.status == Status::failed)
      add_line(checks[host], Fitness::fail, wrong_text(record)), checks[host].broken.insert(record.key),
          blame_failed(checks[host], record, host_in(record, host));
    else
      counts.others.emplace_back(host, &record);
  }
  for (const auto& [name, counts] : by_case)
    for (const auto& [host, record] : counts.others) {
      const bool named = record->failure && record->failure->rank && record->ranks.size() > 1;
      const auto without = finished_by.find({host, record->key});  // this rank
      const bool only_here = counts.ok > counts.others.size() ||
                             (named && without != finished_by.end() && without->second < record->world_ranks);
      const std::string line = fmt::format("{}: {}{}", record->key, one_line(record->reason, 300),
                                           counts.ok > 0 ? fmt::format(" (measured on {} others)", counts.ok) : "");
      if (record->status == Status::error)
        add_line(checks[host], only_here ? Fitness::fail : Fitness::unsure, "broke: " + line),
            checks[host].broken.insert(record->key);
      else if (counts.ok > 0)
        add_line(checks[host], only_here ? Fitness::fail : Fitness::unsure, "cannot run here: " + line);
      if (record->status == Status::error && (only_here || named))
        blame_failed(checks[host], *record, host_in(*record, host));
    }
  for (const auto& [name, counts] : by_case)
    for (const auto& [host, record] : counts.others)
      if (checks[host].state == Fitness::unknown)
        checks[host].note(Fitness::unsure, "every case was skipped: " + one_line(record->reason, 300));
  for (const std::string& host : hosts)
    if (!heard.contains(host))
      checks[host].note(heard.empty() ? Fitness::unsure : Fitness::fail, "no record: lost, or it never began");
}

// Floors without those that compare hosts, or only those.
Floors part_of(const Floors& all, bool relative) {
  Floors part = all;
  std::erase_if(part.floors, [relative](const Floor& floor) { return floor.relative != relative; });
  return part;
}

bool compares_hosts(const Floors* floors) { return floors && std::ranges::any_of(floors->floors, &Floor::relative); }

// Judges what a host loses in all cases together, which shows before any case shows it.
void judge_losses(const CheckResult& result, const std::vector<std::string>& hosts, HostChecks& checks) {
  for (const auto& [host, lost] : result.together) {
    const auto check = checks.find(host);
    const bool slow = lost.loss > lost.limit;
    if (check == checks.end() || (!slow && lost.slower_group == 0)) continue;
    add_line(check->second, slow ? Fitness::fail : Fitness::unsure,
             fmt::format("all {} cases together: {} slower than the median of {} hosts; {}", lost.cases,
                         format_percent(lost.loss), result.together.size(),
                         slow ? format_percent(lost.limit) + " may be chance"
                              : fmt::format("one of {} that are slower than the others: floors would tell which are "
                                            "right",
                                            lost.slower_group)));
    if (slow) check->second.blame("host");
    if (!check->second.figure) {
      check->second.of = "all cases together, of the median", check->second.unit = "1";
      check->second.figure = 1 - lost.loss, check->second.floor = 1 - lost.limit;
    }
    if (slow)
      for (const FloorResult& one : result.results)
        for (const Judgement& judged : one.records)
          if (judged.median && host_of(*judged.entry.record, hosts) == host)
            check->second.repeat.insert(judged.entry.record->key);
  }
}

// ---- of all hosts together

// Whose fault a wrong result is: who saw it, unless one host sent it to several.
std::set<std::string> blamed(const Record& record, const std::vector<std::string>& hosts) {
  std::map<std::string, std::set<std::string>> seen_by, sent_by;
  for (const Check& check : record.checks)
    for (const Culprit& culprit : check.passed ? std::vector<Culprit>{} : check.culprits) {
      const std::string host = record.host_of(culprit.rank);
      seen_by[host];
      if (!culprit.sender) continue;
      const std::string sender = record.host_of(*culprit.sender);
      seen_by[host].insert(sender);
      sent_by[sender].insert(host);
    }
  std::set<std::string> all;
  const bool several = seen_by.size() > 1;
  for (const auto& [sender, receivers] : sent_by)
    if (receivers.size() > 1 && receivers.size() == seen_by.size()) all.insert(sender);
  if (!all.empty()) return all;
  for (const auto& [host, senders] : seen_by) {
    all.insert(host);
    if (!several && senders.size() == 1 && hosts.size() > 2)
      all.insert(*senders.begin());  // the link: both of its ends
  }
  return all;
}

bool is_culprit(const Record& record, int rank) {
  return std::ranges::any_of(record.checks, [rank](const Check& check) {
    return !check.passed && std::ranges::any_of(check.culprits, [rank](const Culprit& one) {
      return one.rank == rank || one.sender == rank;
    });
  });
}

void judge_wrong(const Record& record, const std::vector<std::string>& hosts, WorldChecks& world) {
  const std::set<std::string> culprits = blamed(record, hosts);
  const bool known = !culprits.empty() && 2 * culprits.size() <= std::max<std::size_t>(hosts.size(), 2);
  world.repeat = world.repeat || known;
  for (const std::string& host : hosts)
    if (known && culprits.contains(host)) {
      add_line(world.checks[host], Fitness::fail, wrong_text(record)), world.checks[host].broken.insert(record.key);
      // The host may have computed it, sent it or received it.
      for (const RankResult& rank : record.ranks)
        if (rank.host == host && !rank.pci.empty() && is_culprit(record, rank.rank))
          world.checks[host].blame("gpu", rank.pci);
      world.checks[host].blame("port");
    } else if (!known)
      add_line(world.checks[host], Fitness::fail, wrong_text(record) + "; no host of these stands out");
}

// The hosts whose fault it is that a record broke. Any host may be where a worker crashes or runs out of memory.
std::vector<std::string> at_fault(const Record& record, const std::vector<std::string>& hosts) {
  const Failure failure = record.failure.value_or(Failure());
  if (failure.kind != FailureKind::lost_host && failure.kind != FailureKind::timeout &&
      failure.kind != FailureKind::refused)
    return {};
  std::vector<std::string> named = failure.hosts;
  if (named.empty()) named.push_back(failure.host);
  std::erase_if(named, [&](const auto& name) { return std::ranges::find(hosts, name) == hosts.end(); });
  return named;
}

void judge_broken(const Record& record, const std::vector<std::string>& hosts, WorldChecks& world) {
  const std::vector<std::string> named = at_fault(record, hosts);
  const std::string line = fmt::format("broke: {}: {}", record.key, one_line(record.reason, 300));
  const bool known = !named.empty() && 2 * named.size() <= hosts.size();
  world.repeat = world.repeat || known;
  for (const std::string& host : known ? named : hosts)
    add_line(world.checks[host], known ? Fitness::fail : Fitness::unsure, line);
  if (known)
    for (const std::string& host : named) world.checks[host].blame("host");
}

// The first metric of which more is better, else the first.
void add_figure(const Record& record, WorldChecks& world) {
  const Metric* shown = nullptr;
  for (const Metric& metric : record.metrics)
    if (metric.value && (!shown || (metric.better == Better::higher && shown->better != Better::higher)))
      shown = &metric;
  if (shown) world.figures.push_back({"", record.key, shown->name, shown->unit, *shown->value});
}

// A figure of all hosts together is held against its floor: slow pairs or a straggler explain it, else all are to
// blame.
void judge_together(const Judgement& judged, const Floor& floor, const std::set<std::string>& stragglers,
                    const Leaves* leaves, WorldChecks& world) {
  const Record& record = *judged.entry.record;
  const bool fails = judged.outcome == Outcome::fail, passes = judged.outcome == Outcome::pass;
  std::map<std::string, std::set<std::string>> pairs;
  std::vector<SlowSwitch> switches;
  if (!passes) pairs = slow_hosts(record, floor, *judged.limit, leaves, switches);
  for (const SlowSwitch& one : switches) {
    add_worst(world.switches, one);
    world.slow.insert(one.hosts.begin(), one.hosts.end()), world.slow_keys.insert(record.key);
  }
  std::erase_if(pairs, [&](const auto& one) { return !world.checks.contains(one.first); });
  for (const auto& [host, others] : pairs) world.slow.insert(host), world.slow_keys.insert(record.key);
  for (auto& [host, check] : world.checks) {
    const auto pair = pairs.find(host);
    const bool explained = !pairs.empty() || !switches.empty();
    const bool spared = explained ? pair == pairs.end() : !stragglers.empty() && !stragglers.contains(host);
    if (passes ? !check.figure : !spared && (!check.figure || fails)) show(check, judged, floor);
    if (passes || spared) continue;
    std::string line = "of all hosts together: " + line_of(judged, floor);
    if (pair != pairs.end()) {
      check.blame("port");
      check.culprit = "host " + host;
      line += "; " + slow_with_text(record, pair->second);
    }
    add_line(check, fails ? Fitness::fail : Fitness::unsure, line);
    if (fails) check.missed.push_back(missed(judged, floor));
  }
  world.repeat = world.repeat || (fails && pairs.empty() && switches.empty() && !stragglers.empty());
}

}  // namespace

std::string host_of(const Record& record, const std::vector<std::string>& hosts) {
  const auto named = record.identity().hosts;
  for (const std::string& name : named)
    if (std::ranges::find(hosts, name) != hosts.end()) return name;
  return hosts.size() == 1 ? hosts.front() : named.empty() ? std::string() : named.front();
}

std::vector<std::string> why_drill(const std::vector<RunData>& runs) {
  std::set<std::string> notes;
  for (const RunData& run : runs)
    for (const Record& record : run.records)
      for (const std::string& text : record.flags)
        if (const std::string note = drill_of(text); !note.empty()) notes.insert("a drill, no acceptance: " + note);
  return {notes.begin(), notes.end()};
}

HostChecks judge_each_host(std::vector<RunData> runs, const std::vector<std::string>& hosts,
                           const StageFloors& floors) {
  HostChecks checks;
  for (const std::string& host : hosts) checks[host];
  for (RunData& run : runs) run = as_acceptance(std::move(run));
  const RunSet set(std::move(runs), Injected::include);
  judge_status(set, hosts, checks);
  judge_equal_losses(set, hosts, checks);
  std::set<std::string> sound;  // a repetition helps only these
  for (const auto& [host, check] : checks)
    if (check.state == Fitness::pass) sound.insert(host);
  std::map<std::string, double> nearest;
  // The ranks (GPUs) of one host are a fleet, too.
  const bool median = hosts.size() >= min_fleet || std::ranges::any_of(set.entries(), [](const Entry& entry) {
                        return entry.record->ranks.size() >= min_fleet;
                      });
  const bool of_fleet = floors.fleet && median;
  const int files = (compares_hosts(floors.user) ? 1 : 0) + (of_fleet ? 1 : 0);
  const auto apply = [&](const Floors& asked) {
    if (asked.floors.empty()) return;
    const CheckResult result =
        check(set, asked, floors.families, {.false_fails = files > 0 ? acceptance_false_fails / files : 0});
    for (const FloorResult& one : result.results) {
      const OfFloor judged(one, hosts);
      judged.add_to(checks, nearest);
      judged.require(checks);
    }
    judge_losses(result, hosts, checks);
    if (floors.unmeasured) floors.unmeasured->add(result);
    if (floors.power) {
      floors.power->comparisons += result.comparisons;
      floors.power->cases.insert(floors.power->cases.end(), result.power.begin(), result.power.end());
    }
  };
  if (floors.power) *floors.power = {};
  if (floors.user) apply(median ? *floors.user : part_of(*floors.user, false));
  if (of_fleet) apply(*floors.fleet);
  const std::string unjudged = judge_gpu_pairs(set, hosts, floors.pair_share, checks);
  if (floors.unjudged) *floors.unjudged = unjudged;
  tell_gpus(set, hosts, checks);
  for (auto& [host, check] : checks)
    if (!sound.contains(host)) check.repeat.clear();
  return checks;
}

WorldChecks judge_world(RunData run, const std::vector<std::string>& hosts, const StageFloors& floors) {
  WorldChecks world;
  for (const std::string& host : hosts) world.checks[host];
  std::vector<RunData> runs;
  runs.push_back(as_acceptance(std::move(run)));
  const RunSet set(std::move(runs), Injected::include);
  std::map<std::string, std::size_t> slow;  // cases in which the host had the slow rank
  std::map<std::string, const Record*> slow_in;
  JudgedRails rails;
  std::size_t measured = 0;
  std::string skipped;
  for (const Entry& entry : set.entries()) {
    const Record& record = *entry.record;
    if (record.status == Status::failed) judge_wrong(record, hosts, world);
    if (record.status == Status::error) judge_broken(record, hosts, world);
    if (record.status == Status::skipped) skipped = record.reason;
    if (record.status != Status::ok) continue;
    ++measured;
    add_figure(record, world);
    for (auto& [host, check] : world.checks) check.note(Fitness::pass, "");
    if (!record.groups.empty() && !has_rail_groups(record)) judge_groups(record, floors, world);
    if (record.matrix) rails.take(record, judge_links(record, floors, world)), judge_port_rates(record, floors, world);
    if (record.slow_rank) {
      const std::string host = record.host_of(record.slow_rank->rank);
      ++slow[host], slow_in[host] = &record;
      for (const std::string& text : record.flags)
        if (text.starts_with(flag::slow_rank) && world.checks.contains(host))
          add_line(world.checks[host], Fitness::pass, fmt::format("{}: {}", record.key, text));
    }
  }
  std::set<std::string> stragglers;
  for (const auto& [host, cases] : slow)
    if (cases >= 2 && 2 * cases > measured && world.checks.contains(host)) {
      stragglers.insert(host);
      world.checks[host].note(Fitness::fail, fmt::format("slower than the others in {} of {} cases", cases, measured));
      const Record& record = *slow_in.at(host);
      for (const RankResult& rank : record.ranks)
        if (rank.rank == record.slow_rank->rank) world.checks[host].blame(rank.pci.empty() ? "host" : "gpu", rank.pci);
    }
  if (measured == 0)
    for (auto& [host, check] : world.checks)
      if (check.state == Fitness::unknown)
        check.note(Fitness::unsure, skipped.empty() ? "no record" : "skipped: " + one_line(skipped));
  judge_rails(set, rails, floors, world);
  world.links = widest_matrices(set);
  const Floors asked = floors.user ? part_of(*floors.user, false) : Floors();
  if (!asked.floors.empty()) {
    const CheckResult result = check(set, asked, floors.families);
    if (floors.unmeasured) floors.unmeasured->add(result);
    for (const FloorResult& one : result.results)
      for (const Judgement& judged : one.records)
        if (judged.value && judged.limit) judge_together(judged, *one.floor, stragglers, floors.leaves, world);
  }
  judge_ports(set, world);
  return world;
}

}  // namespace assay::fitness
