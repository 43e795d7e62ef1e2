#include "reports/cost/lines.h"

#include "harness/core/text.h"
#include "harness/runs/why_left_out.h"
#include "harness/statistics/statistics.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::report {

namespace {

constexpr std::size_t min_sample = 3;  // machines or runs for an interval between them

// One result of one record.
struct Member {
  Entry entry;
  std::string host;
  Result result;
  std::vector<Power> power;
};

// Members that may become one line.
struct Group {
  std::string machine;
  std::vector<HourlyPrice> offers;
  std::set<std::string> warnings;
  std::vector<Member> members;
};

std::string kind_of(const RunMachine& machine) {
  if (!machine.instance_type.empty()) return machine.instance_type;
  return machine.name.empty() ? "unknown machine" : machine.name;
}

// Equal for equal prices.
std::string signature(const std::vector<HourlyPrice>& offers) {
  std::string text;
  for (const HourlyPrice& p : offers)
    text += fmt::format("{}|{}|{}|{}|{}\n", name_of(p.basis), p.usd.value_or(0), p.region, p.date, p.source);
  return text;
}

std::vector<Power> mean_power(const std::vector<const Member*>& members) {
  std::map<std::string, std::vector<double>> watts;
  for (const Member* member : members)
    for (const Power& power : member->power) watts[power.sensor].push_back(power.watts);
  std::vector<Power> all;
  for (const auto& [sensor, values] : watts)
    if (values.size() == members.size()) all.push_back({sensor, mean(values)});
  return all;
}

CostLine line_of(const Group& group, const std::vector<const Member*>& members) {
  const Member& first = *members.front();
  CostLine line;
  line.record = first.entry.record;
  line.per = first.result.per;
  line.machine = group.machine;
  line.machines = std::max(1, line.record->world_nodes);
  line.offers = group.offers;
  line.warnings.assign(group.warnings.begin(), group.warnings.end());
  line.power = mean_power(members);
  line.anchor = first.entry.anchor();
  line.place = first.entry.place() + and_more(members.size(), 1);
  return line;
}

// At 95 %; no time is negative.
Interval interval_of_times(const std::vector<double>& seconds) {
  const Interval all = student_interval(seconds);
  return {std::max(0.0, all.low), all.high};
}

void add_lines(const Group& group, std::vector<CostLine>& lines) {
  std::map<std::string, std::vector<const Member*>> hosts;
  std::vector<const Member*> all;
  for (const Member& member : group.members) {
    all.push_back(&member);
    hosts[member.host].push_back(&member);
  }
  if (hosts.size() - hosts.count("") >= min_sample) {
    all.erase(std::remove_if(all.begin(), all.end(), [](const Member* m) { return m->host.empty(); }), all.end());
    hosts.erase("");
    std::vector<double> means;
    for (const auto& [host, members] : hosts) {
      std::vector<double> seconds;
      for (const Member* member : members) seconds.push_back(member->result.seconds);
      means.push_back(mean(seconds));
    }
    CostLine line = line_of(group, all);
    line.seconds = mean(means);
    line.ci95 = interval_of_times(means);
    line.interval = "between machines";
    line.stands_for = fmt::format("{} machines, {} runs", hosts.size(), all.size());
    lines.push_back(std::move(line));
    return;
  }
  for (const auto& [host, members] : hosts) {
    if (members.size() >= min_sample) {
      std::vector<double> seconds;
      for (const Member* member : members) seconds.push_back(member->result.seconds);
      CostLine line = line_of(group, members);
      line.seconds = mean(seconds);
      line.ci95 = interval_of_times(seconds);
      line.interval = "between runs";
      line.stands_for = fmt::format("{}, {} runs", host.empty() ? "unnamed machines" : "one machine", members.size());
      lines.push_back(std::move(line));
      continue;
    }
    for (const Member* member : members) {
      CostLine line = line_of(group, {member});
      line.seconds = member->result.seconds;
      line.ci95 = member->result.ci95;
      if (line.ci95) line.interval = "within-run";
      line.stands_for = "one run";
      lines.push_back(std::move(line));
    }
  }
}

std::size_t order_of(const std::string& per) {
  if (per == "run to quality") return 0;
  if (per.starts_with("million ")) return 1;
  return per == "epoch" ? 2 : 3;
}

}  // namespace

Estimate CostLine::usd(const HourlyPrice& price) const {
  const double usd_per_second = *price.usd * machines / seconds_per_hour;
  return {usd_per_second * seconds, scaled(ci95, usd_per_second)};
}

CostLines cost_lines(const RunSet& runs, const PriceSource& source) {
  CostLines out;
  std::map<std::string, std::size_t> places;
  std::vector<Group> groups;
  std::map<std::string, LeftOut> left_out;
  std::map<std::string, UnpricedMachine> unpriced;
  for (std::size_t i = 0; i < runs.runs().size(); ++i) {
    const MachinePrices prices = prices_of(runs.runs()[i], source);
    const std::string machine = kind_of(prices.machine);
    const std::string priced = signature(prices.offers);
    const std::string host = joined(prices.machine.hosts, ",");
    bool results = false;
    for (const Entry& entry : runs.entries_of(i)) {
      const Record& record = *entry.record;
      if (const auto why = why_left_out(record)) {
        LeftOut& left = left_out[why->text()];
        if (left.count++ == 0) left = {why->text(), 1, entry.place()};
        continue;
      }
      const std::vector<Result> all = results_of(entry);
      if (all.empty()) {
        ++out.other_records;
        continue;
      }
      results = true;
      const std::vector<Power> power = power_of(record);
      const std::string common =
          record.identity().on_any_host().text() + '\n' + protocol_of(record) + '\n' + machine + '\n' + priced;
      const std::string idle = warning_of_use(record, prices.machine);
      for (const Result& result : all) {
        const auto [place, fresh] = places.try_emplace(result.per + '\n' + common, groups.size());
        if (fresh) groups.push_back({machine, prices.offers, {}, {}});
        Group& group = groups[place->second];
        if (!idle.empty()) group.warnings.insert(idle);
        // Prices are equal, but their warnings may differ with the run's start and GPUs.
        for (std::size_t p = 0; p < prices.offers.size(); ++p)
          for (const std::string& warning : prices.offers[p].warnings) {
            std::vector<std::string>& warnings = group.offers[p].warnings;
            if (std::ranges::find(warnings, warning) == warnings.end()) warnings.push_back(warning);
          }
        group.members.push_back({entry, host, result, power});
      }
    }
    if (results && prices.offers.empty()) {
      UnpricedMachine& without = unpriced[prices.machine.instance_type + '\n' + prices.machine.name];
      without.machine = prices.machine;
      ++without.runs;
    }
  }
  for (const Group& group : groups) add_lines(group, out.lines);
  std::map<Identity, std::size_t> cases;  // so that the machines of a case stand below each other
  for (const CostLine& line : out.lines) cases.try_emplace(line.record->identity().on_any_host(), cases.size());
  std::ranges::stable_sort(out.lines, {}, [&](const CostLine& line) {
    return std::pair(order_of(line.per), cases.at(line.record->identity().on_any_host()));
  });
  for (auto& [reason, left] : left_out) out.left_out.push_back(std::move(left));
  for (auto& [name, without] : unpriced) out.unpriced.push_back(std::move(without));
  return out;
}

}  // namespace assay::report
