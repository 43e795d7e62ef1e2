// Gathers the figures that count, sees that they compare, names machines that stand apart, and predicts a new run.
#include "harness/fitness/floors/learn.h"

#include "harness/core/plain_text.h"
#include "harness/core/text.h"
#include "harness/fitness/floors/metric_units.h"
#include "harness/fitness/floors/words.h"
#include "harness/json/json.h"
#include "harness/record/comparable.h"
#include "harness/record/disturbed.h"
#include "harness/runs/figures.h"
#include "harness/runs/machine.h"
#include "harness/runs/why_left_out.h"
#include "harness/statistics/outliers.h"
#include "harness/statistics/prediction.h"
#include "harness/statistics/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace assay::fitness {

namespace {

constexpr std::size_t min_units = 3;  // machines, or runs of one machine: less shows no spread
constexpr double max_loss = 0.40;     // a floor that cannot find this loss is none
constexpr double wanted_loss = 0.20;  // that a message about too few machines aims at
constexpr double miss_rate = 0.10;    // of losses of the size that is said to be found
constexpr std::size_t max_units = 1000;
constexpr double apart_error = 0.01;  // that any machine of a healthy set is said to stand apart
constexpr double min_sigma = 1e-3;    // runs that agree better have figures of too few digits

constexpr std::string_view busy = "disturbed";

// Logarithms of speed: that of a record's figure, and those of the ends of its interval.
struct Speed {
  double worse = 0, value = 0, better = 0;
};

struct Sample {
  std::string machine;
  Speed speed;
  const Entry* entry = nullptr;
};

struct CaseId {
  std::string key, device;
  int ranks = 1;
  std::string metric, unit;
  Better better = Better::higher;
  auto operator<=>(const CaseId&) const = default;
};

using Cases = std::map<CaseId, std::vector<Sample>>;  // samples in the runs' order: oldest first

double speed_of(double value, Better better) { return better == Better::higher ? std::log(value) : -std::log(value); }
double figure_of(double speed, Better better) { return std::exp(better == Better::higher ? speed : -speed); }

// The name of the one machine that a record is of; empty, and a reason, if there is no such machine.
std::pair<std::string, std::string> machine_of_record(const Entry& entry, const RunMachine& of_run) {
  if (entry.record->world_nodes > 1) return {"", "measured on several hosts: floors are learned for one machine"};
  auto hosts = entry.record->identity().hosts;
  if (hosts.empty()) hosts = of_run.hosts;
  if (hosts.empty()) return {"", "names no host, so its machine is unknown"};
  if (hosts.size() > 1) return {"", "measured on several hosts: floors are learned for one machine"};
  return {hosts.front(), ""};
}

std::string hardware_of(const Entry& entry, const RunMachine& machine) {
  std::vector<std::string> parts;
  if (!machine.cpu.empty()) parts.push_back(machine.cpu);
  if (machine.cores) parts.push_back(plural(*machine.cores, "core"));
  if (machine.gpus > 0) parts.push_back(fmt::format("{} x {}", machine.gpus, machine.gpu));
  if (parts.empty() && !entry.record->ranks.empty()) parts.push_back(entry.record->ranks.front().device);
  return joined(parts);
}

// Why a record's figure does not count; empty if it does.
std::string why_not(const Entry& entry, const Metric* metric, const LearnOptions& options) {
  const Record& record = *entry.record;
  if (const auto why = why_left_out(record)) return why->what;
  if (std::ranges::any_of(record.checks, [](const Check& check) { return !check.passed; })) return "failed";
  if (!options.disturbed && disturbed(record))
    return fmt::format("{}: others used its CPUs, or its GPU was slowed down", busy);
  if (!metric || !std::isfinite(*metric->value) || *metric->value <= 0 || metric->unit.empty())
    return "has no figure above 0 with a unit";
  const auto units = units_of(metric->name, record.family);
  if (!units.empty() && std::ranges::find(units, metric->unit) == units.end())
    return fmt::format("its {} is in {}, which floors do not know", one_line(metric->name, 40),
                       one_line(metric->unit, 40));
  return {};
}

Speed speed_of(const Metric& metric) {
  const double value = speed_of(*metric.value, metric.better);
  if (!metric.ci95 || !(metric.ci95->low > 0) || !std::isfinite(metric.ci95->high)) return {value, value, value};
  const double one = speed_of(metric.ci95->low, metric.better), other = speed_of(metric.ci95->high, metric.better);
  return {std::min({one, other, value}), value, std::max({one, other, value})};
}

struct Gathered {
  Cases cases;
  std::map<std::string, std::set<std::string>> hardware;  // and its machines
  std::set<std::string> names;                            // of the devices that were measured
  std::vector<std::string> notes;
  std::set<std::string> days;
  bool busy = false;  // disturbed records were left out
};

Gathered gather(const RunSet& runs, const LearnOptions& options) {
  std::vector<RunMachine> machines;
  for (const RunData& run : runs.runs()) machines.push_back(machine_of(run));
  Gathered found;
  std::map<std::string, std::vector<std::string>> left_out;  // why, and places
  for (const Entry& entry : runs.entries()) {
    const RunMachine& of_run = machines[entry.run_index];
    const Metric* metric = headline_metric(*entry.record);
    std::string why = why_not(entry, metric, options);
    std::string machine;
    if (why.empty()) std::tie(machine, why) = machine_of_record(entry, of_run);
    if (!why.empty()) {
      left_out[why].push_back(entry.place());
      found.busy = found.busy || why.starts_with(busy);
      continue;
    }
    found.hardware[hardware_of(entry, of_run)].insert(machine);
    const std::vector<std::string> names = hardware_names(*entry.run, *entry.record);
    if (const auto known = std::ranges::find_if(names, [](const auto& name) { return !name.empty(); });
        known != names.end())
      found.names.insert(*known);
    if (const std::string started = text_member(entry.run->run, "/started"); started.size() >= 10)
      found.days.insert(started.substr(0, 10));
    const Record& record = *entry.record;
    found.cases[{record.key, record.device, record.world_ranks, metric->name, metric->unit, metric->better}].push_back(
        {machine, speed_of(*metric), &entry});
  }
  for (const RunData& run : runs.runs())
    for (std::string& problem : first_ten(run.problems, run.dir.filename().string(), "/"))
      found.notes.push_back(std::move(problem));
  for (const std::string& copy : runs.duplicates()) found.notes.push_back(copy);
  for (const auto& [why, places] : left_out)
    found.notes.push_back(
        fmt::format("{} {} ({})", plural(places.size(), "record"), why, one_line(first_few(places), 400)));
  return found;
}

void refuse_mixed_hardware(const Gathered& found) {
  if (found.hardware.size() < 2) return;
  std::vector<std::string> kinds;
  for (const auto& [hardware, machines] : found.hardware)
    kinds.push_back(fmt::format("{} ({})", hardware.empty() ? "unknown" : one_line(hardware),
                                one_line(first_few({machines.begin(), machines.end()}))));
  throw UsageError(fmt::format("floors learn: machines of different hardware: {}", fmt::join(kinds, "; ")));
}

// "protocol max_seconds is 3 (a/records.jsonl line 1) and 1 (b/records.jsonl line 1)"; empty if all compare. Choices
// may differ, as a new machine may choose differently too.
std::string difference_in(const std::vector<Sample>& samples) {
  const Record& first = *samples.front().entry->record;
  for (const Sample& sample : samples) {
    const Record& other = *sample.entry->record;
    std::vector<std::string_view> choices;
    for (const Record* record : {&first, &other})
      for (const auto& [name, value] : record->choices) choices.push_back(name);
    const Scope scope{.sides = true, .free_choices = choices};
    const auto found = differences(first, other, scope);
    if (found.empty()) continue;
    const Difference& one = found.front();
    const auto shown = [](const std::optional<std::string>& value) { return value ? one_line(*value, 80) : "absent"; };
    return fmt::format("{}{} is {} ({}) and {} ({})", one.protocol ? "protocol " : "", one_line(one.name, 80),
                       shown(one.own), one_line(samples.front().entry->place()), shown(one.other),
                       one_line(sample.entry->place()));
  }
  return {};
}

void refuse_different(const Cases& cases) {
  std::string first;
  std::size_t more = 0;
  for (const auto& [id, samples] : cases) {
    const std::string difference = difference_in(samples);
    if (difference.empty()) continue;
    if (first.empty())
      first = fmt::format("floors learn: these runs do not compare: {}: {}", one_line(id.key, 400), difference);
    else
      ++more;
  }
  if (!first.empty())
    throw UsageError(first + (more == 0 ? "" : fmt::format(", and so for {} more", plural(more, "case"))));
}

std::set<std::string> machines_in(const Cases& cases) {
  std::set<std::string> all;
  for (const auto& [id, samples] : cases)
    for (const Sample& sample : samples) all.insert(sample.machine);
  return all;
}

// A part of the samples' speeds, by machine.
std::map<std::string, std::vector<double>> by_machine(const std::vector<Sample>& samples, double Speed::*part) {
  std::map<std::string, std::vector<double>> groups;
  for (const Sample& sample : samples) groups[sample.machine].push_back(sample.speed.*part);
  return groups;
}

Prediction predict(const std::vector<Sample>& samples, double Speed::*part, bool same_machine) {
  std::vector<std::vector<double>> groups;
  for (auto& [machine, values] : by_machine(samples, part)) groups.push_back(std::move(values));
  Prediction found = same_machine ? predict_same_group(groups.front()) : predict_new_group(groups);
  found.sigma = std::max(found.sigma, min_sigma);
  return found;
}

std::size_t count_units(const std::vector<Sample>& samples, bool same_machine) {
  return same_machine ? samples.size() : by_machine(samples, &Speed::value).size();
}

// Which of these logarithms of speed, each of a machine or a run, stand apart: at most a fifth, of four or more.
std::vector<std::size_t> indices_apart(const std::vector<double>& speeds, double error) {
  constexpr std::size_t min_compared = 4, max_apart = 5;  // one in so many
  if (speeds.size() < min_compared) return {};
  const double middle = median(speeds);
  auto apart = extreme_deviates(speeds, std::max<std::size_t>(1, speeds.size() / max_apart), error);
  std::erase_if(apart, [&](std::size_t i) { return std::abs(speeds[i] - middle) < std::log1p(outlier_share); });
  return apart;
}

// Machines whose mean is apart from the others' in any case, with the case where it is furthest.
std::vector<MachineApart> find_apart(const Cases& cases, double error) {
  std::map<std::string, MachineApart> worst;
  for (const auto& [id, samples] : cases) {
    std::vector<std::string> names;
    std::vector<double> means;
    for (const auto& [machine, values] : by_machine(samples, &Speed::value)) {
      names.push_back(machine);
      means.push_back(mean(values));
    }
    for (const std::size_t i : indices_apart(means, error)) {
      const double off = means[i] - median(means);
      MachineApart& known = worst[names[i]];
      if (known.machine.empty() || std::abs(off) > std::abs(std::log1p(known.difference)))
        known = {names[i], id.key, std::expm1(off)};
    }
  }
  std::vector<MachineApart> all;
  for (auto& [machine, apart] : worst) all.push_back(std::move(apart));
  std::ranges::stable_sort(all, {}, &MachineApart::difference);
  return all;
}

void leave_out(Cases& cases, const std::vector<MachineApart>& apart) {
  std::set<std::string> names;
  for (const MachineApart& each : apart) names.insert(each.machine);
  for (auto& [id, samples] : cases)
    std::erase_if(samples, [&](const Sample& sample) { return names.contains(sample.machine); });
  std::erase_if(cases, [](const auto& one) { return one.second.empty(); });
}

// Runs of one machine that stand apart from its others in a case: left out of it if asked, else said: "2 of 10 runs
// stand apart, by up to 49 % (a/records.jsonl line 1, ...)".
using RunsApart = std::map<CaseId, std::string>;

RunsApart find_runs_apart(Cases& cases, Outliers outliers, double error, std::vector<std::string>& notes) {
  RunsApart seen;
  if (outliers == Outliers::keep) return seen;
  for (auto& [id, samples] : cases) {
    std::vector<double> speeds;
    for (const Sample& sample : samples) speeds.push_back(sample.speed.value);
    std::set<const Entry*> entries;
    std::vector<std::string> places;
    double furthest = 0;
    for (const std::size_t i : indices_apart(speeds, error)) {
      entries.insert(samples[i].entry);
      places.push_back(samples[i].entry->place());
      furthest = std::max(furthest, std::abs(std::expm1(speeds[i] - median(speeds))));
    }
    if (entries.empty()) continue;
    const bool one = entries.size() == 1;
    const auto text =
        fmt::format("{} of {} runs {} apart, by {}{} ({})", entries.size(), samples.size(), one ? "stands" : "stand",
                    one ? "" : "up to ", rough_percent(furthest), one_line(first_few(places), 400));
    if (outliers == Outliers::refuse) {
      seen[id] = text;
      continue;
    }
    std::erase_if(samples, [&](const Sample& sample) { return entries.contains(sample.entry); });
    notes.push_back(fmt::format("{}: {}, left out: the false-fail rate is that of runs without such a disturbance",
                                one_line(id.key, 400), text));
  }
  return seen;
}

// Four digits, to the side on which fewer runs miss the limit.
double rounded(double limit, Better better) {
  const double unit = std::pow(10, std::floor(std::log10(limit)) - 3);
  const double steps = limit / unit;
  const double whole = better == Better::higher ? std::floor(steps) : std::ceil(steps);
  // 7.012e14 as it is written, not as a sum of rounding errors.
  return std::stod(fmt::format("{:.3e}", whole * unit));
}

// The loss of speed that all but one in ten runs of a new machine show, given where the limit is.
double loss_found(const Prediction& worse, const Prediction& better, double error, std::size_t units) {
  return -std::expm1(worse.mean - worse.margin(error, units) - better.mean - better.margin(miss_rate, units));
}

std::string why_no_floor(const Prediction& worse, const Prediction& better, double error, bool same_machine) {
  const char* word = same_machine ? "run" : "machine";
  const std::string wanted = fmt::format("for a floor that finds a loss of {}", rough_percent(wanted_loss));
  const std::string rate = rough_percent(error);
  for (std::size_t units = worse.units + 1; units <= max_units; ++units)
    if (loss_found(worse, better, error, units) <= wanted_loss)
      return fmt::format("too few {}s: {}; at {} false fails at least {} are needed {}", word, worse.units, rate, units,
                         wanted);
  const double width = better.mean - worse.mean;  // of intervals: both ends cost
  return fmt::format("the {}s differ too much, by {}{}, {} at {} false fails", word, rough_percent(worse.sigma),
                     width < min_sigma ? "" : fmt::format(" with intervals {} wide", rough_percent(width)), wanted,
                     rate);
}

LearnedFloor learn_case(const CaseId& id, const std::vector<Sample>& samples, const LearnedFloors& learned) {
  const bool same_machine = learned.options.same_machine;
  LearnedFloor found;
  found.like = samples.back().entry;
  found.metric = id.metric;
  found.unit = id.unit;
  found.better = id.better;
  found.runs = samples.size();
  std::vector<double> medians;
  for (const auto& [machine, values] : by_machine(samples, &Speed::value)) medians.push_back(median(values));
  found.machines = medians.size();
  found.median = figure_of(median(medians), id.better);
  const std::size_t units = count_units(samples, same_machine);
  if (units < min_units) {
    found.reason = fmt::format("too few {}: {}; at least {} are needed to see how they differ",
                               same_machine ? "runs" : "machines", units, min_units);
    return found;
  }
  const Prediction shown = predict(samples, &Speed::value, same_machine);
  const Prediction worse = predict(samples, &Speed::worse, same_machine);
  const Prediction better = predict(samples, &Speed::better, same_machine);
  found.between = shown.between;
  found.within = shown.within;
  const double limit = rounded(figure_of(worse.mean - worse.margin(learned.floor_rate), id.better), id.better);
  const double loss = -std::expm1(speed_of(limit, id.better) - better.mean - better.margin(miss_rate));
  const double of_median = std::exp(speed_of(limit, id.better) - speed_of(found.median, id.better));
  if (loss > max_loss || of_median <= 1 - max_loss) {
    found.reason = why_no_floor(worse, better, learned.floor_rate, same_machine);
    return found;
  }
  found.limit = limit;
  found.loss = loss;
  return found;
}

// Runs that the floors learned from them would not pass: said, as a user checks the floors on them first.
void note_misses(const Cases& cases, LearnedFloors& learned) {
  std::vector<std::string> places;
  std::size_t i = 0;
  for (const auto& [id, samples] : cases) {
    const LearnedFloor& floor = learned.cases[i++];
    if (!floor.limit) continue;
    for (const Sample& sample : samples) {
      const double limit = speed_of(*floor.limit, id.better);
      if (sample.speed.worse < limit) places.push_back(one_line(sample.entry->place()));
    }
  }
  if (!places.empty())
    learned.notes.push_back(fmt::format("{} below the floor learned from it and others: {}",
                                        plural(places.size(), "record"), first_few(places)));
}

void see_machines(const Cases& cases, LearnedFloors& learned) {
  const auto names = machines_in(cases);
  learned.machines.assign(names.begin(), names.end());
  std::set<std::size_t> runs;
  for (const auto& [id, samples] : cases)
    for (const Sample& sample : samples) runs.insert(sample.entry->run_index);
  learned.runs = runs.size();
}

}  // namespace

std::size_t LearnedFloors::floors() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(cases, [](const LearnedFloor& each) { return each.limit.has_value(); }));
}

ExitCode LearnedFloors::code() const {
  if (floors() > 0) return ExitCode::ok;
  return !apart.empty() && options.outliers == Outliers::refuse ? ExitCode::failed : ExitCode::no_data;
}

LearnedFloors learn(const RunSet& runs, const LearnOptions& options) {
  ASSAY_CHECK(options.false_fail > 0 && options.false_fail <= 0.5, "a rate of {}", options.false_fail);
  Gathered found = gather(runs, options);
  refuse_mixed_hardware(found);
  refuse_different(found.cases);
  LearnedFloors learned;
  learned.options = options;
  learned.notes = std::move(found.notes);
  learned.names = std::move(found.names);
  if (!found.hardware.empty()) learned.hardware = found.hardware.begin()->first;
  if (!found.days.empty())
    learned.measured = *found.days.begin() == *found.days.rbegin()
                           ? *found.days.begin()
                           : fmt::format("{} to {}", *found.days.begin(), *found.days.rbegin());
  Cases& cases = found.cases;
  see_machines(cases, learned);
  if (cases.empty()) {
    learned.nothing = "no record whose figure counts";
    if (found.busy) learned.nothing += "; --disturbed takes those that were disturbed";
    return learned;
  }
  if (options.same_machine && learned.machines.size() > 1)
    throw UsageError(fmt::format("floors learn: --same-machine: these runs are of {} machines: {}",
                                 learned.machines.size(), one_line(first_few(learned.machines))));
  if (!options.same_machine && learned.machines.size() == 1) {
    learned.nothing = fmt::format(
        "all runs are of one machine, {}, so how machines differ is unknown; --same-machine learns floors for it alone",
        one_line(learned.machines.front(), 80));
    return learned;
  }
  if (!options.same_machine && options.outliers != Outliers::keep) {
    learned.apart = find_apart(cases, apart_error / static_cast<double>(cases.size()));
    if (!learned.apart.empty() && options.outliers == Outliers::refuse) {
      learned.nothing = fmt::format(
          "{} apart from the others; look at them, then choose --outliers leave-out, or keep if they are healthy",
          learned.apart.size() == 1 ? "a machine stands" : fmt::format("{} machines stand", learned.apart.size()));
      return learned;
    }
    leave_out(cases, learned.apart);
    see_machines(cases, learned);
  }
  RunsApart runs_apart;
  if (options.same_machine)
    runs_apart =
        find_runs_apart(cases, options.outliers, apart_error / static_cast<double>(cases.size()), learned.notes);
  learned.tried = static_cast<std::size_t>(std::ranges::count_if(
      cases, [&](const auto& one) { return count_units(one.second, options.same_machine) >= min_units; }));
  // Bonferroni: holds however the cases of a machine depend on each other, and whichever of them give no floor.
  learned.floor_rate = options.false_fail / static_cast<double>(std::max<std::size_t>(1, learned.tried));
  for (const auto& [id, samples] : cases) {
    LearnedFloor& found_floor = learned.cases.emplace_back(learn_case(id, samples, learned));
    const auto apart = runs_apart.find(id);
    if (!found_floor.limit && apart != runs_apart.end())
      found_floor.reason += fmt::format("; {}: --outliers leave-out learns without", apart->second);
  }
  note_misses(cases, learned);
  if (learned.floors() == 0) learned.nothing = "no case gave a floor";
  return learned;
}

}  // namespace assay::fitness
