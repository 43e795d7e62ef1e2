#include "harness/history/store/facts.h"

#include "harness/core/text.h"
#include "harness/json/json.h"
#include "harness/record/content_hash.h"
#include "harness/record/disturbed.h"
#include "harness/statistics/statistics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

namespace assay::store {

namespace {

constexpr double min_share = 1.0 / 32;  // that Others::text tells apart

// Change from one minute to the next, so they explain nothing.
bool fleeting(std::string_view name) {
  constexpr std::array<std::string_view, 15> names = {"schema",
                                                      "memory.available_bytes",
                                                      "memory.swap_used_bytes",
                                                      "load",
                                                      "steal_since_boot",
                                                      "cpu.throttle_events",
                                                      "gpu.throttle_reasons",
                                                      "gpu.clients",
                                                      "gpu.link_gigatransfers",  // lower while it idles
                                                      "gpu.link_generation",
                                                      "gpu.errors.ecc_corrected",
                                                      "gpu.errors.ecc_uncorrected",
                                                      "gpu.errors.nvlink",
                                                      "gpu.errors.nvlink_corrected",
                                                      "gpu.errors.pcie_replays"};
  return std::ranges::find(names, name) != names.end() || name.starts_with("findings");
}

// Leaves by dotted name. Elements of an array of objects (GPUs, caches) give one fact per member: the text that all
// share, else all of them in order.
void flatten(const Json& value, const std::string& name, Facts& facts) {
  if (value.is_null() || fleeting(name)) return;
  if (value.is_object()) {
    for (const auto& [member, inner] : value.items())
      flatten(inner, name.empty() ? member : name + "." + member, facts);
    return;
  }
  if (!value.is_array()) {
    facts[name] = scalar_text(value);
    return;
  }
  const bool plain = std::ranges::none_of(value, [](const Json& one) { return one.is_structured(); });
  if (plain) {
    std::vector<std::string> words;
    for (const Json& one : value) words.push_back(scalar_text(one));
    if (!words.empty()) facts[name] = joined(words, " ");
    return;
  }
  std::map<std::string, std::vector<std::string>> members;
  for (const Json& one : value) {
    Facts own;
    flatten(one, name, own);
    for (auto& [member, text] : own) members[member].push_back(std::move(text));
  }
  for (const auto& [member, texts] : members) {
    const bool same = texts.size() == value.size() && std::set(texts.begin(), texts.end()).size() == 1;
    facts[member] = same ? texts.front() : joined(texts, "; ");
  }
}

// Hashes the run that holds these cases in whatever order.
std::string plan_hash(const Json& cases) {
  std::uint64_t sum = 0;
  for (const Json& one : cases)
    if (const Json& key = member(one, "/key"); key.is_string()) sum += hash64(key.get_ref<const std::string&>());
  return fmt::format("{:016x}", sum);
}

// Empty where no record says.
std::optional<Others> others_of(const RunData& run) {
  std::map<std::string, std::size_t> cases;
  std::vector<double> shares;
  for (const Record& record : run.records) {
    if (!record.outside_cpu || record.status != Status::ok) continue;
    const OutsideCpu& outside = *record.outside_cpu;
    shares.push_back(outside.lost() / std::max(outside.usable, 1));
    std::set<std::string> names;
    for (const OutsideCpu::Process& process : outside.processes)
      if (notable(outside, process.cpus)) names.insert(process.name);
    if (names.empty() && notable(outside, outside.cpus)) names.insert("other containers or the kernel");
    if (notable(outside, outside.steal)) names.insert("steal");
    if (notable(outside, outside.throttled.value_or(0))) names.insert("quota");
    for (const std::string& name : names) ++cases[name];
  }
  if (shares.empty()) return std::nullopt;
  std::erase_if(cases, [&](const auto& one) { return 2 * one.second <= shares.size(); });
  std::vector<std::string> names;
  for (const auto& [name, count] : cases) names.push_back(name);
  return Others{joined(names), median(shares)};
}

bool is_imported(const RunData& run) { return member(run.run, "/source").is_object(); }

}  // namespace

std::string Others::text() const {
  if (names.empty()) return "none";
  const double level = std::exp2(std::round(std::log2(std::clamp(share, min_share, 1.0))));
  return fmt::format("{} ({:.3g} %)", names, 100 * level);
}

Others Others::of(std::string_view text) {
  if (text.empty() || text == "none") return {};
  Others others{std::string(text), min_share};
  const std::size_t bracket = text.rfind(" (");
  if (bracket == text.npos || !text.ends_with(" %)")) return others;
  double percent = 0;
  const char* const digits = text.data() + bracket + 2;
  if (const auto [end, error] = std::from_chars(digits, text.data() + text.size() - 3, percent);
      error != std::errc() || end != text.data() + text.size() - 3 || !(percent >= 0 && percent <= 100))
    return others;
  others.names.resize(bracket);
  others.share = std::max(percent / 100, min_share);
  return others;
}

std::string fact_of(const Facts& facts, const std::string& name) {
  const auto found = facts.find(name);
  return found == facts.end() ? std::string() : found->second;
}

Facts environment_facts(const Json& environment) {
  Facts facts;
  if (!environment.is_object()) return facts;
  for (const auto& [name, value] : environment.items()) {
    flatten(value, name == "gpus" ? "gpu" : name, facts);
    if (name == "gpus" && value.is_array()) facts["gpu.count"] = std::to_string(value.size());
  }
  return facts;
}

Facts facts_of(const RunData& run, const AddOptions& options) {
  Facts facts = options.environment ? *options.environment : environment_facts(member(run.run, "/environment"));
  if (std::string version = text_member(run.run, "/version"); !version.empty())
    facts.try_emplace("assay.version", std::move(version));
  // What was imported as a fact has its own name.
  if (const Json& labels = member(run.run, "/labels"); is_imported(run) && labels.is_object())
    for (const auto& [name, value] : labels.items()) facts[name] = scalar_text(value);
  else
    flatten(labels, "label", facts);
  if (const auto others = others_of(run)) facts["outside_cpu"] = others->text();
  if (std::string name = text_member(run.run, "/plan/name"); !name.empty()) facts["plan.name"] = std::move(name);
  if (const Json& cases = member(run.run, "/plan/cases"); cases.is_array()) facts["plan.cases"] = plan_hash(cases);
  if (const Json& dirty = member(run.run, "/git/dirty"); dirty.is_boolean())
    facts["git.dirty"] = dirty.get<bool>() ? "true" : "false";
  return facts;
}

std::string machine_name(const RunData& run, const Facts& facts, bool by_class) {
  std::vector<std::string> parts;
  if (!by_class) {
    std::set<std::string> hosts;
    std::string words = fact_of(facts, "hostnames");
    for (std::size_t start = 0; start < words.size();) {
      const std::size_t end = std::min(words.find(' ', start), words.size());
      if (end > start) hosts.insert(words.substr(start, end - start));
      start = end + 1;
    }
    // A world of several hosts is a machine of its own.
    for (const Record& record : run.records)
      if (record.world_nodes > 1 || hosts.empty())
        for (const RankResult& rank : record.ranks)
          if (!rank.host.empty()) hosts.insert(rank.host);
    constexpr std::size_t max_hosts = 4;
    if (hosts.size() <= max_hosts)
      parts.push_back(joined(hosts, "+"));
    else
      parts.push_back(fmt::format("{} to {} ({} hosts, {:08x})", *hosts.begin(), *hosts.rbegin(), hosts.size(),
                                  hash64(joined(hosts, "\n")) & 0xFFFFFFFF));
  }
  if (is_imported(run) && !by_class && !parts.front().empty()) return parts.front();  // the importer has named it
  parts.push_back(fact_of(facts, "cpu.name"));
  if (const std::string gpus = fact_of(facts, "gpu.count"); !gpus.empty() && gpus != "0")
    parts.push_back(fmt::format("{} x {}", gpus, facts.contains("gpu.name") ? fact_of(facts, "gpu.name") : "GPU"));
  if (by_class) parts.push_back(fact_of(facts, "cloud.instance_type"));
  std::erase(parts, "");
  return parts.empty() ? "unknown machine" : joined(parts);
}

std::string hardware_of(const Facts& facts) {
  const std::string uuids = fact_of(facts, "gpu.uuid");
  return uuids.empty() ? std::string() : fmt::format("{:016x}", hash64(uuids));
}

std::string text_of(const Facts& facts) { return dump_line(Json(facts)); }

Facts facts_of_text(std::string_view text) {
  const Json json = parse_untrusted(text);
  if (!json.is_object()) throw Error("facts that are no object");
  Facts facts;
  for (const auto& [name, value] : json.items())
    if (value.is_string()) facts[name] = value.get<std::string>();
  return facts;
}

}  // namespace assay::store
