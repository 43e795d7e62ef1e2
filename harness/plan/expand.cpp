// From a request to cases: targets, --set, counting, the cross product, --filter, limits.
#include "harness/plan/estimate.h"
#include "harness/plan/targets.h"

#include "harness/core/error.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/record/flags.h"
#include "harness/record/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <unordered_map>
#include <unordered_set>

namespace assay {

namespace fs = std::filesystem;

namespace {

// The assignments of one --set: "a.x=1,2,a.y=3" is "a.x=1,2" and "a.y=3". A comma after a backslash belongs to its
// value.
std::vector<std::string> assignments_in(const std::string& text) {
  const auto assigns = [](std::string_view part) {
    const std::string_view name = part.substr(0, part.find('='));
    return name.size() < part.size() && std::ranges::count(name, '.') == 1 &&
           name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_.") == std::string_view::npos;
  };
  std::vector<std::string> all;
  for (std::string& part : split_commas(text)) {
    if (all.empty() || (assigns(part) && !all.back().ends_with('\\')))
      all.push_back(std::move(part));
    else
      all.back() += "," + part;
  }
  return all;
}

// The values for every entry of a family.
struct Override {
  std::string flag;
  const Family* family = nullptr;
  const ParamSpec* spec = nullptr;
  ValueList values;
};

// `flag`, for messages, sets a parameter of the family.
Override read_override(std::string flag, const Family& of, const std::string& param, std::string_view given) {
  Override override{.flag = std::move(flag), .family = &of, .spec = nullptr, .values = {}};
  const std::string& family = of.name;
  std::vector<std::string> names;
  for (const ParamSpec& spec : override.family->params) {
    names.push_back(spec.name);
    if (spec.name == param) override.spec = &spec;
  }
  if (!override.spec)
    throw UsageError(
        fmt::format("{}: {} has no parameter {}{}", override.flag, family, in_quotes(param), suggestion(param, names)));
  if (given == sweep_word && override.spec->sweep.empty() && override.spec->type != ParamType::text) {
    names.clear();
    for (const ParamSpec& spec : override.family->params)
      if (!spec.sweep.empty()) names.push_back(spec.name);
    throw UsageError(
        fmt::format("{}: \"{}\" has no sweep; of {} {}", override.flag, param, family,
                    names.empty() ? "no parameter has one" : fmt::format("these have: {}", fmt::join(names, ", "))));
  }
  Problems problems(override.flag);
  auto values = read_values(*override.spec, given, problems);
  problems.raise();
  override.values = std::move(*values);
  return override;
}

// One assignment of --set.
Override read_set(const std::string& text, std::span<const Family> families) {
  const std::string flag = fmt::format("--set {}", one_line(text));
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const std::size_t dot = name.find('.');
  if (equals == std::string::npos || dot == std::string::npos)
    throw UsageError(fmt::format("{}: must be family.param=v1,v2", flag));
  const std::string family = name.substr(0, dot);
  if (const Family* const found = find_family(families, family))
    return read_override(flag, *found, name.substr(dot + 1), std::string_view(text).substr(equals + 1));
  throw UsageError(
      fmt::format("{}: unknown family {}{}", flag, in_quotes(family), suggestion(family, family_names(families))));
}

// Whether the word after a family sets one of its parameters: it has a "=" and is no plan file.
bool is_assignment(const std::string& word) {
  std::error_code none;
  return word.find('=') != std::string::npos && !fs::exists(word, none);
}

// A word of the command line, "m=1024,4096", for the target before it.
Override read_word(const std::string& word, const std::string& target, std::span<const Family> families) {
  const std::string flag = one_line(word);
  const Family* const family = find_family(families, target);
  if (!family)
    throw UsageError(target.empty()
                         ? fmt::format("{}: name the family of this parameter before it", flag)
                         : fmt::format("{}: {} is no family; set parameters in a plan by --set FAMILY.PARAM=V", flag,
                                       in_quotes(target)));
  const std::size_t equals = word.find('=');
  return read_override(flag, *family, word.substr(0, equals), std::string_view(word).substr(equals + 1));
}

void override_entries(const Override& override, std::span<PlanEntry> entries) {
  bool used = false;
  std::set<std::string> present;
  for (PlanEntry& entry : entries) {
    present.insert(entry.family->name);
    if (entry.family != override.family) continue;
    for (auto& [spec, list] : entry.values)
      if (spec == override.spec) list = override.values;
    used = true;
  }
  if (!used)
    throw UsageError(fmt::format("{}: nothing to run is of the family \"{}\" (there are: {})", override.flag,
                                 override.family->name, fmt::join(present, ", ")));
}

// Removes values that the device lacks from each list. A list of nothing else stays: its cases become skips, so that
// explicit requests get an answer.
void remove_unsupported(PlanEntry& entry, DeviceKind device) {
  for (auto& [spec, list] : entry.values) {
    const ParamSpec& asked = *spec;
    const auto lacks = [&](const ParamValue& value) { return !asked.has(value, device); };
    if (!list.ranges.empty() || !std::ranges::all_of(list.scalars, lacks)) std::erase_if(list.scalars, lacks);
  }
}

// Cases of an entry, by multiplying the lengths of its lists; a double, since products pass 2^64.
double count_cases(const PlanEntry& entry, DeviceKind device) {
  double n = static_cast<double>(entry.ranks.size());
  for (const auto& [spec, list] : entry.values)
    if (spec->has(device)) n *= list.count();
  return n;
}

void refuse_too_many(const std::vector<PlanEntry>& entries, DeviceKind device, std::size_t limit) {
  double total = 0, largest = -1;
  const PlanEntry* worst = nullptr;
  for (const PlanEntry& entry : entries) {
    const double n = count_cases(entry, device);
    total += n;
    if (n > largest) {
      largest = n;
      worst = &entry;
    }
  }
  if (total <= static_cast<double>(limit)) return;
  const auto number = [](double n) { return n < 9e15 ? fmt::format("{:.0f}", n) : fmt::format("{:.3g}", n); };
  Problems problems(worst->source);
  problems.add(worst->pointer,
               fmt::format("the lists expand to {} cases{}; at most {} are allowed", number(total),
                           entries.size() > 1 ? fmt::format(", {} of them here", number(largest)) : "", limit));
  problems.raise();
}

PlannedCase make_case(const PlanEntry& entry, Params params, int ranks) {
  PlannedCase planned;
  planned.family = entry.family;
  planned.key = params.key(entry.family->name);
  planned.params = std::move(params);
  planned.ranks = ranks;
  planned.seed = entry.seed;
  planned.protocol = entry.protocol;
  planned.timeout_seconds = entry.timeout_seconds;
  return planned;
}

struct Expanded {
  PlannedCase planned;
  const PlanEntry* entry;
};

// Ends each sweep of an entry at its first value that does not fit.
class SweepEnds {
 public:
  SweepEnds(const PlanEntry& entry, DeviceKind device, const PlanLimits& limits) : device_(device), limits_(limits) {
    for (const auto& [spec, list] : entry.values) {
      if (!list.swept || !spec->has(device)) continue;
      if (!parameter_.empty()) {
        Problems problems(entry.source);
        problems.add(entry.pointer, fmt::format("sweeps both \"{}\" and \"{}\": sweep one and list values of the other",
                                                parameter_, spec->name));
        problems.raise();
      }
      parameter_ = spec->name;
    }
  }

  // Names the cases that differ only in the value swept, by their parameters as written.
  std::string others(Params params, int ranks) const {
    if (parameter_.empty()) return {};
    params.set(parameter_, std::string(sweep_word));
    return fmt::format("{} {}", params.key({}), ranks);
  }

  // Whether the case is part of the plan; the first that does not fit is, as one to skip. The values of a sweep come in
  // ascending order. Values that do not go together with the others (a sequence beyond the model's positions) are left
  // out.
  bool takes(PlannedCase& planned, const std::string& others) {
    if (parameter_.empty()) return true;
    End& end = ends_[others];
    if (end.reached) return false;
    planned.sweep = parameter_;
    if (lacking_on(*planned.family, planned.params, device_)) return true;
    const World world = world_of(planned.ranks, device_, limits_);
    planned.estimate = planned.family->estimate(planned.params, world);
    const double needed = memory_needed(planned.estimate, planned.ranks, limits_);
    if (limits_.memory_bytes > 0 && needed > static_cast<double>(limits_.memory_bytes)) {
      end.reached = true;
      // One alone is refused like any other case.
      if (end.taken)
        planned.unfit = fmt::format("{}: {:.0f} bytes are planned ({}), {} bytes are usable ({})", flag::does_not_fit,
                                    needed, format_bytes(needed), limits_.memory_bytes,
                                    format_bytes(static_cast<double>(limits_.memory_bytes)));
      return true;
    }
    if (planned.family->conflict && planned.family->conflict(planned.params, world)) {
      if (!end.conflict) end.conflict = planned;
      return false;
    }
    return end.taken = true;
  }

  // Adds the first case of each sweep of which no case can run; the plan is then refused for its conflict.
  void add_conflicts(const std::function<void(PlannedCase)>& add) const {
    for (const auto& [others, end] : ends_)
      if (!end.taken && !end.reached && end.conflict) add(*end.conflict);
  }

 private:
  struct End {
    bool taken = false;
    bool reached = false;
    std::optional<PlannedCase> conflict;
  };
  DeviceKind device_;
  const PlanLimits& limits_;
  std::string parameter_;
  std::map<std::string, End> ends_;
};

// The cross product. The last parameter varies fastest and ranks slowest, so that the cases of a world are adjacent.
void expand(const PlanEntry& entry, DeviceKind device, const PlanLimits& limits, std::unordered_set<std::string>& seen,
            std::vector<Expanded>& out) {
  SweepEnds sweep(entry, device, limits);
  std::vector<std::pair<const ParamSpec*, std::vector<ParamValue>>> axes;
  for (const auto& [spec, list] : entry.values)
    if (spec->has(device)) axes.emplace_back(spec, list.values());
  for (const auto& axis : axes)
    if (axis.second.empty()) return;
  for (const int asked : entry.ranks) {
    std::vector<std::size_t> at(axes.size(), 0);
    while (true) {
      Params params;
      for (std::size_t i = 0; i < axes.size(); ++i) {
        const ParamSpec& spec = *axes[i].first;
        const ParamValue& value = axes[i].second[at[i]];
        const bool omitted =
            spec.omit_default && value == spec.defaults.front() && value == spec.defaults_on(device).front();
        if (!omitted) params.set(spec.name, value);
      }
      const std::string others = sweep.others(params, asked);
      if (entry.family->complete) entry.family->complete(params);
      const int ranks = entry.family->takes_one_rank && entry.family->takes_one_rank(params) ? 1 : asked;
      PlannedCase planned = make_case(entry, std::move(params), ranks);
      if (sweep.takes(planned, others) &&
          seen.insert(fmt::format("{}\n{}\n{}", planned.key, ranks, planned.seed)).second)
        out.push_back({std::move(planned), &entry});
      std::size_t axis = axes.size();
      while (axis > 0 && ++at[axis - 1] == axes[axis - 1].second.size()) at[--axis] = 0;
      if (axis == 0) break;
    }
  }
  sweep.add_conflicts([&](PlannedCase planned) { out.push_back({std::move(planned), &entry}); });
}

// The keys closest to a filter that matched none.
std::vector<std::string> nearest_keys(const std::string& filter, const std::vector<Expanded>& cases) {
  std::vector<std::pair<std::size_t, std::string>> scored;
  std::unordered_set<std::string> seen;
  for (const Expanded& one : cases)
    if (seen.insert(one.planned.key).second)
      scored.emplace_back(part_distance(filter, one.planned.key), one.planned.key);
  std::ranges::stable_sort(scored, [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, scored.size()); ++i) keys.push_back(scored[i].second);
  return keys;
}

void filter_cases(const std::string& filter, std::vector<Expanded>& cases) {
  std::regex regex;
  try {
    regex = std::regex(filter, std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error& error) {
    throw UsageError(
        fmt::format("--filter {}: not a regular expression: {}", in_quotes(filter), one_line(error.what())));
  }
  std::vector<Expanded> kept;
  try {
    for (const Expanded& one : cases)
      if (std::regex_search(one.planned.key, regex)) kept.push_back(one);
  } catch (const std::regex_error&) {
    throw UsageError(fmt::format("--filter {}: too complex to be searched", in_quotes(filter)));
  }
  if (kept.empty())
    throw UsageError(fmt::format("--filter {}: no case matches; nearest: {}", in_quotes(filter),
                                 fmt::join(nearest_keys(filter, cases), ", ")));
  cases = std::move(kept);
}

void refuse_overrides_filtered_out(const std::vector<Override>& overrides, const std::string& filter,
                                   const std::vector<Expanded>& cases) {
  for (const Override& override : overrides) {
    const bool left =
        std::ranges::any_of(cases, [&](const Expanded& one) { return one.planned.family == override.family; });
    if (!left)
      throw UsageError(fmt::format("{}: --filter {} leaves no case of \"{}\"", override.flag, in_quotes(filter),
                                   override.family->name));
  }
}

// Why cases are impossible. Cases that share a reason are reported in one line, which names the first.
class Conflicts {
 public:
  void add(const Expanded& one, const std::string& why) {
    const auto [found, fresh] = index_.try_emplace(why, reasons_.size());
    if (fresh) reasons_.push_back({&one, why, 0});
    ++reasons_[found->second].cases;
  }
  template <typename ProblemsOf>
  void report(const ProblemsOf& problems_of) const {
    for (const Reason& reason : reasons_) {
      const std::string others =
          reason.cases > 1 ? fmt::format(" (and {} more case{})", reason.cases - 1, reason.cases == 2 ? "" : "s") : "";
      const PlanEntry& entry = *reason.first->entry;
      problems_of(entry).add(entry.pointer,
                             fmt::format("{}{}: {}", one_line(reason.first->planned.key, 400), others, reason.why));
    }
  }

 private:
  struct Reason {
    const Expanded* first;
    std::string why;
    std::size_t cases;
  };
  std::unordered_map<std::string, std::size_t> index_;
  std::vector<Reason> reasons_;
};

// Throws on values that do not go together and on sizes beyond this machine. A family that the device cannot run is
// left to become skips.
void refuse_impossible(std::vector<Expanded>& cases, DeviceKind device, const PlanLimits& limits) {
  std::vector<Problems> problems;
  const auto problems_of = [&](const PlanEntry& entry) -> Problems& {
    for (Problems& one : problems)
      if (one.source() == entry.source) return one;
    return problems.emplace_back(entry.source);
  };
  Conflicts conflicts;
  for (Expanded& one : cases) {
    PlannedCase& planned = one.planned;
    const World world = world_of(planned.ranks, device, limits);
    const Family& family = *planned.family;
    if (!planned.unfit.empty()) continue;
    if (!family.devices.empty() && lacking_on(family, planned.params, device)) continue;
    if (family.conflict) {
      if (const auto why = family.conflict(planned.params, world)) {
        conflicts.add(one, *why);
        continue;
      }
    }
    planned.estimate = family.estimate(planned.params, world);
    planned.estimated_seconds = estimate_seconds(planned, world);
    if (limits.memory_bytes == 0) continue;
    const double needed = memory_needed(planned.estimate, planned.ranks, limits);
    // Written so that a NaN or infinity is refused.
    if (needed <= static_cast<double>(limits.memory_bytes)) continue;
    problems_of(*one.entry)
        .add(
            one.entry->pointer,
            fmt::format("{}{} needs {} ({:.0f} bytes) of memory{}; this machine has {} ({} bytes)",
                        one_line(planned.key, 400), planned.ranks > 1 ? fmt::format(" on {} ranks", planned.ranks) : "",
                        format_bytes(needed), needed, limits.ranks_per_host && planned.ranks > 1 ? " on one host" : "",
                        format_bytes(static_cast<double>(limits.memory_bytes)), limits.memory_bytes));
  }
  conflicts.report(problems_of);
  std::string all;
  for (const Problems& one : problems) {
    try {
      one.raise();
    } catch (const UsageError& error) {
      all += (all.empty() ? "" : "\n") + std::string(error.what());
    }
  }
  if (!all.empty()) throw UsageError(all);
}

void check_request(const PlanRequest& request) {
  if (request.targets.empty()) throw UsageError("nothing to run: name a plan or a family (assay list shows them)");
  for (const int ranks : request.ranks)
    if (ranks < 1 || ranks > max_ranks)
      throw UsageError(fmt::format("--ranks {}: must be from 1 to {}", ranks, max_ranks));
}

}  // namespace

Plan expand_plan(const PlanRequest& request, std::span<const Family> families, const PlanLimits& limits) {
  check_request(request);
  Plan plan;
  std::vector<PlanEntry> entries;
  std::vector<Override> overrides;
  std::string last;          // target
  std::size_t last_own = 0;  // its first entry
  for (const std::string& target : request.targets) {
    if (is_assignment(target)) {
      overrides.push_back(read_word(target, last, families));
      override_entries(overrides.back(), std::span(entries).subspan(last_own));
      continue;
    }
    PlanSource source = read_target(target, request.configs, families, request.device);
    const bool is_model = !source.entries.empty() && !source.entries.front().model.empty();
    last = is_model ? source.entries.front().family->name : target, last_own = entries.size();
    plan.name += (plan.name.empty() ? "" : "+") + source.name;
    plan.labels.merge(source.labels);
    std::move(source.entries.begin(), source.entries.end(), std::back_inserter(entries));
  }
  for (const std::string& text : request.sets)
    for (const std::string& assignment : assignments_in(text)) {
      overrides.push_back(read_set(assignment, families));
      override_entries(overrides.back(), entries);
    }
  for (PlanEntry& entry : entries) {
    if (!request.ranks.empty()) entry.ranks = request.ranks;
    if (entry.ranks.empty() && runs_at_world_sizes(*entry.family)) entry.ranks = limits.world_sizes;
    if (entry.ranks.empty()) entry.ranks = {1};
    if (request.timeout_seconds) entry.timeout_seconds = *request.timeout_seconds;
    remove_unsupported(entry, request.device);
    if (entry.model.empty()) continue;
    const Family* whole = entry.family;
    std::string remark = choose_whole_or_slices(entry, families, request.device, limits);
    for (Override& override : overrides) {
      if (override.family != whole || entry.family == whole) continue;
      if (std::ranges::none_of(entry.values, [&](const auto& one) { return one.first->name == override.spec->name; }))
        throw UsageError(fmt::format("{}: {}, and {} has no parameter {}", override.flag, remark, entry.family->name,
                                     in_quotes(override.spec->name)));
      override.family = entry.family;
    }
    plan.remarks.push_back(std::move(remark));
  }
  refuse_too_many(entries, request.device, limits.max_cases);

  std::vector<Expanded> cases;
  std::unordered_set<std::string> seen;
  for (const PlanEntry& entry : entries) expand(entry, request.device, limits, seen, cases);
  if (!request.filter.empty()) {
    filter_cases(request.filter, cases);
    refuse_overrides_filtered_out(overrides, request.filter, cases);
  }
  refuse_impossible(cases, request.device, limits);
  plan.cases.reserve(cases.size());
  for (Expanded& one : cases) plan.cases.push_back(std::move(one.planned));
  return plan;
}

}  // namespace assay
