#include "reports/sweep/sweeps.h"

#include "harness/core/text.h"
#include "harness/record/flags.h"
#include "harness/runs/groups.h"
#include "harness/statistics/knee.h"
#include "reports/model/cells.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::report {

namespace {

constexpr std::size_t max_pictures = 6;

// The record without a parameter: equal for all points of a sweep.
Record without(const Record& record, const std::string& parameter) {
  Record other;
  other.family = record.family;
  other.device = record.device;
  other.world_ranks = record.world_ranks;
  Json params = record.params.get();
  if (params.is_object()) params.erase(parameter);
  other.params = std::move(params);
  return other;
}

const Metric* valid_throughput(const Record& record) {
  const Metric* metric = find_metric(record, "throughput");
  return record.status == Status::ok && metric && *metric->value > 0 ? metric : nullptr;
}

void find_knee(Sweep& sweep) {
  const auto rate = [&](std::size_t i) { return *sweep.points[i].throughput->value; };
  for (std::size_t i = 0; i < sweep.points.size(); ++i)
    if (sweep.points[i].throughput && (!sweep.best || rate(i) > rate(*sweep.best))) sweep.best = i;
  for (std::size_t i = 0; i < sweep.points.size(); ++i)
    if (const Status status = sweep.points[i].entry->record->status; status == Status::ok || status == Status::failed)
      sweep.largest = i;
  std::vector<std::optional<double>> rates;
  for (const SweepPoint& point : sweep.points)
    rates.push_back(point.throughput ? point.throughput->value : std::nullopt);
  sweep.knee = knee_of(rates);
}

std::string number(double value) { return fmt::format("{:.0f}", value); }

std::string rate_text(const SweepPoint& point) { return figure_text(*point.throughput, *point.throughput->value); }

std::string summary(const Sweep& sweep) {
  std::string text = fmt::format("{} over {}: ", sweep.title, sweep.parameter);
  if (!sweep.best) {
    text += "no value has a valid throughput";
  } else {
    const SweepPoint &knee = sweep.points[*sweep.knee], &best = sweep.points[*sweep.best];
    text += fmt::format("the knee is {} ({}", number(knee.value), rate_text(knee));
    if (sweep.knee == sweep.best)
      text += ", the most)";
    else
      text += fmt::format(", {:.1f} % of the {} of {})", 100 * *knee.throughput->value / *best.throughput->value,
                          rate_text(best), number(best.value));
  }
  if (sweep.largest)
    text += fmt::format("; the largest that {} is {}", sweep.beyond() ? "fits" : "was tried",
                        number(sweep.points[*sweep.largest].value));
  if (const SweepPoint* beyond = sweep.beyond())
    text += fmt::format("; {} {}", number(beyond->value), first_line(beyond->entry->record->reason));
  return text;
}

std::string remark(const Sweep& sweep, std::size_t i) {
  std::vector<std::string> words;
  if (sweep.knee == i) words.emplace_back("knee");
  if (sweep.best == i) words.emplace_back("best");
  if (sweep.largest == i && sweep.beyond()) words.emplace_back("largest that fits");
  return joined(words);
}

Table table_of(const Sweep& sweep, std::size_t index) {
  Table table{fmt::format("sweep-{}", index + 1),
              fmt::format("{} over {}", sweep.title, sweep.parameter),
              {right("value", sweep.parameter),
               right("throughput"),
               right("share", "of the best"),
               right("planned_memory", "memory planned"),
               {"verdict"},
               {"remark", ""}}};
  const auto add = [&](const SweepPoint& point, const std::string& text) {
    const Record& record = *point.entry->record;
    Cell value = text_cell(number(point.value));
    value.data = point.value, value.sort = point.value, value.link = point.entry->anchor();
    table.rows.push_back({value, figure_cell(point.throughput),
                          point.throughput && sweep.best
                              ? share_cell(*point.throughput->value / *sweep.points[*sweep.best].throughput->value)
                              : no_cell(),
                          figure_cell(find_metric(record, "planned_memory")), verdict_cell(record, point.throughput),
                          text_cell(text)});
  };
  for (std::size_t i = 0; i < sweep.points.size(); ++i) add(sweep.points[i], remark(sweep, i));
  for (const SweepPoint& point : sweep.unfit) add(point, "");
  return table;
}

Figure picture_of(const Sweep& sweep, std::size_t index) {
  const Metric& best = *sweep.points[*sweep.best].throughput;
  Figure figure{fmt::format("sweep-picture-{}", index + 1),
                fmt::format("Throughput of {} over {}", sweep.title, sweep.parameter),
                summary(sweep) + ".",
                {sweep.parameter, "", true, {}},
                {"throughput", best.unit, false, {}},
                {}};
  Curve curve{"measured", Mark::line_and_points, {}};
  for (const SweepPoint& point : sweep.points)
    if (point.throughput)
      curve.points.push_back({point.value, *point.throughput->value, point.throughput->ci95,
                              fmt::format("{}: {}", number(point.value), rate_text(point))});
  const double near = (1 - knee_share) * *best.value;
  Curve limit{fmt::format("{:.0f} % of the best", 100 * (1 - knee_share)),
              Mark::line,
              {{curve.points.front().x, near}, {curve.points.back().x, near}},
              true};
  figure.curves = {std::move(curve), std::move(limit)};
  return figure;
}

Json point_json(const SweepPoint& point) {
  const Record& record = *point.entry->record;
  const Metric* planned = find_metric(record, "planned_memory");
  Json json = {{"value", point.value},
               {"key", record.key},
               {"status", name_of(record.status)},
               {"planned_bytes", planned ? Json(*planned->value) : Json()},
               {"throughput", Json()}};
  if (point.throughput)
    json["throughput"] = {{"value", *point.throughput->value},
                          {"unit", point.throughput->unit},
                          {"ci95", interval_json(point.throughput->ci95)}};
  if (!record.reason.empty()) json["reason"] = record.reason;
  return json;
}

}  // namespace

std::vector<Sweep> find_sweeps(const RunSet& runs) {
  std::vector<Sweep> sweeps;
  const std::vector<MachineRuns> machines = by_machine(runs);
  for (const MachineRuns& group : machines) {
    std::map<std::string, std::size_t> places;
    for (const CaseRuns& one : group.cases) {
      const Record& record = *one.newest().record;
      const auto label = record.labels.find("sweep");
      const bool listed = label == record.labels.end();
      if (listed && !is_training(record)) continue;
      const std::string parameter = listed ? "micro_batch" : label->second;
      const auto value = param_number(record, parameter);
      if (!value) continue;
      const Record rest = without(record, parameter);
      const std::string key = fmt::format("{}\n{}\n{}\n{}\n{}", rest.family, rest.params.get().dump(), rest.device,
                                          rest.world_ranks, parameter);
      const auto [place, fresh] = places.try_emplace(key, sweeps.size());
      if (fresh) {
        Sweep& sweep = sweeps.emplace_back();
        sweep.parameter = parameter;
        sweep.title = case_title(rest);
        if (rest.world_ranks > 1) sweep.title += fmt::format(", {} ranks", rest.world_ranks);
        if (machines.size() > 1) sweep.title += ", " + group.name;
      }
      Sweep& sweep = sweeps[place->second];
      sweep.planned = sweep.planned || !listed;
      const bool unfit = flag::has(record.flags, flag::does_not_fit);
      (unfit ? sweep.unfit : sweep.points).push_back({*value, &one.newest(), valid_throughput(record)});
    }
  }
  std::erase_if(sweeps, [](const Sweep& one) { return !one.planned && one.points.size() < min_listed; });
  for (Sweep& sweep : sweeps) {
    for (auto* points : {&sweep.points, &sweep.unfit})
      std::ranges::stable_sort(*points, [](const auto& a, const auto& b) { return a.value < b.value; });
    find_knee(sweep);
  }
  return sweeps;
}

std::vector<Section> sweep_sections(const std::vector<Sweep>& sweeps) {
  if (sweeps.empty()) return {};
  Section section{"sweeps", "Sweeps", {}};
  for (const Sweep& sweep : sweeps) section.blocks.emplace_back(Text{summary(sweep)});
  for (std::size_t i = 0; i < sweeps.size(); ++i) section.blocks.emplace_back(table_of(sweeps[i], i));
  for (std::size_t i = 0; i < std::min(sweeps.size(), max_pictures); ++i)
    if (sweeps[i].best) section.blocks.emplace_back(picture_of(sweeps[i], i));
  return {std::move(section)};
}

Json sweeps_json(const std::vector<Sweep>& sweeps) {
  Json all = Json::array();
  for (const Sweep& sweep : sweeps) {
    const auto value_at = [&](std::optional<std::size_t> at) { return at ? Json(sweep.points[*at].value) : Json(); };
    Json points = Json::array();
    for (const SweepPoint& point : sweep.points) points.push_back(point_json(point));
    all.push_back({{"parameter", sweep.parameter},
                   {"title", sweep.title},
                   {"knee", value_at(sweep.knee)},
                   {"best", value_at(sweep.best)},
                   {"largest", value_at(sweep.largest)},
                   {"does_not_fit", sweep.beyond() ? point_json(*sweep.beyond()) : Json()},
                   {"points", std::move(points)}});
  }
  return all;
}

}  // namespace assay::report
