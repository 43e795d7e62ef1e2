// The audit put together: its areas, what find_spoilers() knows already, and the kernel's log.
#include "harness/audit/audit.h"

#include "harness/audit/areas.h"
#include "harness/audit/kernel_log.h"
#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/core/utc.h"
#include "harness/machine/problem_kinds.h"
#include "harness/machine/spoilers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace assay::audit {

void Report::add(std::string_view id, std::string_view device, std::string_view seen, std::string_view meaning,
                 std::string_view fix) {
  const ProblemKind* const kind = find_kind(id);
  ASSAY_CHECK(kind, "no kind of problem {}", id);
  const auto name = one_line(device);
  const auto what = one_line(seen, 500);
  for (Finding& problem : problems)
    if (problem.id == id && problem.device == name) {
      constexpr std::size_t max_seen = 1000;
      constexpr std::string_view and_more = "; and more";
      if (problem.seen.size() < max_seen)
        problem.seen += "; " + what;
      else if (!problem.seen.ends_with(and_more))
        problem.seen += and_more;
      return;
    }
  problems.push_back({kind->id, kind->severity, what, std::string(meaning.empty() ? kind->meaning : meaning),
                      std::string(fix.empty() ? kind->fix : fix), name, kind->area});
}

bool is_fault(std::string_view id) {
  const ProblemKind* const kind = find_kind(id);
  return kind && kind->severity == Severity::fault;
}

void Report::fact(const std::string& name, std::string_view value) {
  if (!trim(value).empty()) facts[one_line(name)] = one_line(trim(value), 1000);
}

bool may_be_container(const Subject& subject) {
  if (!subject.machine.system.container.empty()) return true;
  // The kernel's own process, which only the first PID namespace shows.
  if (subject.root.real() && subject.root.text("proc/2/comm").value_or("") != "kthreadd") return true;
  // NVIDIA's container runtime covers the driver's list of GPUs with a shorter one.
  return subject.root.text("proc/mounts").value_or("").find(" /proc/driver/nvidia") != std::string::npos;
}

bool process_runs(const Root& root, std::string_view name) {
  constexpr std::size_t kept = 15;
  return std::ranges::any_of(root.list("proc"), [&](const std::string& pid) {
    return pid.find_first_not_of("0123456789") == pid.npos &&
           root.text("proc/" + pid + "/comm").value_or("") == name.substr(0, kept);
  });
}

std::vector<std::string> library_folders(const Root& root) {
  std::vector<std::string> folders;
  for (const char* lib : {"usr/lib", "usr/lib64", "usr/local/lib", "usr/local/cuda/lib64", "opt/amazon/ofi-nccl/lib"}) {
    folders.emplace_back(lib);
    for (const auto& name : root.list(lib))
      if (name.find("-linux-gnu") != name.npos) folders.push_back(std::string(lib) + "/" + name);
  }
  return folders;
}

std::string slow_link(const Root& root, const std::string& pci) {
  const auto folder = "sys/bus/pci/devices/" + pci + "/";
  std::string slow;
  // The device cannot have what the slot lacks.
  const auto least = [](auto a, auto b) { return a && b ? std::optional(std::min(*a, *b)) : a; };
  const auto width = lanes(root.integer(folder + "current_link_width")),
             max_width = least(lanes(root.integer(folder + "max_link_width")),
                               lanes(root.integer(folder + "../max_link_width")));
  if (width && max_width && *width < *max_width) slow = fmt::format("x{} of x{}", *width, *max_width);
  const auto speed = gigatransfers(root.text(folder + "current_link_speed")),
             max_speed = least(gigatransfers(root.text(folder + "max_link_speed")),
                               gigatransfers(root.text(folder + "../max_link_speed")));
  if (speed && max_speed && *speed < *max_speed)
    slow += fmt::format("{}{:g} of {:g} GT/s", slow.empty() ? "" : ", ", *speed, *max_speed);
  return slow;
}

std::string nic_address(const Root& root, const std::string& folder) {
  auto name = root.link_name(folder + "/device").value_or("");
  return root.exists("sys/bus/pci/devices/" + name) && !name.empty() ? name : std::string();
}

bool has_nvswitch(const Root& root) {
  return std::ranges::any_of(root.list("sys/bus/pci/devices"), [&](const std::string& pci) {
    const auto folder = "sys/bus/pci/devices/" + pci + "/";
    return root.text(folder + "vendor") == "0x10de" && root.text(folder + "class").value_or("").starts_with("0x0680");
  });
}

namespace {

// "btime 1763000000" in proc/stat.
std::optional<double> boot_time(const Root& root) {
  for (const std::string& line : lines(root.text("proc/stat").value_or("")))
    if (line.starts_with("btime "))
      if (const auto seconds = to_integer(std::string_view(line).substr(6)); seconds && *seconds > 0)
        return static_cast<double>(*seconds);
  return std::nullopt;
}

}  // namespace

Audit audit_machine(const Root& root, double now, double days) {
  Audit audit;
  audit.machine = probe_machine(root);
  Report report;
  const Subject subject{root, audit.machine, now, boot_time(root)};
  for (const auto area :
       {audit_gpus, audit_path, audit_network, audit_storage, audit_host, audit_software, audit_counters})
    area(subject, report);
  auto log = read_kernel_log(root, now, days, subject.boot);
  audit_events(log.events, report);
  if (log.sources.empty())
    report.add("kernel-log-unreadable", "",
               log.empty.empty() ? "no journal, no /var/log/kern.log or messages, no /dev/kmsg"
                                 : fmt::format("no message of the kernel in {}", fmt::join(log.empty, ", ")));
  for (const std::string& what : log.cut) report.add("kernel-log-cut", "", what);
  if (log.latest_future)
    report.add("clock-wrong", "",
               "a line of the kernel's log is of " + utc_text(static_cast<std::time_t>(*log.latest_future)));
  audit.spoilers = find_spoilers(audit.machine, present_circumstances(root));
  for (const Finding& one : audit.spoilers)
    if (!find_kind(one.id)->by_area) report.add(one.id, one.device, one.seen, one.meaning, one.fix);

  sort_by_severity(report.problems);
  audit.problems = std::move(report.problems);
  audit.facts = std::move(report.facts);
  audit.events = std::move(log.events);
  return audit;
}

}  // namespace assay::audit
