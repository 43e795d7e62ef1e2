#include "reports/acceptance/accept.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/fitness/floors/words.h"
#include "harness/json/members.h"
#include "harness/runs/csv.h"
#include "harness/runs/figures.h"
#include "reports/hosts/hosts.h"
#include "reports/model/cells.h"
#include "reports/model/fitness.h"
#include "reports/model/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

namespace assay::report {

using namespace fitness;

namespace {

constexpr std::size_t max_hosts_shown = 20, max_switches_shown = 5, max_notes_shown = 5;  // on the last screen

// A check that the level requires and that did not run.
bool lacks(const AcceptedHost& host, const HostCheck& check) {
  return check.required && check.state == Fitness::unknown && host.state() != Fitness::fail;
}

std::string word_of(Fitness state) { return std::string(name_of(state, {"pass", "not run", "inconclusive", "FAIL"})); }

const HostCheck& check_of(const AcceptedHost& host, std::string_view name) {
  static const HostCheck none;
  const auto found = host.checks.find(name);
  return found == host.checks.end() ? none : found->second;
}

// "3.1 TFLOP/s; required: at least 5.9 TFLOP/s"; empty if no figure decided.
std::string figure_text(const HostCheck& check) {
  if (!check.figure) return {};
  std::string text = format_quantity(*check.figure, check.unit);
  if (check.floor)
    text += fmt::format("; required: {} {}", check.at_most ? "at most" : "at least",
                        format_quantity(*check.floor, check.unit));
  return text;
}

// Why a check passed or failed: the evidence, else whose figure it is.
std::string reason_text(const HostCheck& check) {
  return one_line(with_titles(check.evidence.empty() ? check.of : joined(check.evidence, "; ")), 400);
}

// Those that failed first, then those of which nobody is sure.
std::vector<const AcceptedHost*> worst_first(const Acceptance& acceptance) {
  std::vector<const AcceptedHost*> hosts;
  for (const AcceptedHost& host : acceptance.hosts) hosts.push_back(&host);
  std::ranges::stable_sort(hosts, std::greater(), [](const AcceptedHost* host) {
    const Fitness state = host->state();
    return state == Fitness::fail ? 2 : state == Fitness::unsure ? 1 : 0;
  });
  return hosts;
}

Table main_table(const Acceptance& acceptance) {
  Table table{"hosts", "", {{"host"}}, {}};
  for (const std::string_view name : accept_checks) table.columns.push_back({std::string(name), std::string(name)});
  for (const AcceptedHost* const one : worst_first(acceptance)) {
    const AcceptedHost& host = *one;
    std::vector<Cell> row = {{one_line(host.host, 80), host.host, tone_of(host.state())}};
    for (const std::string_view name : accept_checks) {
      const HostCheck& check = check_of(host, name);
      row.push_back({word_of(check.state), name_of(check.state, check_words),
                     lacks(host, check) ? Tone::warn : tone_of(check.state)});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

// "GPU 5 (0000:5d:00.0), port mlx5_3"; empty if nothing is to be blamed.
std::string culprits_text(const AcceptedHost& host) {
  std::vector<std::string> texts;
  for (const FailedPart& one : culprits_of(host)) texts.push_back(text_of(one, host));
  return one_line(joined(texts), 200);
}

// What decided each check, for the page.
Table checks_table(const Acceptance& acceptance) {
  Table table{"accept-checks", "", {{"host"}, {"check"}, {"state"}, {"figure"}, {"reason"}}, {}};
  for (const AcceptedHost* const one : worst_first(acceptance))
    for (const std::string_view name : accept_checks) {
      const AcceptedHost& host = *one;
      const HostCheck& check = check_of(host, name);
      if (check.state == Fitness::unknown) continue;
      table.rows.push_back({{one_line(host.host, 80)},
                            {std::string(name)},
                            {word_of(check.state), name_of(check.state, check_words), tone_of(check.state)},
                            {figure_text(check), json_of(check.figure)},
                            {reason_text(check)}});
    }
  return table;
}

// What was required and not seen, before the table.
Section missing_section(const Acceptance& acceptance) {
  Section section{"not-measured", "", {}};
  for (const std::string& line : unmeasured_lines(acceptance.not_measured))
    section.blocks.push_back(Text{line, Tone::warn});
  List floors{"not-measured", {}};
  for (const UnmeasuredFloor& one : acceptance.not_measured)
    floors.items.push_back(
        fmt::format("{}{}: {}", one.floor.required ? "required: " : "", floor_title(one.floor), one.reason));
  if (!floors.items.empty()) section.blocks.push_back(std::move(floors));
  for (const std::string_view name : accept_checks) {
    std::vector<std::string> hosts;
    std::string why;
    for (const AcceptedHost& host : acceptance.hosts)
      if (const HostCheck& check = check_of(host, name); lacks(host, check)) {
        hosts.push_back(host.host);
        if (why.empty() && !check.evidence.empty()) why = ": " + one_line(check.evidence.front());
      }
    if (!hosts.empty())
      section.blocks.push_back(Text{fmt::format("required, but not run: {}{} ({})", name, why,
                                                hosts.size() == acceptance.hosts.size() ? std::string("all hosts")
                                                                                        : one_line(joined(hosts), 400)),
                                    Tone::warn});
  }
  return section;
}

std::vector<std::string> lines_of(const AcceptedHost& host) {
  std::vector<std::string> lines;
  for (const std::string_view name : accept_checks) {
    const HostCheck& check = check_of(host, name);
    if (lacks(host, check)) lines.push_back(fmt::format("{}: required, but not run", name));
    if (check.state != Fitness::fail && check.state != Fitness::unsure) continue;
    for (const std::string& line : check.evidence)
      lines.push_back(fmt::format("{}: {}", name, one_line(with_titles(line), 400)));
    if (check.evidence.empty())
      lines.push_back(fmt::format("{}: {} {}", name, one_line(with_titles(check.of), 200), figure_text(check)));
  }
  // Lists only those of several GPUs that are to blame.
  const std::vector<FailedPart> culprits = culprits_of(host);
  const auto blamed = [&](const AuditedGpu& gpu) {
    return std::ranges::any_of(culprits, [&](const FailedPart& one) {
      return one.part == "gpu" && !one.device.empty() && text_of(one, host) == text_of({"gpu", gpu.pci}, host);
    });
  };
  for (const AuditedGpu& gpu : host.gpus)
    if (host.gpus.size() == 1 || blamed(gpu))
      lines.push_back(fmt::format("GPU {}{}{}{}", gpu.uuid.empty() ? "of unknown UUID" : one_line(gpu.uuid, 80),
                                  gpu.slot.empty() ? "" : ", slot " + one_line(gpu.slot, 80),
                                  gpu.pci.empty() ? "" : ", " + one_line(gpu.pci, 80),
                                  gpu.serial.empty() ? "" : ", serial " + one_line(gpu.serial, 80)));
  for (const std::string& line : host.before) lines.push_back("failed before: " + one_line(line, 400));
  for (const std::string& xid : host.xids) lines.push_back(one_line(xid, 200));
  for (const VendorCommand& one : host.commands) lines.push_back(fmt::format("run: {}  ({})", one.command, one.why));
  if (!host.evidence_file.empty()) lines.push_back("to send: " + host.evidence_file);
  return lines;
}

Table figures_table(const Acceptance& acceptance) {
  Table table{"figures", "", {{"check"}, {"case"}, {"metric"}, {"figure"}}, {}};
  for (const WorldFigure& one : acceptance.figures)
    table.rows.push_back({{one.check},
                          {one_line(with_titles(one.key), 200), one.key},
                          {one_line(one.metric, 80)},
                          {format_quantity(one.value, one.unit), json_of(one.value)}});
  return table;
}

// The collectives of each rail by itself: a row for each case.
Table rail_groups_table(const Acceptance& acceptance) {
  Table table{"rail-groups", "All hosts at once on each rail: busbw", {{"case"}}, {}};
  std::map<std::string, std::vector<const RailGroup*>> cases;
  std::size_t rails = 0;
  for (const RailGroup& one : acceptance.rails.groups) {
    cases[one.key].push_back(&one);
    rails = std::max(rails, one.rail + 1);
  }
  for (std::size_t rail = 0; rail < rails; ++rail)
    table.columns.push_back(right(fmt::format("rail_{}", rail), fmt::format("rail {}", rail)));
  for (const auto& [key, groups] : cases) {
    std::vector<Cell>& row = table.rows.emplace_back(1 + rails, no_cell());
    row.front() = {one_line(with_titles(key), 200), key};
    for (const RailGroup* const one : groups) {
      row[1 + one->rail] = {format_quantity(one->busbw, "B/s"), json_of(one->busbw),
                            one->slow ? Tone::bad : Tone::plain};
    }
  }
  return table;
}

std::string counts_text(const Acceptance& acceptance) {
  const auto count = [&](Fitness state) {
    return std::ranges::count_if(acceptance.hosts, [state](const AcceptedHost& host) { return host.state() == state; });
  };
  const std::size_t floors = acceptance.not_measured.size();
  return fmt::format("hosts passed: {} · failed: {} · inconclusive: {}{}{}{}{}", count(Fitness::pass),
                     count(Fitness::fail), count(Fitness::unsure),
                     count(Fitness::unknown) > 0 ? fmt::format(" · not judged: {}", count(Fitness::unknown)) : "",
                     acceptance.switches.empty() ? "" : fmt::format(" · slow switches: {}", acceptance.switches.size()),
                     floors > 0 ? " · not measured: " + plural(floors, "floor") : "",
                     acceptance.finished ? "" : " · not complete");
}

std::string headline_of(const Acceptance& acceptance) {
  const Fitness state = acceptance.fitness();
  return fmt::format("{}{} · {} · {}{} · {}", plural(acceptance.hosts.size(), "host"),
                     acceptance.hardware.empty() ? "" : " of " + one_line(acceptance.hardware, 200),
                     one_line(acceptance.level, 80), format_seconds(acceptance.seconds),
                     acceptance.floors.empty() ? "" : " · floors " + one_line(acceptance.floors, 80),
                     !acceptance.finished     ? "NOT COMPLETE"
                     : state == Fitness::pass ? "PASSED"
                                              : "NOT PASSED");
}

// The check that a host failed first, or of which nobody is sure.
std::pair<std::string_view, const HostCheck*> decisive(const AcceptedHost& host) {
  for (const Fitness wanted : {Fitness::fail, Fitness::unsure, Fitness::unknown})
    for (const std::string_view name : accept_checks)
      if (const HostCheck& check = check_of(host, name);
          check.state == wanted && (wanted != Fitness::unknown || lacks(host, check)))
        return {name, &check};
  return {};
}

// "571 TFLOP/s; required: at least 690 TFLOP/s: gemm/dtype=bf16/..." or what else was seen.
std::string short_reason(const AcceptedHost& host) {
  const auto [name, check] = decisive(host);
  if (!check) return {};
  if (check->state == Fitness::unknown) return fmt::format("{}: required, but not run", name);
  const bool misses = check->figure && check->floor && check->broken.empty() &&
                      (check->at_most ? *check->figure > *check->floor : *check->figure < *check->floor);
  return one_line(
      fmt::format("{}: {}", name, misses ? figure_text(*check) + ": " + with_titles(check->of) : reason_text(*check)),
      200);
}

// What to do about a host, in a word or two.
std::string next_for(const AcceptedHost& host) {
  if (const auto [name, check] = decisive(host); check && check->state == Fitness::unknown)
    return "run what is required";
  if (host.state() != Fitness::fail) return "measure again: --again " + host.host;
  const std::vector<FailedPart> culprits = culprits_of(host);
  const auto has = [&](std::string_view part) {
    return std::ranges::find(culprits, part, &FailedPart::part) != culprits.end();
  };
  if (has("cable") || has("port")) return "cable, then port";
  if (culprits.empty() || has("host") || has("pair")) return "look at the host";
  return "vendor: evidence";
}

Table screen_table(const Acceptance& acceptance) {
  Table table{"hosts", "", {{"host"}, {"state", ""}, {"part"}, {"reason", ""}, {"next", ""}}, {}};
  for (const AcceptedHost* const host : worst_first(acceptance)) {
    if (host->state() == Fitness::pass) continue;
    if (table.rows.size() == max_hosts_shown) break;
    table.rows.push_back({{one_line(host->host, 40)},
                          {word_of(host->state()), Json(), tone_of(host->state())},
                          {one_line(culprits_text(*host), 40)},
                          {short_reason(*host)},
                          {"-> " + one_line(next_for(*host), 80)}});
  }
  return table;
}

Json failed_json(const AcceptedHost& host, bool with_serials) {
  Json failed = {{"gpu_uuids", Json::array()}, {"slots", Json::array()},    {"xids", host.xids},
                 {"commands", Json::array()},  {"problems", host.problems}, {"floors", Json::array()}};
  for (const VendorCommand& one : host.commands) failed["commands"].push_back(one.command);
  for (const auto& [name, check] : host.checks)
    for (const MissedFloor& one : check.missed) failed["floors"].push_back(json_of(one));
  if (with_serials) failed["serials"] = Json::array();
  for (const AuditedGpu& gpu : host.gpus) {
    const auto add = [&](const char* list, const std::string& text) { failed[list].push_back(or_null(text)); };
    add("gpu_uuids", gpu.uuid);
    add("slots", gpu.slot.empty() ? gpu.pci : gpu.slot);
    if (with_serials) add("serials", gpu.serial);
  }
  failed["culprits"] = Json::array();
  for (const FailedPart& one : culprits_of(host))
    failed["culprits"].push_back({{"part", one.part}, {"device", or_null(one.device)}, {"text", text_of(one, host)}});
  failed["evidence"] = or_null(host.evidence_file);
  return failed;
}

}  // namespace

Document accept_screen(const Acceptance& acceptance, const std::string& dir) {
  Document document;
  document.headline = headline_of(acceptance);
  Section screen{"accept", "", {Text{counts_text(acceptance), verdict_tone(acceptance.fitness())}}};
  const auto say_line = [&](std::string text, Tone tone = Tone::plain) {
    screen.blocks.push_back(Text{std::move(text), tone});
  };
  for (Block& block : missing_section(acceptance).blocks)
    if (std::holds_alternative<Text>(block)) screen.blocks.push_back(std::move(block));
  Table hosts = screen_table(acceptance);
  const auto bad = static_cast<std::size_t>(
      std::ranges::count_if(acceptance.hosts, [](const AcceptedHost& host) { return host.state() != Fitness::pass; }));
  const std::size_t shown = hosts.rows.size();
  if (shown > 0) screen.blocks.emplace_back(std::move(hosts));
  for (std::size_t i = 0; i < std::min(acceptance.switches.size(), max_switches_shown); ++i)
    say_line(one_line(with_titles(acceptance.switches[i].text()), 300), Tone::bad);
  if (acceptance.switches.size() > max_switches_shown)
    say_line(fmt::format("slow switches that are not shown: {}; accept.html",
                         acceptance.switches.size() - max_switches_shown));
  if (bad > shown) say_line(fmt::format("and {}: accept.html", plural(bad - shown, "more host")));
  if (const std::string power = power_text(acceptance.compared); !power.empty()) say_line(power);
  for (std::size_t i = 0; i < std::min(acceptance.notes.size(), max_notes_shown); ++i)
    say_line("note: " + one_line(acceptance.notes[i], 200));
  if (acceptance.notes.size() > max_notes_shown)
    say_line(fmt::format("and {}: accept.html", plural(acceptance.notes.size() - max_notes_shown, "more note")));
  std::vector<std::string> next;
  if (std::ranges::any_of(acceptance.hosts, [](const auto& host) { return host.state() == Fitness::fail; }))
    next = {fmt::format("sh {}/drain.sh", dir), dir + "/evidence"};
  if (bad < acceptance.hosts.size()) next.push_back(dir + "/passed.txt");
  next.push_back(dir + "/accept.html");
  if (acceptance.finished) say_line("next: " + joined(next, " · "));
  document.sections.push_back(std::move(screen));
  return document;
}

Document accept_document(const Acceptance& acceptance) {
  Document document;
  document.title = "Assay accept";
  document.headline = headline_of(acceptance);
  if (Section missing = missing_section(acceptance); !missing.blocks.empty())
    document.sections.push_back(std::move(missing));
  document.sections.push_back({"accept", "", {main_table(acceptance)}});
  for (const SlowSwitch& one : acceptance.switches)
    document.sections.back().blocks.push_back(Text{one_line(with_titles(one.text()), 600), Tone::bad});
  if (const std::string power = power_text(acceptance.compared); !power.empty())
    document.sections.back().blocks.push_back(Text{power});
  for (const AcceptedHost* const each : worst_first(acceptance)) {
    const AcceptedHost& host = *each;
    const Fitness state = host.state();
    // What was not run anywhere is said above.
    if (host.before.empty() && std::ranges::none_of(host.checks, [](const auto& one) {
          return one.second.state == Fitness::fail || one.second.state == Fitness::unsure;
        }))
      continue;
    const std::string culprits = culprits_text(host);
    document.sections.push_back(
        {"host-" + host.host,
         fmt::format("{}: {}{}", one_line(host.host, 80), word_of(state), culprits.empty() ? "" : ": " + culprits),
         {List{"why", lines_of(host)}}});
  }
  for (const Record& record : acceptance.links) {
    Section section{record.rails.empty() ? "pairs" : "rails", with_titles(record.key), {}};
    for (Table& table : link_tables(record)) section.blocks.emplace_back(std::move(table));
    if (!record.rails.empty() && !acceptance.rails.groups.empty())
      section.blocks.insert(section.blocks.begin() + std::min<std::ptrdiff_t>(1, std::ssize(section.blocks)),
                            rail_groups_table(acceptance));
    document.sections.push_back(std::move(section));
  }
  if (!acceptance.figures.empty()) {
    document.sections.push_back({"figures", "All hosts together", {figures_table(acceptance)}});
  }
  document.sections.push_back({"accept-checks", "What decided each check", {checks_table(acceptance)}});
  if (!acceptance.notes.empty()) document.sections.push_back({"notes", "Notes", {List{"notes", acceptance.notes}}});
  document.verdict = counts_text(acceptance);
  document.tone = verdict_tone(acceptance.fitness());
  return document;
}

Json accept_json(const Acceptance& acceptance, bool with_serials) {
  Json json = {
      {"schema", 1}, {"level", acceptance.level}, {"started", acceptance.started}, {"seconds", acceptance.seconds}};
  json["verdict"] = acceptance.finished ? Json(name_of(acceptance.fitness(), verdict_words)) : Json();
  json["hosts"] = Json::array();
  for (const AcceptedHost& host : acceptance.hosts) {
    Json row = {{"host", host.host}, {"state", name_of(host.state(), check_words)}, {"checks", Json::array()}};
    for (const std::string_view name : accept_checks) {
      const HostCheck& check = check_of(host, name);
      Json one = {{"name", name},
                  {"state", name_of(check.state, check_words)},
                  {"figure", json_of(check.figure)},
                  {"floor", json_of(check.floor)},
                  {"unit", or_null(check.unit)},
                  {"of", or_null(check.of)},
                  {"evidence", check.evidence}};
      if (check.floor) one["bound"] = check.at_most ? "at_most" : "at_least";
      if (!check.culprit.empty()) one["culprit"] = check.culprit;
      if (check.required) one["required"] = true;
      row["checks"].push_back(std::move(one));
    }
    if (!host.before.empty()) row["before"] = host.before;
    if (host.state() == Fitness::fail) row["failed"] = failed_json(host, with_serials);
    json["hosts"].push_back(std::move(row));
  }
  json["not_measured"] = Json::array();
  for (const UnmeasuredFloor& one : acceptance.not_measured) {
    Json floor = {{"floors", one.name}};
    floor.update(floor_json(one.floor));
    floor["reason"] = one.reason;
    json["not_measured"].push_back(std::move(floor));
  }
  json["compared"] = {{"comparisons", acceptance.compared.comparisons},
                      {"false_fails", acceptance_false_fails},
                      {"cases", Json::array()}};
  for (const FleetPower& one : acceptance.compared.cases)
    json["compared"]["cases"].push_back({{"key", or_null(one.key)},
                                         {"metric", or_null(one.metric)},
                                         {"members", one.members},
                                         {"limit", json_of(one.limit)},
                                         {"found", json_of(one.found)}});
  json["switches"] = json_of(acceptance.switches);
  json["rails"] = json_of(acceptance.rails.ports);
  json["rail_groups"] = json_of(acceptance.rails.groups);
  json["figures"] = json_of(acceptance.figures);
  json["notes"] = acceptance.notes;
  return json;
}

std::string accept_csv(const Acceptance& acceptance) {
  std::string text = "host,check,state,of,figure,unit,bound,floor,evidence\n";
  const auto plain = [](const std::optional<double>& value) {
    return value ? fmt::format("{}", *value) : std::string();
  };
  for (const AcceptedHost& host : acceptance.hosts)
    for (const std::string_view name : accept_checks) {
      const HostCheck& check = check_of(host, name);
      const std::string bound = !check.floor ? "" : check.at_most ? "at_most" : "at_least";
      text += fmt::format("{},{},{},{},{},{},{},{},{}\n", csv_cell(host.host), name, name_of(check.state, check_words),
                          csv_cell(check.of), plain(check.figure), csv_cell(check.unit), bound, plain(check.floor),
                          csv_cell(joined(check.evidence, "; ")));
    }
  return text;
}

}  // namespace assay::report
