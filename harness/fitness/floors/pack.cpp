#include "harness/fitness/floors/pack.h"

#include "harness/archive/tar.h"
#include "harness/core/files.h"
#include "harness/core/secrets.h"
#include "harness/core/sha256.h"
#include "harness/core/text.h"
#include "harness/json/masked.h"
#include "harness/json/members.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace assay::fitness {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view pack_kind = "assay check pack";
constexpr const char* manifest_name = "manifest.json";
constexpr const char* sums_name = "SHA256SUMS";

struct ManifestRun {
  std::string folder, id, version, build_id;
  std::optional<std::string> sha256 = {};  // of the program that measured, known if it is the one that judged

  static void members(auto& self, auto& io) {
    io("folder", self.folder), io("id", self.id), io("version", self.version), io("build_id", self.build_id);
    io("sha256", self.sha256);
  }
};

struct Manifest {
  int schema = 0;
  std::string kind;
  std::string floors;  // its file
  bool injected = false;
  int exit_code = 0;
  Judge judged_by;
  std::vector<ManifestRun> runs;

  static void members(auto& self, auto& io) {
    io.required("schema", self.schema), io.required("kind", self.kind), io.required("floors", self.floors);
    io.required("injected", self.injected), io.required("exit_code", self.exit_code);
    io.required("judged_by", self.judged_by), io.required("runs", self.runs);
  }
};

// "runs/02/NAME": unpacked, a shell's runs/*/* gives them in this order.
std::string folder_of(std::size_t run, std::size_t runs, const std::string& name) {
  return fmt::format("runs/{:0{}}/{}", run + 1, std::to_string(runs).size(), name);
}

std::string floors_path(const std::string& name) { return "floors/" + name; }

// As sha256sum writes it, so that `sha256sum -c SHA256SUMS` checks an unpacked archive.
std::string sums_line(const TarMember& member) {
  return fmt::format("{}  {}\n", sha256_hex(member.bytes), member.name);
}

std::string sums_of(std::vector<TarMember> members) {
  std::ranges::sort(members, [](const auto& a, const auto& b) { return a.name < b.name; });
  std::string sums;
  for (const TarMember& member : members)
    if (member.name != sums_name) sums += sums_line(member);
  return sums;
}

ManifestRun describe(const PackedRun& run, std::string folder, const Judge& judge) {
  const Json json = parse_untrusted(run.files.at("run.json"));
  ManifestRun described{std::move(folder), text_member(json, "/id"), text_member(json, "/version"),
                        text_member(json, "/build_id")};
  if (!judge.build_id.empty() && described.build_id == judge.build_id) described.sha256 = judge.sha256;
  return described;
}

std::string manifest_of(const Pack& pack) {
  Manifest manifest;
  manifest.schema = pack.schema;
  manifest.kind = pack_kind;
  manifest.floors = floors_path(pack.floors_name);
  manifest.injected = pack.injected;
  manifest.exit_code = static_cast<int>(pack.verdict.code);
  manifest.judged_by = pack.judge;
  for (std::size_t i = 0; i < pack.runs.size(); ++i)
    manifest.runs.push_back(describe(pack.runs[i], folder_of(i, pack.runs.size(), pack.runs[i].name), pack.judge));
  return dump_document(json_of(manifest));
}

using Files = std::map<std::string, std::string>;

std::string take(Files& files, const std::string& name) {
  const auto node = files.extract(name);
  if (node.empty()) throw Error(fmt::format("{} is missing", in_quotes(name, 400)));
  return std::move(node.mapped());
}

// The files below a folder, by their names in it.
Files take_folder(Files& files, const std::string& folder) {
  Files taken;
  const std::string start = folder + "/";
  for (auto at = files.lower_bound(start); at != files.end() && at->first.starts_with(start); at = files.erase(at))
    taken.emplace(at->first.substr(start.size()), std::move(at->second));
  for (const char* needed : {"run.json", "records.jsonl"})
    if (!taken.contains(needed)) throw Error(fmt::format("{} is missing", in_quotes(start + needed, 400)));
  return taken;
}

void check_sums(const std::vector<TarMember>& members) {
  const auto sums = std::ranges::find_if(members, [](const auto& one) { return one.name == sums_name; });
  if (sums == members.end()) throw Error(fmt::format("{} is missing", sums_name));
  std::set<std::string_view> lines;
  for (std::string_view rest = sums->bytes; !rest.empty();) {
    const std::size_t length = std::min(rest.find('\n'), rest.size() - 1) + 1;
    lines.insert(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  for (const TarMember& member : members)
    if (member.name != sums_name && !lines.contains(sums_line(member)))
      throw Error(fmt::format("{} is not the file whose SHA-256 stands in {}", in_quotes(member.name, 400), sums_name));
}

Pack pack_of(std::vector<TarMember> members) {
  Files files;
  for (TarMember& member : members) files.emplace(std::move(member.name), std::move(member.bytes));
  const auto manifest = read_text<Manifest>(take(files, manifest_name));
  if (manifest.schema < 1 || manifest.schema > pack_schema || manifest.kind != pack_kind)
    throw Error(fmt::format("{} is not of \"{}\", schema 1 to {}", manifest_name, pack_kind, pack_schema));
  const auto last_part = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
  Pack pack;
  pack.schema = manifest.schema;
  pack.floors_name = last_part(manifest.floors);
  pack.floors = take(files, floors_path(pack.floors_name));
  pack.injected = manifest.injected;
  pack.judge = manifest.judged_by;
  pack.verdict = {static_cast<ExitCode>(manifest.exit_code), take(files, "verdict.txt"), take(files, "verdict.json"),
                  take(files, "verdict.xml")};
  for (const ManifestRun& run : manifest.runs)
    pack.runs.push_back({last_part(run.folder), take_folder(files, run.folder)});
  return pack;
}

bool alike(std::optional<double> a, std::optional<double> b) {
  constexpr double rounding = 1e-12;  // of another compiler's arithmetic
  if (!a || !b) return !a && !b;
  return *a == *b || std::abs(*a - *b) <= rounding * std::abs(*a);
}

bool alike(const std::optional<Interval>& a, const std::optional<Interval>& b) {
  if (!a || !b) return !a && !b;
  return alike(a->low, b->low) && alike(a->high, b->high);
}

// Masks the secrets of a run that an older build wrote; later builds never store them.
std::string masked_lines(std::string text) {
  if (!holds_secret(text)) return text;
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out += masked_line(std::string_view(text).substr(at, end - at));
    if (end < text.size()) out += '\n';
    at = end + 1;
  }
  return out;
}

std::string shown(const Metric& metric) {
  if (!metric.value) return "unknown";
  return fmt::format("{}{}", *metric.value,
                     metric.ci95 ? fmt::format(" [{}, {}]", metric.ci95->low, metric.ci95->high) : "");
}

}  // namespace

PackedRun pack_run(const fs::path& dir) {
  PackedRun run{dir.filename().string(), {}};
  (void)run_of_files(dir, [&](const std::string& name) -> const std::string& {
    std::string& text = run.files[name];
    text = name == "run.json" ? masked_line(read_run_json(dir)) : read_whole(dir / name, TarLimits{}.bytes);
    if (name == "records.jsonl") text = masked_lines(std::move(text));
    return text;
  });
  return run;
}

std::vector<RunData> runs_of(const Pack& pack, const std::string& name) {
  std::vector<RunData> runs;
  for (std::size_t i = 0; i < pack.runs.size(); ++i) {
    const Files& files = pack.runs[i].files;
    const auto file = [&](const std::string& wanted) -> const std::string& {
      const auto found = files.find(wanted);
      if (found == files.end()) throw Error(fmt::format("{} is missing", in_quotes(wanted, 400)));
      return found->second;
    };
    try {
      runs.push_back(run_of_files(folder_of(i, pack.runs.size(), pack.runs[i].name), file));
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", name, one_line(error.what(), 1000)));
    }
  }
  return runs;
}

CheckRules rules_of(int schema) { return {.whole_runs = schema >= 2}; }

std::string pack_bytes(const Pack& pack) {
  std::vector<TarMember> members{{manifest_name, manifest_of(pack)},
                                 {floors_path(pack.floors_name), pack.floors},
                                 {"verdict.txt", pack.verdict.text},
                                 {"verdict.json", pack.verdict.json},
                                 {"verdict.xml", pack.verdict.junit}};
  for (std::size_t i = 0; i < pack.runs.size(); ++i)
    for (const auto& [name, bytes] : pack.runs[i].files)
      members.push_back({folder_of(i, pack.runs.size(), pack.runs[i].name) + "/" + name, bytes});
  members.push_back({sums_name, sums_of(members)});
  return tar_bytes(std::move(members));
}

Pack parse_pack(std::string_view bytes, const std::string& name) {
  if (!is_tar(bytes)) throw UsageError(fmt::format("{} is neither a run directory nor a pack of assay check", name));
  std::vector<TarMember> members = parse_tar(bytes, name);
  if (std::ranges::none_of(members, [](const auto& one) { return one.name == manifest_name; }))
    throw UsageError(fmt::format("{} is no pack of assay check: it has no {}", name, manifest_name));
  Pack pack;
  std::string again;
  try {
    check_sums(members);
    pack = pack_of(std::move(members));
    again = pack_bytes(pack);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", name, error.what()));
  }
  if (again == bytes) return pack;
  const auto at = std::mismatch(bytes.begin(), bytes.end(), again.begin(), again.end()).first - bytes.begin();
  throw Error(fmt::format("{}: byte {} is not as assay check writes it", name, at));
}

Recomputed recompute(const CheckResult& result) {
  std::set<std::pair<const Record*, std::string>> known;
  for (const Entry& entry : result.runs->entries()) {
    const std::vector<double>& samples = entry.record->samples.values;
    const bool numbers = std::ranges::all_of(samples, [](double value) { return std::isfinite(value); });
    std::optional<Summary> summary;
    for (std::size_t i = 0; i < entry.record->metrics.size(); ++i) {
      const Metric& recorded = entry.record->metrics[i];
      if (!recorded.work) continue;
      if (!summary) summary = samples.empty() || !numbers ? Summary{} : summarize(samples);
      Metric computed = recorded;
      set_from_samples(computed, numbers ? samples.size() : 0, *summary);
      if (!alike(computed.value, recorded.value) || !alike(computed.ci95, recorded.ci95))
        throw Error(fmt::format("{}: {} is {}, but its samples give {}", one_line(entry.place(), 400),
                                one_line(recorded.name, 80), shown(recorded), shown(computed)));
      known.emplace(entry.record, fmt::format("/metrics/{}/value", i));
    }
  }
  Recomputed counts;
  std::set<std::pair<const Record*, std::string>> judged;
  for (const FloorResult& floor : result.results)
    for (const Judgement& each : floor.records) {
      if (!each.value || !judged.emplace(each.entry.record, each.pointer).second) continue;
      ++counts.judged;
      if (known.contains({each.entry.record, each.pointer}))
        ++counts.from_samples;
      else
        counts.others.insert(floor.floor->metric);
    }
  return counts;
}

void require_same_verdict(const Pack& pack, const VerdictFiles& now, const Judge& judge, const std::string& name) {
  const VerdictFiles& then = pack.verdict;
  const char* differs = then.json != now.json     ? "verdict.json"
                        : then.text != now.text   ? "verdict.txt"
                        : then.junit != now.junit ? "verdict.xml"
                        : then.code != now.code   ? "the exit code"
                                                  : nullptr;
  if (!differs) return;
  if (pack.judge.build_id == judge.build_id && pack.judge.version == judge.version)
    throw Error(fmt::format("{}: {} is not what its runs and floors give", name, differs));
  throw Error(fmt::format(
      "{}: Assay {} (build {}) judged it, and this one, {} (build {}), judges otherwise: {} differs", name,
      one_line(pack.judge.version, 80), one_line(pack.judge.build_id, 80), judge.version, judge.build_id, differs));
}

}  // namespace assay::fitness
