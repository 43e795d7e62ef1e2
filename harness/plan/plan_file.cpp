#include "harness/plan/plan_file.h"

#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/core/units.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay {

namespace {

// Settings of an entry or plan besides parameters; a family's parameter of the same name takes precedence.
struct Settings {
  std::vector<int> ranks;
  std::uint64_t seed = 0;
  ProtocolOverrides protocol;
  double timeout_seconds = 0;
};

constexpr double max_time_seconds = 1e7;

std::vector<int> read_ranks(const Cursor& cursor) {
  std::vector<int> ranks;
  const auto add = [&](const Cursor& one) {
    const auto value = one.integer(1, max_ranks);
    if (value && std::ranges::find(ranks, *value) == ranks.end()) ranks.push_back(static_cast<int>(*value));
  };
  if (!cursor.json().is_array()) {
    add(cursor);
  } else {
    if (cursor.json().empty()) cursor.error("is an empty list: no case would run");
    for (const Cursor& element : cursor.elements()) add(element);
  }
  return ranks;
}

double read_timeout(const Cursor& cursor) {
  const auto seconds = cursor.quantity(parse_seconds, 0, max_time_seconds);
  if (seconds && *seconds == 0) cursor.error("must be above 0");
  return seconds.value_or(0);
}

// Settings of this object on top of `inherited`. A setting that is also a parameter in `params` is not read.
Settings read_settings(const Cursor& cursor, const Settings& inherited, const Schema& params) {
  Settings settings = inherited;
  const auto find = [&](std::string_view name) -> std::optional<Cursor> {
    for (const ParamSpec& spec : params)
      if (spec.name == name) return std::nullopt;
    return cursor.find(name);
  };
  if (const auto ranks = find("ranks")) settings.ranks = read_ranks(*ranks);
  if (const auto seed = find("seed")) settings.seed = read_seed(*seed);
  if (const auto protocol = find("protocol")) read_protocol(*protocol).apply(settings.protocol);
  if (const auto timeout = find("timeout")) settings.timeout_seconds = read_timeout(*timeout);
  return settings;
}

std::optional<PlanEntry> read_entry(const Cursor& cursor, const Settings& inherited, std::span<const Family> families,
                                    DeviceKind device) {
  if (!cursor.object()) return std::nullopt;
  const auto word = cursor.need("family");
  const auto name = word ? word->text() : std::nullopt;
  if (!name) return std::nullopt;
  const Family* family = find_family(families, *name);
  if (!family) {
    word->error(fmt::format("unknown family {}{}", in_quotes(*name), suggestion(*name, family_names(families))));
    return std::nullopt;
  }
  std::vector<std::string> known;
  for (const ParamSpec& spec : family->params) known.push_back(spec.name);
  for (const char* setting : {"family", "ranks", "seed", "protocol", "timeout", "note"}) known.emplace_back(setting);
  cursor.only(known);

  PlanEntry entry;
  entry.family = family;
  entry.source = cursor.problems().source();
  entry.pointer = cursor.pointer();
  for (const ParamSpec& spec : family->params) {
    ValueList list{spec.defaults_on(device), {}};
    if (const auto given = cursor.find(spec.name)) {
      auto read = read_values(spec, *given);
      if (!read) continue;
      list = std::move(*read);
    }
    entry.values.emplace_back(&spec, std::move(list));
  }
  if (const auto note = cursor.find("note")) note->text();
  Settings settings = read_settings(cursor, inherited, family->params);
  entry.ranks = std::move(settings.ranks);
  entry.seed = settings.seed;
  entry.protocol = std::move(settings.protocol);
  entry.timeout_seconds = settings.timeout_seconds;
  return entry;
}

std::map<std::string, std::string> read_labels(const Cursor& cursor) {
  std::map<std::string, std::string> labels;
  for (const auto& [name, value] : cursor.members()) {
    if (name.empty()) value.error("a label needs a name");
    if (const auto text = value.text()) labels[name] = *text;
  }
  return labels;
}

}  // namespace

std::vector<std::string> family_names(std::span<const Family> families) {
  std::vector<std::string> names;
  for (const Family& family : families) names.push_back(family.name);
  return names;
}

std::uint64_t read_seed(const Cursor& cursor) {
  if (cursor.json().is_number_unsigned()) return cursor.json().get<std::uint64_t>();
  return static_cast<std::uint64_t>(cursor.integer(0).value_or(0));
}

ProtocolOverrides read_protocol(const Cursor& cursor) {
  static const std::vector<std::string> names = {"max_seconds", "warmup_seconds", "target_relative_ci", "min_samples",
                                                 "data"};
  static const std::vector<std::string> data = {"normal", "zeros"};
  ProtocolOverrides overrides;
  if (!cursor.object()) return overrides;
  cursor.only(names);
  if (const auto value = cursor.find("max_seconds")) {
    overrides.max_seconds = value->quantity(parse_seconds, 0, max_time_seconds);
    if (overrides.max_seconds && *overrides.max_seconds == 0) value->error("must be above 0");
  }
  if (const auto value = cursor.find("warmup_seconds"))
    overrides.warmup_seconds = value->quantity(parse_seconds, 0, max_time_seconds);
  if (const auto value = cursor.find("target_relative_ci")) {
    overrides.target_relative_ci = value->quantity(parse_fraction, 0, 1);
    if (overrides.target_relative_ci && *overrides.target_relative_ci == 0) value->error("must be above 0");
  }
  if (const auto value = cursor.find("min_samples")) {
    const auto number = value->integer(1, 1000000);
    if (number) overrides.min_samples = static_cast<int>(*number);
  }
  if (const auto value = cursor.find("data")) overrides.data = value->choice(data);
  return overrides;
}

PlanSource read_plan_file(const std::filesystem::path& path, std::span<const Family> families, DeviceKind device) {
  static const std::vector<std::string> kinds = {"cpu", "cuda"};
  const auto read = [&](const Cursor& root) {
    PlanSource source;
    source.name = path.stem().string();
    if (const auto name = root.find("name")) {
      source.name = name->text().value_or("");
      if (name->json().is_string() && source.name.empty()) name->error("must not be empty");
    }
    if (const auto description = root.find("description")) description->text();
    if (const auto kind = root.find("device")) source.device = device_kind_from(kind->choice(kinds).value_or(""));
    if (const auto labels = root.find("labels")) source.labels = read_labels(*labels);
    const Settings settings = read_settings(root, {}, {});
    if (const auto cases = root.need("cases")) {
      if (cases->json().is_array() && cases->json().empty()) cases->error("is an empty list: nothing to run");
      for (const Cursor& element : cases->elements())
        if (auto entry = read_entry(element, settings, families, device)) source.entries.push_back(std::move(*entry));
    }
    return source;
  };
  return read_strictly(
      path, plan_schema,
      {"schema", "name", "description", "ranks", "seed", "protocol", "timeout", "labels", "cases", "device"}, read);
}

PlanSource bare_family(const Family& family, DeviceKind device) {
  PlanEntry entry;
  entry.family = &family;
  entry.source = family.name;
  for (const ParamSpec& spec : family.params) entry.values.emplace_back(&spec, ValueList{spec.defaults_on(device), {}});
  return {family.name, {}, {std::move(entry)}};
}

}  // namespace assay
