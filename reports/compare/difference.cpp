// run.json flattened to fields by JSON pointer, compared as sets of values.
#include "reports/compare/difference.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/json.h"
#include "harness/machine/finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::report::comparison {

namespace {

struct Title {
  std::string_view pointer;
  std::string_view title;
};

// In display order. Other pointers follow, named by their path.
constexpr Title known_titles[] = {
    {"environment", "environment"},
    {"environment/cloud/provider", "provider"},
    {"environment/cloud/instance_type", "instance type"},
    {"environment/hostnames", "hosts"},
    {"environment/gpus", "GPUs"},
    {"environment/gpus/name", "GPU"},
    {"environment/cpu/name", "CPU"},
    {"environment/cpu/brand", "CPU brand"},
    {"environment/cpu/sockets", "sockets"},
    {"environment/cpu/cores", "cores"},
    {"environment/cpu/usable_cores", "usable cores"},
    {"environment/cpu/usable_cpus", "usable CPUs"},
    {"environment/cpu/quota_cpus", "CPU quota"},
    {"environment/cpu/smt", "SMT"},
    {"environment/cpu/isa", "instruction sets"},
    {"environment/memory/installed_bytes", "memory installed"},
    {"environment/memory/total_bytes", "memory"},
    {"environment/memory/limit_bytes", "memory limit"},
    {"environment/gpus/driver", "GPU driver"},
    {"environment/drivers/nvidia", "NVIDIA driver"},
    {"environment/cpu/microcode", "microcode"},
    {"environment/libraries", "libraries"},
    {"environment/cpu/clocks_hz/min", "min clock"},
    {"environment/cpu/clocks_hz/base", "base clock"},
    {"environment/cpu/clocks_hz/max", "max clock"},
    {"environment/cpu/governors", "governor"},
    {"environment/cpu/frequency_driver", "frequency driver"},
    {"environment/cpu/turbo", "turbo"},
    {"environment/cpu/power_limits_watts", "power limits"},
    {"environment/os/name", "system"},
    {"environment/os/kernel", "kernel"},
    {"environment/virtual_machine", "virtual machine"},
    {"environment/container", "container"},
    {"environment/assay/compiler", "compiler"},
    {"environment/assay/build_type", "build type"},
    {"environment/assay/flags", "compiler flags"},
    {"environment/assay/version", "Assay"},
    {"environment/assay/commit", "Assay's commit"},
    {"environment/assay/dirty", "uncommitted changes"},
    {"device", "device"},
    {"plan/name", "plan"},
    {"plan/cases", "cases of the plan"},
    {"labels", "label"},
    {"findings", "findings"},
};

// These change all the time and say nothing about the machine.
constexpr std::array<std::string_view, 8> volatile_fields = {"environment/load",
                                                             "environment/steal_since_boot",
                                                             "environment/memory/available_bytes",
                                                             "environment/memory/swap_used_bytes",
                                                             "environment/memory/shm_bytes",
                                                             "environment/cpu/throttle_events",
                                                             "environment/gpus/clock_hz",
                                                             "environment/gpus/temperature"};

constexpr std::string_view plan_cases = "plan/cases";

using Fields = std::map<std::string, Json>;

bool is_volatile(std::string_view pointer) {
  return std::ranges::find(volatile_fields, pointer) != volatile_fields.end();
}

void flatten(const Json& json, const std::string& pointer, Fields& fields) {
  if (json.is_null() || is_volatile(pointer)) return;
  if (json.is_object()) {
    for (const auto& [name, value] : json.items()) flatten(value, pointer + "/" + name, fields);
    return;
  }
  const bool objects = json.is_array() && !json.empty() && std::ranges::all_of(json, &Json::is_object);
  if (!objects) {
    fields[pointer] = json;
    return;
  }
  // Lists of objects (GPUs, caches): each member becomes the list of its values.
  Fields members;
  for (const Json& item : json)
    for (const auto& [name, value] : item.items())
      if (!value.is_null() && !is_volatile(pointer + "/" + name)) {
        Json& list = members[pointer + "/" + name];
        if (!list.is_array()) list = Json::array();
        list.push_back(value);
      }
  fields.merge(members);
}

Json warning_names(const Json& findings) {
  std::set<std::string> names;
  for (const Finding& finding : read_spoilers(findings))
    if (finding.severity == Severity::warning) names.insert(finding.id);
  return names.empty() ? Json() : Json(names);
}

Fields fields_of(const RunData& run) {
  Fields fields;
  const Json environment = member(run.run, "/environment");
  flatten(environment, "environment", fields);
  if (!fields.contains("environment/assay/commit")) flatten(member(run.run, "/git"), "environment/assay", fields);
  if (!fields.contains("environment/assay/version"))
    flatten(member(run.run, "/version"), "environment/assay/version", fields);
  flatten(member(run.run, "/device"), "device", fields);
  flatten(member(run.run, "/labels"), "labels", fields);
  flatten(warning_names(member(run.run, "/findings")), "findings", fields);
  flatten(member(run.run, "/plan/name"), "plan/name", fields);
  if (const Json cases = member(run.run, "/plan/cases"); cases.is_array()) {
    Json& names = fields[std::string(plan_cases)] = Json::array();
    for (const Json& one : cases)
      names.push_back(fmt::format("{} ranks={} seed={}", text_member(one, "/key"),
                                  number_member(one, "/ranks").value_or(1), number_member(one, "/seed").value_or(0)));
  }
  return fields;
}

std::size_t rank_of(const std::string& pointer) {
  std::size_t best = std::size(known_titles), length = 0;
  for (std::size_t i = 0; i < std::size(known_titles); ++i) {
    const std::string_view known = known_titles[i].pointer;
    const bool inside = pointer == known || (pointer.starts_with(known) && pointer[known.size()] == '/');
    // An unlisted field goes last, unless its parent is listed.
    if (inside && known != "environment" && known.size() > length) best = i, length = known.size();
    if (pointer == "environment" && known == "environment") best = i;
  }
  return best;
}

std::string title_of(const std::string& pointer) {
  for (const Title& known : known_titles)
    if (pointer == known.pointer) return std::string(known.title);
  for (const std::string_view prefix : {"environment/libraries/", "environment/"})
    if (pointer.starts_with(prefix)) {
      std::string rest = pointer.substr(prefix.size());
      std::ranges::replace(rest, '/', ' ');
      return rest;
    }
  std::string rest = pointer;
  std::ranges::replace(rest, '/', ' ');
  return rest;
}

std::string scalar_text(const Json& value, std::string_view pointer) {
  if (value.is_null()) return "–";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number()) {
    const double number = value.get<double>();
    if (pointer.ends_with("bytes")) return format_bytes(number);
    if (pointer.find("_hz") != pointer.npos) return format_quantity(number, "Hz");
    if (pointer.find("watts") != pointer.npos) return format_quantity(number, "W");
  }
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// "8 x NVIDIA H200": groups equal items.
std::string list_text(const Json& list, std::string_view pointer) {
  std::vector<std::pair<std::string, int>> parts;
  for (const Json& item : list) {
    const std::string text = scalar_text(item, pointer);
    const auto found = std::ranges::find_if(parts, [&](const auto& one) { return one.first == text; });
    if (found == parts.end())
      parts.emplace_back(text, 1);
    else
      ++found->second;
  }
  std::vector<std::string> texts;
  for (const auto& [text, count] : parts) texts.push_back(count > 1 ? fmt::format("{} x {}", count, text) : text);
  return texts.empty() ? "none" : joined(texts);
}

std::string value_text(const Json& value, std::string_view pointer) {
  if (pointer == plan_cases && value.is_array()) return plural(value.size(), "case");
  return value.is_array() ? list_text(value, pointer) : scalar_text(value, pointer);
}

std::string side_text(const std::vector<Json>& values, std::string_view pointer) {
  constexpr std::size_t max_texts = 3;
  std::vector<std::string> texts;
  for (const Json& value : values) {
    std::string text = value_text(value, pointer);
    if (std::ranges::find(texts, text) == texts.end()) texts.push_back(std::move(text));
  }
  const std::string rest = texts.size() > max_texts ? ";" + and_more(texts.size(), max_texts) : "";
  texts.resize(std::min(texts.size(), max_texts));
  return fmt::format("{}{}", fmt::join(texts, "; "), rest);
}

bool long_list(const Json& value) {
  return value.is_array() && value.size() > 4 && std::ranges::all_of(value, &Json::is_string);
}

// Keeps of two long lists of names only what the other one lacks.
void shorten_lists(EnvironmentField& field) {
  if (field.base.size() != 1 || field.head.size() != 1) return;
  const Json base = field.base.front(), head = field.head.front();
  if (!base.is_array() || !head.is_array() || (!long_list(base) && !long_list(head) && field.pointer != plan_cases))
    return;
  const auto only = [](const Json& here, const Json& there) {
    const std::set<Json> known(there.begin(), there.end());
    Json rest = Json::array();
    for (const Json& item : here)
      if (!known.contains(item)) rest.push_back(item);
    return rest;
  };
  const Json only_base = only(base, head), only_head = only(head, base);
  if (only_base.empty() && only_head.empty()) return;  // the same names, in another order or number
  const auto text = [&](const Json& rest, const Json& all) {
    if (field.pointer == plan_cases)
      return fmt::format("{}, {} only on this side", plural(all.size(), "case"), rest.size());
    return rest.empty() ? std::string("–") : "also " + list_text(rest, field.pointer);
  };
  field.base = {only_base};
  field.head = {only_head};
  field.base_text = text(only_base, base);
  field.head_text = text(only_head, head);
}

// For values whose difference the usual text does not show.
std::string exact_text(const std::vector<Json>& values) {
  std::vector<std::string> texts;
  for (const Json& value : values) texts.push_back(value.dump(-1, ' ', false, Json::error_handler_t::replace));
  return joined(texts, "; ");
}

// Lists by pointer every value that the runs of a side have; null for a run that lacks it.
std::map<std::string, std::set<Json>> values_of(const RunSet& set, const std::set<std::string>& pointers,
                                                const std::vector<Fields>& runs) {
  std::map<std::string, std::set<Json>> values;
  for (std::size_t i = 0; i < set.runs().size(); ++i)
    for (const std::string& pointer : pointers) {
      const auto found = runs[i].find(pointer);
      values[pointer].insert(found == runs[i].end() ? Json() : found->second);
    }
  return values;
}

std::vector<Fields> all_fields(const RunSet& set, std::set<std::string>& pointers) {
  std::vector<Fields> runs;
  for (const RunData& run : set.runs()) {
    runs.push_back(fields_of(run));
    for (const auto& [pointer, value] : runs.back()) pointers.insert(pointer);
  }
  return runs;
}

bool has_environment(const std::vector<Fields>& runs) {
  return std::ranges::any_of(runs, [](const Fields& fields) {
    return std::ranges::any_of(fields, [](const auto& field) { return field.first.starts_with("environment/"); });
  });
}

}  // namespace

EnvironmentDifference environment_difference(const RunSet& base, const RunSet& head) {
  std::set<std::string> pointers;
  std::vector<Fields> base_runs = all_fields(base, pointers), head_runs = all_fields(head, pointers);
  const bool base_known = has_environment(base_runs), head_known = has_environment(head_runs);
  EnvironmentDifference difference;
  if (base_known != head_known) {
    std::erase_if(pointers, [](const std::string& pointer) { return pointer.starts_with("environment/"); });
    difference.fields.push_back({"environment",
                                 "environment",
                                 {base_known},
                                 {head_known},
                                 base_known ? "recorded" : "not recorded",
                                 head_known ? "recorded" : "not recorded"});
  }
  const auto base_values = values_of(base, pointers, base_runs), head_values = values_of(head, pointers, head_runs);
  std::vector<std::string> order(pointers.begin(), pointers.end());
  std::ranges::stable_sort(order, [](const std::string& a, const std::string& b) { return rank_of(a) < rank_of(b); });
  for (const std::string& pointer : order) {
    const auto b = base_values.find(pointer), h = head_values.find(pointer);
    if (b == base_values.end() || h == head_values.end()) continue;  // a side without runs
    const std::string title = title_of(pointer);
    if (b->second.size() > 1) difference.within_base.push_back(title);
    if (h->second.size() > 1) difference.within_head.push_back(title);
    if (b->second == h->second) continue;
    EnvironmentField field{title, pointer, {b->second.begin(), b->second.end()}, {h->second.begin(), h->second.end()},
                           "",    ""};
    field.base_text = side_text(field.base, pointer);
    field.head_text = side_text(field.head, pointer);
    shorten_lists(field);
    if (field.base_text == field.head_text) {
      field.base_text = exact_text(field.base);
      field.head_text = exact_text(field.head);
    }
    difference.fields.push_back(std::move(field));
  }
  return difference;
}

std::optional<EnvironmentField> clock_difference(const Pairing& pairing) {
  constexpr double tolerance = 0.02;
  const auto clocks_of = [](const std::vector<const Entry*>& entries) {
    std::vector<double> clocks;
    for (const Entry* entry : entries)
      if (const auto found = entry->record->telemetry.find("clock"); found != entry->record->telemetry.end())
        for (const std::optional<double>& value : found->second.values)
          if (value && *value > 0 && found->second.unit == "Hz") clocks.push_back(*value);
    return clocks;
  };
  std::vector<double> base, head;
  for (const Pair& pair : pairing.pairs) {
    if (!pair.headline) continue;
    const std::vector<double> b = clocks_of(pair.base_entries), h = clocks_of(pair.head_entries);
    if (b.empty() || h.empty()) continue;
    base.push_back(median(b));
    head.push_back(median(h));
  }
  if (base.empty()) return std::nullopt;
  const double b = median(base), h = median(head);
  if (std::abs(h / b - 1) <= tolerance) return std::nullopt;
  return EnvironmentField{"clock while measuring",  "telemetry/clock",       {b}, {h},
                          format_quantity(b, "Hz"), format_quantity(h, "Hz")};
}

}  // namespace assay::report::comparison
