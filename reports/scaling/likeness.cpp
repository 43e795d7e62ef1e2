#include "reports/scaling/likeness.h"

#include "harness/record/protocol.h"
#include "reports/data/machine.h"
#include "reports/data/why_left_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

namespace assay::report::scaling {

namespace {

constexpr std::array<std::string_view, 3> batch_fields{"global_batch", "micro_batch", "accumulate"};

// Labels that follow from the world size, that are prose about the figure, or that say what a trial chose.
constexpr std::array<std::string_view, 17> free_labels{
    "global_batch", "micro_batch",   "accumulate", "threads",        "communication", "formula",
    "peak",         "peak_measured", "count",      "planned_memory", "bytes_used",    "convergence",
    "root",         "redop",         "note",       "choice",         "choices"};

bool within(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Calls visit(name, value) for each "name=value" of a key; parts without '=' belong to the value before them (a path).
template <typename F>
void each_of_key(std::string_view key, F&& visit) {
  std::size_t from = key.find('/');
  std::string name, value;
  while (from != std::string_view::npos) {
    const std::size_t next = key.find('/', from + 1);
    const std::string_view part = key.substr(from + 1, next == std::string_view::npos ? next : next - from - 1);
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      value += fmt::format("/{}", part);
    } else {
      if (!name.empty()) visit(name, value);
      name = part.substr(0, equals);
      value = part.substr(equals + 1);
    }
    from = next;
  }
  if (!name.empty()) visit(name, value);
}

// Equal for protocols that differ in the batch alone.
std::string protocol_signature(const Record& record) {
  if (!record.protocol.is_object()) return protocol_of(record);
  const auto has = [&](std::string_view name) { return record.protocol.contains(std::string(name)); };
  if (std::none_of(batch_fields.begin(), batch_fields.end(), has)) return protocol_of(record);
  Json rest = Json::object();
  for (const auto& [name, value] : record.protocol.items())
    if (!within(batch_fields, name)) rest[name] = value;
  return protocol_hash(rest);
}

std::map<std::string, std::string> bound_labels(const Record& record) {
  std::map<std::string, std::string> bound;
  for (const auto& [name, value] : record.labels) {
    if (within(free_labels, name)) continue;
    // Which kernels a library takes follows from the shapes of a rank's batch.
    if (name == "implementation" && record.family != "collective") continue;
    bound.emplace(name, value);
  }
  return bound;
}

std::string protocol_difference(const Record& own, const Record& there) {
  const auto fields = [](const Record& record) {
    std::map<std::string, std::string> all;
    if (record.protocol.is_object())
      for (const auto& [name, value] : record.protocol.items())
        if (name != "hash" && !within(batch_fields, name)) all[name] = text_of(value);
    return all;
  };
  const auto mine = fields(own), others = fields(there);
  std::vector<std::string> parts;
  const auto value_in = [](const std::map<std::string, std::string>& all, const std::string& name) {
    const auto found = all.find(name);
    return found == all.end() ? std::string("not said") : found->second;
  };
  std::set<std::string> names;
  for (const auto& [name, value] : mine) names.insert(name);
  for (const auto& [name, value] : others) names.insert(name);
  for (const std::string& name : names)
    if (value_in(mine, name) != value_in(others, name))
      parts.push_back(fmt::format("{} {}, there {}", name, value_in(mine, name), value_in(others, name)));
  return parts.empty() ? "" : fmt::format(" ({})", fmt::join(parts, "; "));
}

std::string label_difference(const Record& own, const Record& there) {
  const auto mine = bound_labels(own), others = bound_labels(there);
  std::set<std::string> names;
  for (const auto& [name, value] : mine) names.insert(name);
  for (const auto& [name, value] : others) names.insert(name);
  std::vector<std::string> parts;
  for (const std::string& name : names) {
    const auto a = mine.find(name), b = others.find(name);
    const std::string left = a == mine.end() ? "not said" : a->second;
    const std::string right = b == others.end() ? "not said" : b->second;
    if (left != right) parts.push_back(fmt::format("{} {}, there {}", name, left, right));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

// What kind of device a rank had: a name that only numbers it ("cuda:3", "gpu0", a UUID) says no more than that.
std::string device_kind(const std::string& name) {
  static const std::regex numbered("(cuda|gpu|cpu|xpu|hip|device|rank)[ :#_-]*[0-9]+", std::regex::icase);
  static const std::regex uuid("(GPU|MIG)-[0-9a-f-]{8,}", std::regex::icase);
  std::smatch match;
  return std::regex_match(name, match, numbered) || std::regex_match(name, match, uuid) ? match[1].str() : name;
}

std::string or_unknown(const std::string& text) { return text.empty() ? "not said" : text; }

}  // namespace

std::string configuration(const Record& record, std::span<const std::string_view> left_out) {
  std::map<std::string, std::string> all;
  each_of_key(record.key, [&](const std::string& name, const std::string& value) { all[name] = value; });
  if (record.params.is_object())
    for (const auto& [name, value] : record.params.items()) all[name] = text_of(value);
  std::string text = record.family;
  if (all.empty()) text += "\n" + record.key;
  for (const auto& [name, value] : all)
    if (!within(left_out, name)) text += fmt::format("\n{}={}", name, value);
  return text;
}

std::string label(const Record& record, const std::string& name) {
  const auto found = record.labels.find(name);
  return found == record.labels.end() ? std::string() : found->second;
}

Likenesses::Likenesses(const RunSet& runs) {
  hardware_.reserve(runs.runs().size());
  for (const RunData& run : runs.runs()) hardware_.push_back(machine_of(run).name);
}

Likeness Likenesses::of(const Entry& entry) const {
  const Record& record = *entry.record;
  std::set<std::string> devices;
  for (const RankResult& rank : record.ranks)
    if (!rank.device.empty()) {
      const auto [kind, fresh] = kinds_.try_emplace(rank.device);
      if (fresh) kind->second = device_kind(rank.device);
      devices.insert(kind->second);
    }
  const std::string& machine = hardware_[entry.run_index];
  std::string hardware = machine;
  for (const std::string& device : devices)
    if (machine.find(device) == std::string::npos) hardware += (hardware.empty() ? "" : ", ") + device;
  std::string labels;
  for (const auto& [name, value] : bound_labels(record)) labels += fmt::format("{}={}\n", name, value);
  // A GPU's threads are the device's own affair.
  return {hardware,
          record.device,
          std::to_string(record.seed),
          protocol_signature(record),
          record.device == "cpu" ? label(record, "threads") : std::string(),
          labels};
}

std::string difference(const Entry& entry, const Likeness& own, const Entry& other, const Likeness& there) {
  static constexpr std::array<const char*, aspect_count> names{"hardware",          "device", "seed", "protocol",
                                                               "threads of a rank", "labels"};
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < aspect_count; ++i) {
    if (own[i] == there[i]) continue;
    if (static_cast<Aspect>(i) == Aspect::protocol)
      parts.push_back(fmt::format("other protocol{}", protocol_difference(*entry.record, *other.record)));
    else if (static_cast<Aspect>(i) == Aspect::labels)
      parts.push_back(fmt::format("other label ({})", label_difference(*entry.record, *other.record)));
    else
      parts.push_back(fmt::format("other {} ({}, there {})", names[i], or_unknown(own[i]), or_unknown(there[i])));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string distinction(const Likeness& own, std::span<const Likeness> all) {
  static constexpr std::array<const char*, aspect_count> names{"", "", "seed ", "protocol ", "threads a rank: ", ""};
  std::string text;
  for (std::size_t i = 0; i < aspect_count; ++i) {
    if (std::all_of(all.begin(), all.end(), [&](const Likeness& each) { return each[i] == own[i]; })) continue;
    std::string value = or_unknown(own[i]);
    if (static_cast<Aspect>(i) == Aspect::protocol) value = value.substr(0, 8);
    if (value.ends_with('\n')) value.pop_back();
    std::replace(value.begin(), value.end(), '\n', ' ');
    text += fmt::format(", {}{}", names[i], value);
  }
  return text;
}

std::optional<std::string> unfit(const Record& record) {
  if (const auto why = why_left_out(record)) return why->text();
  if (record.world_ranks < 1) return "its world size is not said";
  return std::nullopt;
}

}  // namespace assay::report::scaling
