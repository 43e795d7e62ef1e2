// From the kernel's messages to problems: what holds since the boot counts as it is; a fault before it, or before a
// reset, is only remembered.
#include "harness/audit/areas.h"
#include "harness/audit/xids.h"
#include "harness/core/utc.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace assay::audit {

namespace {

// Events of the same problem, device and number.
struct Group {
  std::string problem, device;
  std::int64_t code = 0;
  bool past = false;
  std::int64_t count = 0;
  std::optional<double> first = {};  // when
  const KernelEvent* last = nullptr;
};

// Tells whether the driver said later in the same boot that the GPU needs no recovery any more.
bool recovered(const KernelEvent& event, const std::vector<KernelEvent>& events) {
  const auto moment = [](const KernelEvent& one) { return one.unix_seconds ? one.unix_seconds : one.uptime_seconds; };
  return event.kind == "xid" && std::ranges::any_of(events, [&](const KernelEvent& other) {
           return other.code == 154 && other.problem.empty() && other.device == event.device &&
                  other.earlier_boot == event.earlier_boot && moment(other) && moment(event) &&
                  other.unix_seconds.has_value() == event.unix_seconds.has_value() && *moment(other) >= *moment(event);
         });
}

std::string seen_of(const Group& group) {
  const auto& last = *group.last;
  const auto text = [](double moment) { return utc_text(static_cast<std::time_t>(moment)); };
  const auto when = last.unix_seconds     ? " at " + text(*last.unix_seconds)
                    : last.uptime_seconds ? fmt::format(" {:.0f} s after its boot", *last.uptime_seconds)
                                          : " at an unknown time";
  auto times = group.count > 1 ? fmt::format(", {} times", group.count) : "";
  if (group.first && last.unix_seconds && text(*group.first) != text(*last.unix_seconds))
    times += " since " + text(*group.first);
  if (last.kind == "xid") return fmt::format("XID {}{}{}", last.code, when, times);
  if (last.kind == "sxid") return fmt::format("SXID {}{}{}", last.code, when, times);
  return fmt::format("\"{}\"{}{}", last.text, when, times);
}

}  // namespace

void audit_events(const std::vector<KernelEvent>& events, Report& report) {
  std::vector<Group> groups;
  for (const KernelEvent& event : events) {
    if (event.problem.empty()) continue;
    const bool past = is_fault(event.problem) && (event.earlier_boot || recovered(event, events));
    const auto same = std::ranges::find_if(groups, [&](const Group& group) {
      return std::tie(group.problem, group.device, group.code, group.past) ==
             std::tie(event.problem, event.device, event.code, past);
    });
    Group& group =
        same != groups.end() ? *same : groups.emplace_back(Group{event.problem, event.device, event.code, past});
    group.count += event.count;
    if (event.first_seconds) group.first = std::min(group.first.value_or(*event.first_seconds), *event.first_seconds);
    group.last = &event;
  }
  constexpr int many_corrections = 10;  // a few are ordinary
  for (const Group& group : groups) {
    if (group.problem == "aer-corrected" && group.count < many_corrections) continue;
    const auto xid = group.last->kind == "xid" ? find_xid(group.code) : std::nullopt;
    auto meaning = xid ? std::string(xid->meaning) : std::string();
    auto fix = xid ? std::string(xid->action) : std::string();
    if (xid && group.problem == "xid-fatal" && xid->severity != Severity::fault)
      meaning += ", fatal: collectives hang until the GPU is reset";
    if (group.past)
      report.add("past-errors", group.device, seen_of(group) + ", before the last boot or reset", std::move(meaning));
    else
      report.add(group.problem, group.device, seen_of(group), std::move(meaning), std::move(fix));
  }
}

}  // namespace assay::audit
