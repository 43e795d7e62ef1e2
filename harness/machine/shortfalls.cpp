// Comparing a machine with what it should have, and writing down what one has.
#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/json.h"
#include "harness/machine/expectation.h"
#include "harness/machine/problem_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <utility>

namespace assay {

namespace {

constexpr double kernel_share = 0.03;
using Found = std::optional<std::string>;  // absent: the machine does not report it

Found if_any(const std::string& text) { return text.empty() ? Found() : Found(text); }
Found number_text(const std::optional<std::int64_t>& number) {
  return number ? Found(std::to_string(*number)) : Found();
}
Found size_text(const std::optional<std::uint64_t>& bytes) {
  return bytes ? Found(format_bytes(static_cast<double>(*bytes))) : Found();
}

// The kernel's spelling: lower case with underscores.
std::string spelled(std::string name) {
  for (auto& c : name) c = c == '-' || c == '.' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

// Tells whether a port has that name: "mlx5_0" stands for all ports of the device.
bool is_named(const std::string& name, const NetworkPart& part) {
  return name.empty() || matches(name, part.name) || matches(name, part.name.substr(0, part.name.find(':')));
}

// The link of a GPU: the generation that slot and card support, as an idle link runs slower.
ExpectedLink link_of(const GpuPart& gpu, const Machine& machine) {
  auto reachable = pcie_generation(gpu.max_link_speed);
  // Virtual bridges claim any speed.
  if (const auto slot = pcie_generation(gpu.slot_link_speed); slot && reachable && machine.system.hypervisor.empty())
    reachable = std::min(*reachable, *slot);
  const auto now = pcie_generation(gpu.link_speed);
  return {gpu.link_width, now && now > reachable.value_or(0) ? now : reachable};
}

ExpectedLink link_of(const NetworkPart& port) { return {port.link_width, pcie_generation(port.link_speed)}; }

// Tells whether what is installed is known. Online blocks far above MemTotal include memory that a balloon or hot-plug
// has taken back.
bool knows_installed(const MemoryPart& memory) {
  return memory.installed && static_cast<double>(*memory.installed) * 0.9 <= static_cast<double>(*memory.total);
}

std::string line_of(const Shortfall& one) {
  return fmt::format("{}: expected {}, found {}", one.what, one.expected, one.found);
}

class Comparison {
 public:
  Comparison(const Expectation& expected, const Machine& machine, std::span<const HardwareSheet> sheets,
             const Root& root)
      : expected_(expected), machine_(machine), sheets_(sheets), root_(root) {}

  std::vector<Shortfall> run() {
    cpu();
    memory();
    within("swap", expected_.swap_bytes, expected_.max_swap_bytes, machine_.memory.swap_total);
    amount("numa_nodes", expected_.numa_nodes, std::ssize(machine_.numa));
    gpus();
    for (const ExpectedPorts& one : expected_.infiniband) ports("infiniband", one, infiniband_parts(root_));
    for (const ExpectedPorts& one : expected_.ethernet) ports("ethernet", one, ethernet_parts(root_));
    for (const ExpectedPorts& one : expected_.rails) rails(one);
    mounts();
    named("kernel", expected_.kernel, machine_.system.kernel);
    named("driver", expected_.driver, machine_.system.nvidia_driver, "", "none loaded");
    named("clock_source", expected_.clock_source, machine_.system.clocksource);
    const auto bios = machine_.system.dmi.find("bios_version");
    named("bios", expected_.bios, bios == machine_.system.dmi.end() ? "" : bios->second);
    return std::move(found_);
  }

 private:
  // `about` adds what is known of a value that is not.
  void add(std::string what, std::string expected, const Found& found, std::string device = {},
           const std::string& about = {}) {
    found_.push_back(
        {std::move(what), std::move(expected), found.value_or("unknown" + about), std::move(device), !found});
  }

  void cpu() {
    const auto& cpu = machine_.cpu;
    amount("cpu.sockets", expected_.sockets, known(cpu.sockets));
    if (expected_.cores) {
      const std::int64_t cores = expected_.cores->value;
      const bool granted = !cpu.quota_cpus || *cpu.quota_cpus >= static_cast<double>(cores);
      if (cpu.usable_cores < cores && cpu.usable_cores < cpu.cores)
        add("cpu.cores", std::to_string(cores), fmt::format("{} usable of {}", cpu.usable_cores, cpu.cores));
      else if (amount("cpu.cores", expected_.cores, known(cpu.usable_cores)) && !granted)
        add("cpu.cores", std::to_string(cores), fmt::format("{:.3g} by the cgroup's quota", *cpu.quota_cpus));
    }
    amount("cpu.threads", expected_.threads, known(std::ssize(cpu.online)));
    amount("cpus", expected_.cpus, known(std::ssize(cpu.online)));
    if (expected_.model && !matches(*expected_.model, cpu.name) && !matches(*expected_.model, cpu.brand))
      add("cpu.model", *expected_.model,
          cpu.name == cpu.brand ? if_any(cpu.brand) : fmt::format("{} ({})", cpu.name, cpu.brand));
    for (const auto& name : expected_.isa)
      if (!cpu.has(spelled(name))) add("cpu.isa", name, cpu.flags.empty() ? Found() : "absent");
  }

  // A machine has at least one of each: 0 means that the kernel's files do not tell.
  static std::optional<std::int64_t> known(std::int64_t count) {
    return count > 0 ? std::optional(count) : std::nullopt;
  }

  static bool holds(const Amount& expected, std::int64_t found) {
    return expected.exactly ? found == expected.value : found >= expected.value;
  }
  static std::string text(const Amount& amount) {
    return (amount.exactly ? "exactly " : "") + std::to_string(amount.value);
  }

  // Returns whether it held.
  bool amount(const std::string& what, const std::optional<Amount>& expected, std::optional<std::int64_t> found,
              const std::string& device = {}) {
    const bool held = !expected || (found && holds(*expected, *found));
    if (!held) add(what, text(*expected), number_text(found), device);
    return held;
  }

  void within(const std::string& what, const std::optional<std::uint64_t>& least,
              const std::optional<std::uint64_t>& most, const std::optional<std::uint64_t>& found) {
    if (least && (!found || *found < *least)) add(what, *size_text(least), size_text(found));
    if (most && (!found || *found > *most)) add(what, "at most " + *size_text(most), size_text(found));
  }

  // A machine that reports nothing has `nothing`.
  void named(const std::string& what, const std::optional<std::string>& expected, const std::string& found,
             const std::string& device = {}, const Found& nothing = {}) {
    if (expected && !matches(*expected, found)) add(what, *expected, found.empty() ? nothing : found, device);
  }

  // "8 with a link of 400 Gbit/s", "exactly 1 mlx5_0".
  void ports(const std::string& what, const ExpectedPorts& expected, const std::vector<NetworkPart>& all) {
    const Amount wanted = expected.count.value_or(Amount{1, false});
    std::int64_t found = 0, unsure = 0;
    std::vector<std::string> others;
    for (const NetworkPart& one : all) {
      if (!is_named(expected.name, one)) continue;
      const bool fast =
          !expected.rate ||
          (one.rate && (expected.rate_exactly ? *one.rate == *expected.rate : *one.rate >= *expected.rate));
      const bool counts = fast && (one.up || expected.without_link);
      found += counts ? 1 : 0;
      unsure += !counts && !one.rate && (one.up || expected.without_link) ? 1 : 0;
      if (!counts)
        others.push_back(fmt::format("{} {}", one.name,
                                     !one.up     ? "without a link"
                                     : !one.rate ? "of unknown rate"
                                                 : fmt::format("of {:g} Gbit/s", *one.rate)));
    }
    if (holds(wanted, found)) return;
    const bool may_hold = found < wanted.value && found + unsure >= wanted.value;
    const std::string seen = fmt::format("{}{}", found, others.empty() ? "" : " (" + first_few(others, 8) + ")");
    add(what,
        fmt::format("{}{}{}", text(wanted), expected.name.empty() ? "" : " " + expected.name,
                    expected.rate           ? fmt::format(" of {:g} Gbit/s", *expected.rate)
                    : expected.without_link ? ""
                                            : " with a link"),
        may_hold ? Found() : seen, {}, ", at least " + seen);
  }

  struct Lack {
    std::string member, expected;
    Found found;
  };

  static void lack_of(const char* member, const std::string& expected, const std::string& found,
                      std::vector<Lack>& lacks) {
    if (!expected.empty() && !matches(expected, found)) lacks.push_back({member, expected, if_any(found)});
  }

  static void lack_of_link(const ExpectedLink& expected, const ExpectedLink& found, std::vector<Lack>& lacks) {
    const auto less = [](auto wanted, auto is) { return wanted && is && *is < *wanted; };
    const bool not_known = (expected.width && !found.width) || (expected.generation && !found.generation);
    if (less(expected.width, found.width) || less(expected.generation, found.generation))
      lacks.push_back({"pcie", expected.text(), found.text()});
    else if (not_known)
      lacks.push_back({"pcie", expected.text(), {}});
  }

  static std::vector<Lack> lacks_of(const ExpectedPorts& expected, const NetworkPart& port) {
    std::vector<Lack> lacks;
    const auto rate = [](double value) { return fmt::format("{:g} Gb/s", value); };
    lack_of("board_id", expected.board_id, port.board_id, lacks);
    lack_of("state", expected.state, port.state, lacks);
    if (expected.rate && !(port.rate && *port.rate >= *expected.rate))
      lacks.push_back({"rate", rate(*expected.rate), port.rate ? Found(rate(*port.rate)) : Found()});
    lack_of_link(expected.link, link_of(port), lacks);
    lack_of("firmware", expected.firmware, port.firmware, lacks);
    return lacks;
  }

  void rails(const ExpectedPorts& expected) {
    std::vector<std::string> names;  // of ports of that board and name
    std::vector<std::pair<std::string, std::vector<Lack>>> others;
    std::int64_t unsure = 0;
    const auto unread = [](const Lack& lack) { return !lack.found; };
    for (const NetworkPart& port : infiniband_parts(root_)) {
      const bool other_board =
          !expected.board_id.empty() && !port.board_id.empty() && !matches(expected.board_id, port.board_id);
      if (!is_named(expected.name, port) || other_board) continue;
      names.push_back(port.name);
      auto lacks = lacks_of(expected, port);
      if (lacks.empty()) continue;
      unsure += std::ranges::all_of(lacks, unread) ? 1 : 0;
      others.emplace_back(port.name, std::move(lacks));
    }
    const Amount wanted = expected.count.value_or(Amount{std::max<std::int64_t>(1, std::ssize(names)), false});
    const auto good = std::ssize(names) - std::ssize(others);
    if (holds(wanted, good) && !(wanted.exactly && unsure > 0)) return;
    const bool may_hold = good <= wanted.value && good + unsure >= wanted.value;
    for (const auto& [name, lacks] : others)
      for (const Lack& one : lacks)
        if (!may_hold || unread(one))
          add(fmt::format("rails.{} {}", one.member, name), one.expected, one.found, device_of(name));
    if (std::ssize(names) < wanted.value || (wanted.exactly && good > wanted.value))
      add("rails", fmt::format("{} {}", text(wanted), description_of(expected)),
          fmt::format("{}{}", names.size(), names.empty() ? "" : " (" + first_few(names, 16) + ")"));
  }

  // As findings of the audit name a port.
  static std::string device_of(const std::string& port) {
    return port.ends_with(":1") ? port.substr(0, port.size() - 2) : port;
  }

  static std::string description_of(const ExpectedPorts& expected) {
    return expected.board_id.empty() ? (expected.name.empty() ? "ports" : expected.name)
                                     : "of board " + expected.board_id;
  }

  void mounts() {
    const auto all = expected_.mounts.empty() ? std::vector<MountPart>() : mount_parts(root_);
    for (const ExpectedMount& wanted : expected_.mounts) {
      const auto what = "mounts " + wanted.place;
      const auto found = std::ranges::find(all, wanted.place, &MountPart::place);
      if (found == all.end()) {
        add(what, "mounted", all.empty() ? Found() : "not mounted", wanted.place);
        continue;
      }
      const auto differs = [&](const std::string& wish, const std::string& is) {
        if (!wish.empty() && !matches(wish, is)) add(what, wish, is, wanted.place);
      };
      differs(wanted.source, found->source);
      differs(wanted.type, found->type);
      if (wanted.writable) differs(access(*wanted.writable), access(found->writable));
    }
  }

  static const char* access(bool writable) { return writable ? "writable" : "read-only"; }

  void memory() {
    if (expected_.max_memory_bytes) within("memory", std::nullopt, expected_.max_memory_bytes, machine_.memory.total);
    if (!expected_.memory_bytes) return;
    const auto& memory = machine_.memory;
    const auto wanted = static_cast<double>(*expected_.memory_bytes);
    if (!memory.total) return add("memory", format_bytes(wanted), {});
    const bool exact = knows_installed(memory);
    const auto total = static_cast<double>(*memory.total);
    const double installed = exact ? static_cast<double>(*memory.installed) : total / (1 - kernel_share);
    if (memory.limit && static_cast<double>(*memory.limit) < wanted)
      add("memory", format_bytes(wanted), format_bytes(static_cast<double>(*memory.limit)) + " by the cgroup's limit");
    else if (installed < wanted)
      add("memory", format_bytes(wanted), format_bytes(exact ? installed : total));
  }

  std::string name_of(const GpuPart& gpu) const {
    if (!gpu.name.empty()) return gpu.name;
    const auto* sheet = find_hardware_by_pci(sheets_, gpu.id);
    return sheet ? sheet->match.front() : "";
  }

  void gpus() {
    amount("gpus.count", expected_.gpu_count, std::ssize(machine_.gpus));
    const bool about_each = expected_.gpu_name || expected_.link_width || expected_.link_generation ||
                            expected_.nvlinks_active || expected_.gpu_driver || expected_.vbios ||
                            !expected_.gpu_link.text().empty();
    if (about_each && machine_.gpus.empty() && !expected_.gpu_count) add("gpus", "at least 1", "0");
    const auto at_least = [](const std::optional<std::int64_t>& value) {
      return value ? std::optional(Amount{*value, false}) : std::nullopt;
    };
    for (const auto& gpu : machine_.gpus) {
      const auto name = name_of(gpu);
      if (expected_.gpu_name && !matches(*expected_.gpu_name, name))
        add("gpus.name " + gpu.pci, *expected_.gpu_name, if_any(name), gpu.pci, " (" + gpu.id + ")");
      const ExpectedLink link = link_of(gpu, machine_);
      amount("gpus.link_width " + gpu.pci, at_least(expected_.link_width), link.width, gpu.pci);
      amount("gpus.link_generation " + gpu.pci, at_least(expected_.link_generation), link.generation, gpu.pci);
      std::vector<Lack> lacks;
      lack_of_link(expected_.gpu_link, link, lacks);
      for (const Lack& one : lacks) add("gpus.pcie " + gpu.pci, one.expected, one.found, gpu.pci);
      amount("gpus.nvlinks_active " + gpu.pci, expected_.nvlinks_active, gpu.nvlinks_active, gpu.pci);
      named("gpus.vbios " + gpu.pci, expected_.vbios, gpu.vbios, gpu.pci);
    }
    if (!machine_.gpus.empty())
      named("gpus.driver", expected_.gpu_driver, machine_.system.nvidia_driver, "", "none loaded");
    if (!expected_.gpudirect) return;
    const std::string way = gpudirect_rdma(root_, machine_);
    const char* const found = way.empty()     ? "false (no GPU with a driver)"
                              : way == "none" ? "false (neither nvidia_peermem nor dma-buf)"
                                              : "true";
    if (*expected_.gpudirect != (way != "none" && !way.empty()))
      add("gpudirect", *expected_.gpudirect ? "true" : "false", found);
  }

  const Expectation& expected_;
  const Machine& machine_;
  std::span<const HardwareSheet> sheets_;
  const Root& root_;
  std::vector<Shortfall> found_;
};

}  // namespace

std::vector<Shortfall> shortfalls(const Expectation& expectation, const Machine& machine,
                                  std::span<const HardwareSheet> sheets, const Root& root) {
  return Comparison(expectation, machine, sheets, root).run();
}

std::vector<Finding> findings_of(const Expectation& expectation, const std::vector<Shortfall>& shortfalls) {
  constexpr std::pair<std::string_view, std::string_view> kinds[] = {
      {"gpu", "expected-gpu"},     {"driver", "expected-gpu"},     {"cpu", "expected-cpu"},
      {"numa", "expected-cpu"},    {"memory", "expected-memory"},  {"swap", "expected-memory"},
      {"rails", "expected-nic"},   {"infiniband", "expected-nic"}, {"ethernet", "expected-nic"},
      {"mounts", "expected-disk"}, {"", "expected-system"}};
  std::vector<Finding> findings;
  for (const Shortfall& one : shortfalls) {
    const auto kind = std::ranges::find_if(kinds, [&](const auto& each) { return one.what.starts_with(each.first); });
    findings.push_back(
        finding_of(one.unread ? expected_unread : kind->second, one_line(line_of(one), 500), one.device));
  }
  for (const std::string& one : expectation.left_out)
    findings.push_back(finding_of(expected_unread, "not taken over: " + one));
  return findings;
}

std::string shortfalls_text(const std::string& file, const Expectation& expectation,
                            const std::vector<Shortfall>& shortfalls) {
  const auto unread = std::ranges::count_if(shortfalls, &Shortfall::unread);
  const auto missed = std::ssize(shortfalls) - unread;
  std::string text;
  if (missed == 0)
    text = fmt::format("\n{}: all{} held\n", file,
                       unread > 0                     ? " that was judged"
                       : expectation.left_out.empty() ? ""
                                                      : " that was taken over");
  else
    text = fmt::format("\n{}: {}\n", file, plural(missed, "shortfall"));
  for (const bool not_known : {false, true})
    for (const Shortfall& each : shortfalls)
      if (each.unread == not_known) text += fmt::format("  {}{}\n", not_known ? "not judged: " : "", line_of(each));
  for (const std::string& each : expectation.left_out) text += fmt::format("  not taken over: {}\n", each);
  return text;
}

std::string ExpectedLink::text() const {
  std::string text;
  if (width) text = fmt::format("x{}", *width);
  if (generation) text += fmt::format("{}gen{}", text.empty() ? "" : " ", *generation);
  return text;
}

namespace {

Json exactly(std::int64_t count) { return {{"exactly", count}}; }

// Returns what all parts have, or nothing if they differ.
template <typename Parts, typename Of>
std::string same_on_all(const Parts& parts, const Of& of) {
  std::string value;
  for (const auto& part : parts) {
    const std::string one = of(part);
    if (&part == &parts.front()) value = one;
    if (one != value) return {};
  }
  return value;
}

void set(Json& json, const char* member, const std::string& text) {
  if (!text.empty()) json[member] = text;
}

Json gpus_json(const Machine& machine) {
  Json json = {{"count", exactly(std::ssize(machine.gpus))}};
  set(json, "name", same_on_all(machine.gpus, [](const GpuPart& gpu) { return gpu.name; }));
  set(json, "vbios", same_on_all(machine.gpus, [](const GpuPart& gpu) { return gpu.vbios; }));
  set(json, "driver", machine.system.nvidia_driver);
  set(json, "pcie", same_on_all(machine.gpus, [&](const GpuPart& gpu) { return link_of(gpu, machine).text(); }));
  const auto active = same_on_all(machine.gpus, [](const GpuPart& gpu) {
    return gpu.nvlinks_active ? std::to_string(*gpu.nvlinks_active) : std::string();
  });
  if (const auto count = to_integer(active); count && *count > 0) json["nvlinks_active"] = *count;
  return json;
}

// Ports with a link are counted by kind.
Json rails_json(const Root& root) {
  std::map<std::string, std::pair<Json, std::int64_t>> kinds;
  for (const NetworkPart& port : infiniband_parts(root)) {
    if (!port.up) continue;
    Json kind = {{"state", port.state}};
    set(kind, "board_id", port.board_id);
    set(kind, "firmware", port.firmware);
    set(kind, "pcie", link_of(port).text());
    if (port.rate) kind["rate"] = fmt::format("{:g} Gb/s", *port.rate);
    auto& known = kinds[kind.dump()];
    known.first = kind;
    ++known.second;
  }
  Json rails = Json::array();
  for (auto& [key, kind] : kinds) {
    kind.first["count"] = exactly(kind.second);
    rails.push_back(std::move(kind.first));
  }
  return rails;
}

// Counts the hardware's ports, all of which have at least the rate of the slowest.
Json ethernet_json(const Machine& machine) {
  double slowest = 0;
  std::int64_t count = 0;
  for (const NetworkPart& port : machine.network)
    if (port.up && port.rate) slowest = count++ == 0 ? *port.rate : std::min(slowest, *port.rate);
  return count == 0 ? Json() : Json{{"count", count}, {"rate", slowest}};
}

}  // namespace

Json inventory_of(const Machine& machine, const Root& root) {
  constexpr std::uint64_t gibibyte = std::uint64_t{1} << 30;
  Json json = {{"schema", 1}};
  const CpuPart& cpu = machine.cpu;
  set(json["cpu"], "model", cpu.name.empty() ? cpu.brand : cpu.name);
  if (cpu.sockets > 0) json["cpu"]["sockets"] = exactly(cpu.sockets);
  if (!cpu.online.empty()) json["cpus"] = exactly(std::ssize(cpu.online));
  if (!machine.numa.empty()) json["numa_nodes"] = exactly(std::ssize(machine.numa));
  const MemoryPart& memory = machine.memory;
  if (memory.total) {
    const auto bytes = knows_installed(memory) ? *memory.installed : *memory.total;
    json["memory"] = fmt::format("{}GiB", std::min(bytes, memory.limit.value_or(bytes)) / gibibyte);
  }
  if (memory.swap_total.value_or(0) >= gibibyte) json["swap"] = fmt::format("{}GiB", *memory.swap_total / gibibyte);
  if (!machine.gpus.empty()) json["gpus"] = gpus_json(machine);
  if (Json rails = rails_json(root); !rails.empty())
    json["rails"] = std::move(rails);
  else if (Json ports = ethernet_json(machine); !ports.is_null())
    json["ethernet"] = std::move(ports);
  if (const auto way = gpudirect_rdma(root, machine); !way.empty() && way != "none") json["gpudirect"] = true;
  for (const MountPart& mount : mount_parts(root))
    if (on_network(mount.type)) json["mounts"].push_back({{"at", mount.place}, {"type", mount.type}});
  set(json, "kernel", machine.system.kernel);
  if (const auto bios = machine.system.dmi.find("bios_version"); bios != machine.system.dmi.end())
    set(json, "bios", bios->second);
  if (json["cpu"].is_null()) json.erase("cpu");
  return json;
}

}  // namespace assay
