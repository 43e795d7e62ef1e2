#include "harness/fitness/accept/majority.h"

#include "harness/core/files.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "harness/fitness/cluster/majority.h"
#include "harness/fitness/floors/learn.h"
#include "harness/json/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

namespace assay::accept {

namespace fs = std::filesystem;

namespace {

// Keeps the records of these hosts alone.
std::vector<RunData> runs_of(const State& state, const std::set<std::string>& hosts, const fs::path& dir) {
  std::vector<RunData> runs;
  const auto stage = state.stages.find("host");
  if (stage == state.stages.end()) return runs;
  for (const Attempt& one : stage->second) {
    std::error_code none;
    if (!fs::exists(dir / one.dir / "records.jsonl", none)) continue;
    RunData run = std::move(read_runs({dir / one.dir}).front());
    std::erase_if(run.records, [&](const Record& record) {
      const auto of = record.identity().hosts;
      return of.size() != 1 || !hosts.contains(of.front());
    });
    if (!run.records.empty()) runs.push_back(std::move(run));
  }
  return runs;
}

// "8 x NVIDIA H100 80GB HBM3, 8 ports of 400 Gb/s" of an expectation.
std::string hardware_text(const Json& expectation) {
  std::vector<std::string> parts;
  const auto add = [&](const Json& one, const char* form, const std::string& what) {
    const Json& count = member(one, "/count/exactly");
    if (count.is_number() && !what.empty())
      parts.push_back(fmt::format(fmt::runtime(form), count.get<int>(), one_line(what, 80)));
  };
  add(member(expectation, "/gpus"), "{} x {}", text_member(expectation, "/gpus/name"));
  for (const Json& rail : member(expectation, "/rails")) add(rail, "{} ports of {}", text_member(rail, "/rate"));
  if (parts.empty()) parts.push_back(one_line(text_member(expectation, "/cpu/model"), 80));
  return joined(parts);
}

// Returns why there is no file; empty if it was written.
std::string write_floors(const State& state, const std::set<std::string>& hosts, const fs::path& dir) {
  if (hosts.empty()) return "no kind of host has a majority";
  const RunSet runs(runs_of(state, hosts, dir), Injected::include);
  if (runs.entries().empty()) return "the stage host has no record of them";
  const fitness::LearnedFloors learned = fitness::learn(runs, {.outliers = fitness::Outliers::leave_out});
  if (learned.floors() == 0) {
    const std::string why = learned.nothing.empty() ? "no figure is steady enough" : learned.nothing;
    return learned.notes.empty() ? why : fmt::format("{}: {}", why, first_few(learned.notes));
  }
  replace_file(dir / "floors.json", dump_document(fitness::floors_of(learned)));
  say("assay: {}: {} of {} cases, of {}\n", (dir / "floors.json").string(),
      plural(static_cast<std::int64_t>(learned.floors()), "floor"), learned.cases.size(),
      plural(static_cast<std::int64_t>(learned.machines.size()), "host"));
  return {};
}

}  // namespace

void write_majority(fitness::Acceptance& table, const fitness::AuditedFleet& audit, const State& state,
                    const fs::path& dir) {
  fitness::Majority majority = fitness::majority_of(audit.hosts);
  if (majority.expectation.is_null())
    say("assay: no expect.json: no host said what it has\n");
  else
    replace_file(dir / "expect.json", dump_document(majority.expectation, 2));
  table.hardware = hardware_text(majority.expectation);
  for (std::string& note : majority.notes) table.notes.push_back(std::move(note));
  for (const fitness::AcceptedHost& host : table.hosts)
    if (host.state() == Fitness::fail || !host.before.empty()) majority.hosts.erase(host.host);
  std::string why_not;
  try {
    why_not = write_floors(state, majority.hosts, dir);
  } catch (const Error& error) {
    why_not = error.what();
  }
  if (!why_not.empty()) say("assay: no floors.json: {}\n", one_line(why_not, 1000));
}

}  // namespace assay::accept
