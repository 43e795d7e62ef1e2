// What an audit says about each host of an acceptance.
#include "reports/acceptance/accept.h"

#include "harness/core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace assay::report {

namespace {

// Facts in which machines that are bought as equal must be equal: what runs on them and what is burnt into them. Others
// (settings, libraries of one user) may have a reason and are only mentioned.
constexpr auto equal_facts =
    std::to_array<std::string_view>({"driver", "driver modules", "cuda", "kernel", "bios", "bios version", "board",
                                     "cpu", "cpus", "nccl", "nics", "nics for gpus", "smt"});
// Of these kinds of facts all: "gpus NVIDIA H100 80GB HBM3", "nic firmware mlx5_0".
constexpr auto equal_kinds = std::to_array<std::string_view>({"gpus ", "nic firmware ", "vbios ", "firmware "});

bool must_be_equal(std::string_view fact) {
  return std::find(equal_facts.begin(), equal_facts.end(), fact) != equal_facts.end() ||
         std::any_of(equal_kinds.begin(), equal_kinds.end(),
                     [&](std::string_view kind) { return fact.starts_with(kind); });
}

// "xid-fatal of 0000:1b:00.0: XID 79 at ..., 2 times (the GPU has fallen off the bus)".
std::string problem_text(const Json& problem) {
  const std::string device = text_member(problem, "/device"), meaning = text_member(problem, "/meaning");
  return fmt::format("{}{}: {}{}", text_member(problem, "/id"), device.empty() ? "" : " of " + device,
                     text_member(problem, "/seen"), meaning.empty() ? "" : " (" + meaning + ")");
}

std::string xid_text(const Json& event) {
  const std::string device = text_member(event, "/device"), time = text_member(event, "/time");
  const double count = number_member(event, "/count").value_or(1);
  return fmt::format("XID {}{}{}{}", number_member(event, "/code").value_or(0), device.empty() ? "" : " of " + device,
                     time.empty() ? "" : " at " + time, count > 1 ? fmt::format(", {} times", count) : "");
}

void read_host(const Json& from, AcceptedHost& host) {
  HostCheck& check = host.checks["audit"];
  const std::string state = text_member(from, "/state");
  if (state != "ok")
    check.note(CheckState::fail,
               fmt::format("{}: {}", state.empty() ? "no answer" : state, text_member(from, "/error")));
  else
    check.note(CheckState::pass, "");
  if (const Json& problems = member(from, "/problems"); problems.is_array())
    for (const Json& problem : problems) {
      const std::string severity = text_member(problem, "/severity");
      if (severity == "fault") {
        check.note(CheckState::fail, problem_text(problem));
        host.problems.push_back(text_member(problem, "/id"));
      }
      if (severity == "warning") check.note(CheckState::pass, "warning: " + problem_text(problem));
    }
  if (const Json& gpus = member(from, "/gpus"); gpus.is_array())
    for (const Json& gpu : gpus)
      host.gpus.push_back({text_member(gpu, "/pci"), text_member(gpu, "/uuid"), text_member(gpu, "/name"),
                           text_member(gpu, "/slot"), text_member(gpu, "/serial")});
  if (const Json& events = member(from, "/events"); events.is_array())
    for (const Json& event : events)
      if (text_member(event, "/kind") == "xid") host.xids.push_back(xid_text(event));
}

// A host with fewer devices than more than half of the hosts have.
void compare_gpus(std::vector<AcceptedHost>& hosts) {
  std::map<std::size_t, std::size_t> counts;
  for (AcceptedHost& host : hosts)
    if (host.checks["audit"].state != CheckState::fail || !host.gpus.empty()) ++counts[host.gpus.size()];
  for (const auto& [gpus, count] : counts)
    if (2 * count > hosts.size())
      for (AcceptedHost& host : hosts)
        if (host.gpus.size() < gpus && host.checks["audit"].state != CheckState::fail)
          host.checks["audit"].note(CheckState::fail, fmt::format("{} GPUs, {} of {} hosts have {}", host.gpus.size(),
                                                                  count, hosts.size(), gpus));
}

void read_drift(const Json& drift, std::vector<AcceptedHost>& hosts) {
  const std::string fact = text_member(drift, "/fact");
  const double count = number_member(drift, "/count").value_or(0);
  const bool majority = 2 * count > static_cast<double>(hosts.size());
  const Json& differing = member(drift, "/hosts");
  if (!differing.is_array()) return;
  for (const Json& one : differing) {
    const std::string name = text_member(one, "/host");
    const auto host =
        std::find_if(hosts.begin(), hosts.end(), [&](const AcceptedHost& each) { return each.host == name; });
    if (host == hosts.end()) continue;
    const Json& value = member(one, "/value");
    std::string line = fmt::format("{} is {}; {} of {} hosts have {}", fact,
                                   value.is_string() ? one_line(value.get<std::string>()) : "absent", count,
                                   hosts.size(), text_member(drift, "/majority"));
    if (!must_be_equal(fact))
      host->checks["audit"].note(CheckState::pass, "differs: " + line);
    else
      host->checks["audit"].note(majority ? CheckState::fail : CheckState::inconclusive, line);
  }
}

}  // namespace

void judge_audit(const Json& audit, std::vector<AcceptedHost>& hosts) {
  const Json& answers = member(audit, "/hosts");
  for (AcceptedHost& host : hosts) {
    host.gpus.clear(), host.problems.clear(), host.xids.clear();
    HostCheck& check = host.checks["audit"] = {};
    const Json* found = nullptr;
    if (answers.is_array())
      for (const Json& answer : answers)
        if (text_member(answer, "/host") == host.host) found = &answer;
    if (found)
      read_host(*found, host);
    else
      check.note(CheckState::fail, "the audit has no answer of this host");
  }
  compare_gpus(hosts);
  if (const Json& drift = member(audit, "/drift"); drift.is_array())
    for (const Json& one : drift) read_drift(one, hosts);
}

}  // namespace assay::report
