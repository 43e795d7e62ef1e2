// Google Benchmark's JSON, from many versions: unknown members are left out.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/figures/direction.h"
#include "harness/figures/mentions.h"
#include "harness/json/json.h"

#include <set>
#include <vector>

namespace assay {

namespace {

// Members of an entry that are no counters of the user, between blanks.
constexpr std::string_view own_members =
    " family_index per_family_instance_index repetitions repetition_index threads iterations real_time cpu_time "
    "items_per_second bytes_per_second cpu_coefficient real_coefficient rms allocs_per_iter max_bytes_used "
    "total_allocated_bytes net_heap_growth ";
bool is_counter(const std::string& name, const Json& value) {
  return value.is_number() && own_members.find(" " + name + " ") == own_members.npos;
}

// Figures of memory, if the program counts them.
constexpr std::array<std::pair<const char*, const char*>, 4> memory_members = {
    {{"allocs_per_iter", "1"}, {"max_bytes_used", "B"}, {"total_allocated_bytes", "B"}, {"net_heap_growth", "B"}}};
constexpr std::array<std::string_view, 6> aggregate_names = {"mean", "median", "stddev", "cv", "BigO", "RMS"};

// What repetitions of one benchmark share: its name, and what tells apart benchmarks of equal names. The label counts
// where the file has no index of families: with one, labels may differ from one repetition to the next.
struct Group {
  std::string name;
  double family = -1, instance = 0, threads = 0;
  std::string label;

  auto operator<=>(const Group&) const = default;
};

// What benchmarks of one name differ in.
struct Variants {
  std::set<std::string> labels;
  std::set<double> threads;
  std::set<std::pair<double, double>> families;
};

struct Aggregates {
  const Json *mean = nullptr, *median = nullptr, *stddev = nullptr;
  double repetitions = 0;
};

// A number of an entry in base units; times are in its time_unit.
struct Member {
  const char* name;
  const char* unit;
  Better better;
  bool time;
};
constexpr Member cpu_time{"cpu_time", "s", Better::lower, true}, real_time{"real_time", "s", Better::lower, true};
constexpr std::array<Member, 2> rates = {
    {{"items_per_second", "items/s", Better::higher, false}, {"bytes_per_second", "B/s", Better::higher, false}}};

// How many of its time_unit are a second. A division by it gives the nearest number, a multiplication may not.
double units_per_second(const Json& one) {
  const std::string unit = text_member(one, "/time_unit");
  return unit == "s" ? 1 : unit == "ms" ? 1e3 : unit == "us" ? 1e6 : 1e9;
}

// The benchmark chooses its iterations by the wall clock or times itself: the CPU's time is not what it measures.
bool judged_by_wall_time(const std::string& name) {
  for (std::size_t at = 0; at != std::string::npos;) {
    const std::size_t end = name.find('/', at);
    const std::string part = name.substr(at, end - at);
    if (part == "real_time" || part == "manual_time") return true;
    at = end == std::string::npos ? end : end + 1;
  }
  return false;
}

class Benchmarks {
 public:
  // With `every`, also the CPU time of benchmarks that it does not judge.
  Benchmarks(const Json& all, FigureCollector& figures, bool every) : all_(all), figures_(figures), every_(every) {}

  void read() {
    for (const Json& one : all_) names_.insert(text_member(one, "/name"));
    for (const Json& one : all_) {
      const Group group = group_of(one);
      labels_[group].insert(text_member(one, "/label"));
      if (!aggregate_of(one).empty()) continue;
      Variants& known = variants_[group.name];
      known.labels.insert(group.label), known.threads.insert(group.threads);
      known.families.emplace(group.family, group.instance);
    }
    std::size_t number = 0;
    for (const Json& one : all_) {
      const std::string place = fmt::format("benchmarks/{}", number++);
      const Group group = group_of(one);
      if (group.name.empty())
        figures_.not_read(place, "has no name");
      else if (const std::string aggregate = aggregate_of(one); !aggregate.empty())
        keep(group, aggregate, one);
      else
        read_run(group, one);
    }
    for (const auto& [group, one] : aggregates_)
      if (!measured_.contains(group.name)) read_aggregates(group, one);
  }

 private:
  // The name of the aggregate that the entry is; empty for a repetition. Before version 1.5 only the names tell them:
  // one that ends like an aggregate of a benchmark that is there, or that has the other aggregates beside it.
  std::string aggregate_of(const Json& one) const {
    const std::string type = text_member(one, "/run_type"), name = text_member(one, "/name");
    if (type == "aggregate") {
      const std::string aggregate = text_member(one, "/aggregate_name");
      return aggregate.empty() ? "unknown" : aggregate;
    }
    if (!type.empty()) return {};
    for (const std::string_view aggregate : aggregate_names) {
      if (!name.ends_with(aggregate) || name.size() < aggregate.size() + 2) continue;
      const std::string base = name.substr(0, name.size() - aggregate.size());
      if (!base.ends_with('_')) continue;
      const std::string whole = base.substr(0, base.size() - 1);
      const auto argument = names_.lower_bound(whole + "/");  // a curve over arguments
      if (names_.contains(whole) || (names_.contains(base + "mean") && names_.contains(base + "stddev")) ||
          ((aggregate == "BigO" || aggregate == "RMS") && argument != names_.end() &&
           argument->starts_with(whole + "/")))
        return std::string(aggregate);
    }
    return {};
  }

  Group group_of(const Json& one) const {
    Group group;
    group.name = text_member(one, "/run_name");
    if (group.name.empty()) {
      group.name = text_member(one, "/name");
      if (const std::string aggregate = aggregate_of(one);
          text_member(one, "/run_type").empty() ? !aggregate.empty() : group.name.ends_with("_" + aggregate))
        group.name.resize(group.name.size() - aggregate.size() - 1);
    }
    group.family = number_member(one, "/family_index").value_or(-1);
    group.instance = number_member(one, "/per_family_instance_index").value_or(0);
    if (group.family < 0) group.label = text_member(one, "/label");
    group.threads = number_member(one, "/threads").value_or(0);
    return group;
  }

  // Equal names of different benchmarks are told apart by what differs.
  ForeignFigure like(const Group& group) const {
    ForeignFigure figure;
    figure.name = group.name;
    if (const auto& labels = labels_.at(group); !labels.begin()->empty())
      (labels.size() == 1 ? figure.conditions : figure.labels)["label"] = *labels.begin();
    const std::string threads = fmt::format("{:.0f}", group.threads);
    const bool named = group.name.find("/threads:") != std::string::npos;
    if (group.threads > 1 && !named) figure.conditions["threads"] = threads;
    const auto known = variants_.find(group.name);
    if (known == variants_.end()) return figure;
    if (known->second.labels.size() > 1) figure.name += "/label:" + group.label;
    if (known->second.threads.size() > 1 && !named) figure.name += "/threads:" + threads;
    if (known->second.families.size() > 1)
      figure.name += fmt::format("/family:{:.0f}.{:.0f}", group.family, group.instance);
    return figure;
  }

  void add(ForeignFigure figure, const Member& member, const Json& one) {
    const auto value = number_member(one, std::string("/") + member.name);
    if (!value) return;
    figure.metric = member.name, figure.unit = member.unit, figure.better = member.better;
    figures_.add(std::move(figure), *value / (member.time ? units_per_second(one) : 1));
  }

  void read_run(const Group& group, const Json& one) {
    measured_.insert(group.name);
    ForeignFigure figure = like(group);
    const std::string error = text_member(one, "/error_message"), skip = text_member(one, "/skip_message");
    if (member(one, "/error_occurred") == Json(true) || !error.empty())
      return figures_.add_without(figure, Status::error,
                                  error.empty() ? "it says no more than that an error occurred" : error);
    if (member(one, "/skipped") == Json(true) || !skip.empty())
      return figures_.add_without(figure, Status::skipped, skip);
    const bool has_time = number_member(one, "/real_time") || number_member(one, "/cpu_time");
    if (!has_time || number_member(one, "/iterations") == 0.0)
      return figures_.add_without(figure, Status::error, has_time ? "it ran no iteration" : "it has no time");
    if (!judged_by_wall_time(group.name))
      add(figure, cpu_time, one);
    else if (const auto seconds = number_member(one, "/cpu_time"))
      figure.labels["cpu_time"] = fmt::format("{:.6g} s", *seconds / units_per_second(one));
    add(figure, real_time, one);
    if (every_ && judged_by_wall_time(group.name)) add(figure, cpu_time, one);
    for (const Member& rate : rates) add(figure, rate, one);
    for (const auto& [name, unit] : memory_members) add(figure, {name, unit, Better::lower, false}, one);
    for (const auto& [name, value] : one.items()) {
      if (!is_counter(name, value)) continue;
      ForeignFigure counter = figure;
      counter.metric = name, counter.unit = "1", counter.better = guessed_better(name), counter.guessed = true;
      figures_.add(std::move(counter), value.get<double>());
    }
  }

  void keep(const Group& group, const std::string& aggregate, const Json& one) {
    Aggregates& kept = aggregates_[group];
    if (aggregate == "mean") kept.mean = &one;
    if (aggregate == "median") kept.median = &one;
    if (aggregate == "stddev") kept.stddev = &one;
    kept.repetitions = std::max({kept.repetitions, number_member(one, "/repetitions").value_or(0),
                                 number_member(one, "/iterations").value_or(0)});
  }

  // Only aggregates are left of the repetitions: the median with an interval as of a normal distribution.
  void read_aggregates(const Group& group, const Aggregates& kept) {
    const Json* const middle = kept.median ? kept.median : kept.mean;
    if (!middle) return;
    const auto add_middle = [&](const Member& member, bool guessed) {
      const std::string path = std::string("/") + member.name;
      const auto value = number_member(*middle, path);
      if (!value) return;
      ForeignFigure figure = like(group);
      figure.metric = member.name, figure.unit = member.unit, figure.better = member.better, figure.guessed = guessed;
      figure.labels["aggregate"] = kept.median ? "median" : "mean";
      const double units = member.time ? units_per_second(*middle) : 1;
      const auto spread = kept.stddev ? number_member(*kept.stddev, path) : std::nullopt;
      if (spread && kept.repetitions > 1) {
        const double half = half_width(std::abs(*spread), kept.repetitions, kept.median != nullptr);
        figure.ci95 = Interval{(*value - half) / units, (*value + half) / units};
      }
      figures_.add(std::move(figure), *value / units);
    };
    if (!judged_by_wall_time(group.name)) add_middle(cpu_time, false);
    add_middle(real_time, false);
    for (const Member& rate : rates) add_middle(rate, false);
    for (const auto& [name, value] : middle->items())
      if (is_counter(name, value)) add_middle({name.c_str(), "1", guessed_better(name), false}, true);
  }

  // Half of the 95 % interval is Student's t (by the Cornish-Fisher expansion) times the standard error, which is
  // larger by sqrt(pi / 2) for a median.
  static double half_width(double stddev, double repetitions, bool median) {
    constexpr double z = 1.959964, of_median = 1.253314;
    const double f = repetitions - 1;
    const double t = f < 3
                         ? (f < 2 ? 12.7062 : 4.30265)
                         : z + (z * z * z + z) / (4 * f) + (5 * std::pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * f * f);
    return t * stddev / std::sqrt(repetitions) * (median ? of_median : 1);
  }

  const Json& all_;
  FigureCollector& figures_;
  bool every_;
  std::set<std::string> names_, measured_;
  std::map<std::string, Variants> variants_;  // of repetitions, by name
  std::map<Group, std::set<std::string>> labels_;
  std::map<Group, Aggregates> aggregates_;
};

std::string size_text(double bytes) {
  return bytes >= 0x1p20 ? fmt::format("{:g} MiB", bytes / 0x1p20) : fmt::format("{:g} KiB", bytes / 0x1p10);
}

// "8 CPUs at 2.4 GHz, L2 1 MiB, L3 32 MiB": all that the file says of the processor. Clocks are rounded, since they
// differ a little from one start to the next.
std::string cpu_class(const Json& context) {
  const auto count = number_member(context, "/num_cpus"), mhz = number_member(context, "/mhz_per_cpu");
  if (!count) return {};
  std::string name = fmt::format("{:g} CPU{}", *count, *count == 1 ? "" : "s");
  if (mhz && *mhz > 0) name += fmt::format(" at {:.1f} GHz", *mhz / 1e3);
  if (const Json& caches = member(context, "/caches"); caches.is_array())
    for (const Json& cache : caches) {
      const auto level = number_member(cache, "/level"), size = number_member(cache, "/size");
      if (level && size && *level > 1) name += fmt::format(", L{:g} {}", *level, size_text(*size));
    }
  return name;
}

// Members of the context that say more than the rest of run.json does.
bool is_fact(const std::string& name, const Json& value) {
  static const std::set<std::string> others = {"date", "host_name", "caches", "load_avg", "mhz_per_cpu"};
  return value.is_primitive() && !value.is_null() && !others.contains(name);
}

ForeignContext context_of(const Json& context, const std::string& commit_key) {
  ForeignContext about;
  about.machine = text_member(context, "/host_name");
  if (!context.is_object()) return about;
  for (const auto& [name, value] : context.items()) {
    const std::string lower = lower_case(name);
    static const std::set<std::string> commits = {"commit",  "commit_id", "commit_hash",  "git_commit",
                                                  "git_sha", "git_hash",  "git_revision", "revision",
                                                  "sha",     "github_sha"};
    static const std::set<std::string> branches = {"branch", "git_branch", "github_ref_name"};
    if (commit_key.empty() ? commits.contains(lower) : name == commit_key)
      about.commit = scalar_text(value);
    else if (branches.contains(lower))
      about.facts["branch"] = scalar_text(value);
    else if (is_fact(name, value))
      about.facts[name] = scalar_text(value);
  }
  // A program's folder differs from one checkout to the next.
  if (const auto path = about.facts.find("executable"); path != about.facts.end())
    path->second = path->second.substr(path->second.rfind('/') + 1);
  Json environment = Json::object();
  if (const std::string cpu = cpu_class(context); !cpu.empty()) environment["cpu"]["name"] = cpu;
  if (const Json& caches = member(context, "/caches"); caches.is_array() && !caches.empty())
    environment["cpu"]["caches"] = caches;
  if (const auto mhz = number_member(context, "/mhz_per_cpu")) environment["cpu"]["clocks_hz"]["max"] = *mhz * 1e6;
  if (const std::string type = text_member(context, "/library_build_type"); !type.empty())
    environment["build_type"] = type;
  if (const std::string version = text_member(context, "/library_version"); !version.empty())
    environment["libraries"]["benchmark"] = version;
  if (!environment.empty()) about.environment = std::move(environment);
  return about;
}

}  // namespace

ForeignFile read_gbench(const std::string& text, const std::string& file, const std::string& commit_key) {
  const Json json = parse_foreign_json(text, file);
  const Json& all = need_list(json, "/benchmarks", file, "Google Benchmark");
  FigureCollector figures;
  ForeignContext about = context_of(member(json, "/context"), commit_key);
  if (!commit_key.empty() && about.commit.empty())
    throw UsageError(fmt::format("{}: its context has no member {}", file, in_quotes(commit_key)));
  about.time = figures.time(text_member(json, "/context/date"), text, file);
  figures.measured(about);
  Benchmarks(all, figures, false).read();
  return figures.take();
}

void each_gbench_mention(const Json& benchmarks, const MentionSink& add) {
  FigureCollector figures;
  Benchmarks(benchmarks, figures, true).read();
  for (const ForeignFigure& one : figures.take().figures()) {
    Mention found{fmt::format("gbench:{}:{}", one.name, one.metric)};
    found.case_name = one.name, found.metric = one.metric;
    if (!one.guessed && !one.unit.empty()) found.unit = one.unit, found.better = one.better;
    if (one.status != Status::ok) found.not_a_number = fmt::format("{}: {}", name_of(one.status), one.reason);
    for (const double value : one.values) found.value = value, add(Mention(found));
    if (one.values.empty()) add(std::move(found));
  }
}

}  // namespace assay
