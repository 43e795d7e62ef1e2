#include "reports/scaling/likeness.h"

#include "harness/core/text.h"
#include "harness/json/json.h"
#include "harness/runs/groups.h"
#include "harness/runs/machine.h"
#include "harness/runs/why_left_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

namespace assay::report::scaling {

namespace {

constexpr std::array<std::string_view, 3> batch_fields{"global_batch", "micro_batch", "accumulate"};

// Which kernels a library chooses depends on the shapes of a rank's batch; threads are an aspect of their own.
constexpr std::array<std::string_view, 2> choices_of_size{"threads", "implementation"};

Scope scope_of(const Record& record, const std::set<std::string>& labels) {
  const std::span<const std::string_view> choices(choices_of_size);
  return {.free_protocol = batch_fields,
          .free_choices = record.family == "collective" ? choices.first(1) : choices,
          .bound_labels = &labels};
}

bool within(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
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

// All records of a series have the same libraries, and the same value of each label that the user gave.
std::set<std::string> binding_labels(const RunData& run) {
  std::set<std::string> names{"injected", "libraries"};
  for (const auto& [name, value] : labels_of(run)) names.insert(name);
  return names;
}

// "max_seconds 3 instead of 30"
std::string text_of(const Difference& one) {
  return fmt::format("{} {} instead of {}", one.name, one.own.value_or("none"), one.other.value_or("none"));
}

// A rank's kind of device: of a name that only numbers it ("cuda:3", "gpu0", a UUID), the part before the number.
std::string device_kind(const std::string& name) {
  static const std::regex numbered("(cuda|gpu|cpu|xpu|hip|device|rank)[ :#_-]*[0-9]+", std::regex::icase);
  static const std::regex uuid("(GPU|MIG)-[0-9a-f-]{8,}", std::regex::icase);
  std::smatch match;
  return std::regex_match(name, match, numbered) || std::regex_match(name, match, uuid) ? match[1].str() : name;
}

std::string or_unknown(const std::string& text) { return text.empty() ? "unknown" : text; }

}  // namespace

std::string configuration(const Record& record, std::span<const std::string_view> left_out) {
  std::map<std::string, std::string> all;
  each_of_key(record.key, [&](const std::string& name, const std::string& value) { all[name] = value; });
  if (record.params.is_object())
    for (const auto& [name, value] : record.params.items()) all[name] = scalar_text(value);
  std::string text = record.family;
  if (all.empty()) text += "\n" + record.key;
  for (const auto& [name, value] : all)
    if (!within(left_out, name)) text += fmt::format("\n{}={}", name, value);
  return text;
}

Likenesses::Likenesses(const RunSet& runs) {
  hardware_.reserve(runs.runs().size());
  for (const RunData& run : runs.runs()) {
    hardware_.push_back(machine_of(run).name);
    labels_.push_back(binding_labels(run));
  }
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
  const Scope scope = scope_of(record, labels_[entry.run_index]);
  std::string bound;
  for (const auto& [name, value] : bound_attributes(record, scope)) bound += fmt::format("{}={}\n", name, value);
  return {hardware,
          record.device,
          std::to_string(record.seed),
          protocol_signature(record, scope),
          record.device == "cpu" ? record.attribute("threads").value_or("") : std::string(),
          bound};
}

std::string difference(const Entry& entry, const Likeness& own, const Entry& other, const Likeness& theirs) {
  static constexpr std::array<const char*, aspect_count> names{"hardware", "device",           "seed",
                                                               "protocol", "threads per rank", "labels"};
  std::set<std::string> labels = binding_labels(*entry.run);
  labels.merge(binding_labels(*other.run));
  std::vector<std::string> protocol, bound, parts;
  for (const Difference& one : differences(*entry.record, *other.record, scope_of(*entry.record, labels)))
    if (one.name != "hash") (one.protocol ? protocol : bound).push_back(text_of(one));
  for (std::size_t i = 0; i < aspect_count; ++i) {
    if (own[i] == theirs[i]) continue;
    if (static_cast<Aspect>(i) == Aspect::protocol)
      parts.push_back("different protocol" + (protocol.empty() ? "" : fmt::format(" ({})", fmt::join(protocol, "; "))));
    else if (static_cast<Aspect>(i) == Aspect::labels)
      parts.push_back(fmt::format("different label ({})", fmt::join(bound, "; ")));
    else
      parts.push_back(
          fmt::format("different {} ({} instead of {})", names[i], or_unknown(own[i]), or_unknown(theirs[i])));
  }
  return joined(parts, "; ");
}

namespace {

// Of a machine's name or of labels only what not all have: "AMD Zen 5", not all that both machines are.
std::string own_parts(std::size_t aspect, const Likeness& own, std::span<const Likeness> all) {
  const bool labels = static_cast<Aspect>(aspect) == Aspect::labels;
  if (!labels && static_cast<Aspect>(aspect) != Aspect::hardware) return own[aspect];
  const std::string separator = labels ? "\n" : ", ";
  const auto parts_of = [&](const std::string& text) {
    std::vector<std::string> parts;
    for (std::size_t from = 0; from < text.size();) {
      const std::size_t to = std::min(text.find(separator, from), text.size());
      if (to > from) parts.push_back(text.substr(from, to - from));
      from = to + separator.size();
    }
    return parts;
  };
  std::vector<std::string> kept = parts_of(own[aspect]);
  const std::vector<std::string> whole = kept;
  std::erase_if(kept, [&](const std::string& part) {
    return std::ranges::all_of(all, [&](const Likeness& each) {
      const std::vector<std::string> others = parts_of(each[aspect]);
      return std::ranges::find(others, part) != others.end();
    });
  });
  return fmt::format("{}", fmt::join(kept.empty() ? whole : kept, labels ? " " : ", "));
}

}  // namespace

std::string distinction(const Likeness& own, std::span<const Likeness> all) {
  static constexpr std::array<const char*, aspect_count> names{"", "", "seed ", "protocol ", "threads per rank: ", ""};
  std::string text;
  for (std::size_t i = 0; i < aspect_count; ++i) {
    if (std::ranges::all_of(all, [&](const Likeness& each) { return each[i] == own[i]; })) continue;
    std::string value = or_unknown(own_parts(i, own, all));
    if (static_cast<Aspect>(i) == Aspect::protocol) value = value.substr(0, 8);
    text += fmt::format(", {}{}", names[i], value);
  }
  return text;
}

std::optional<std::string> unfit(const Record& record) {
  if (const auto why = why_left_out(record)) return why->text();
  if (record.world_ranks < 1) return "its world size is unknown";
  return std::nullopt;
}

}  // namespace assay::report::scaling
