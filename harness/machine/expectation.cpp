// Reading an expectation and comparing a machine with it.
#include "harness/machine/expectation.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/json.h"
#include "harness/machine/host_parts.h"
#include "harness/machine/nhc.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace assay {
namespace {

constexpr int expectation_schema = 1;
constexpr std::int64_t max_count = 1 << 24;
constexpr double kernel_share = 0.03;

double bytes_of(std::string_view text) { return static_cast<double>(parse_bytes(text)); }

std::optional<std::int64_t> count(const std::optional<Cursor>& at) {
  return at ? at->integer(0, max_count) : std::nullopt;
}

std::optional<Amount> amount(const std::optional<Cursor>& at) {
  static const std::vector<std::string> members = {"exactly"};
  if (!at) return std::nullopt;
  const bool exactly = at->json().is_object();
  if (exactly) at->only(members);
  const auto value = exactly ? count(at->need("exactly")) : count(at);
  return value ? std::optional(Amount{*value, exactly}) : std::nullopt;
}

std::optional<std::uint64_t> size(const std::optional<Cursor>& at) {
  const auto bytes = at ? at->quantity(bytes_of, 0, 1e18) : std::nullopt;
  return bytes ? std::optional(static_cast<std::uint64_t>(*bytes)) : std::nullopt;
}

std::optional<std::string> pattern(const std::optional<Cursor>& at) {
  auto text = at ? at->text() : std::nullopt;
  if (text && text->empty()) at->error("is empty; * matches every name");
  return text;
}

// The kernel's spelling: lower case with underscores.
std::string spelled(std::string name) {
  for (auto& c : name) c = c == '-' || c == '.' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

void read_cpu(const Cursor& cpu, Expectation& expected) {
  static const std::vector<std::string> members = {"sockets", "cores", "threads", "model", "isa"};
  if (!cpu.object()) return;
  cpu.only(members);
  expected.sockets = amount(cpu.find("sockets"));
  expected.cores = amount(cpu.find("cores"));
  expected.threads = amount(cpu.find("threads"));
  expected.model = pattern(cpu.find("model"));
  if (const auto list = cpu.find("isa"))
    for (const auto& each : list->elements())
      if (const auto name = pattern(each)) expected.isa.push_back(*name);
}

void read_gpus(const Cursor& gpus, Expectation& expected) {
  static const std::vector<std::string> members = {"count", "name", "link_width", "link_generation"};
  if (!gpus.object()) return;
  gpus.only(members);
  expected.gpu_count = amount(gpus.find("count"));
  expected.gpu_name = pattern(gpus.find("name"));
  expected.link_width = count(gpus.find("link_width"));
  expected.link_generation = count(gpus.find("link_generation"));
}

void read_ports(const std::optional<Cursor>& at, std::vector<ExpectedPorts>& to) {
  static const std::vector<std::string> members = {"count", "rate", "name"};
  if (!at || !at->object()) return;
  at->only(members);
  ExpectedPorts ports;
  ports.count = amount(at->find("count"));
  if (const auto rate = at->find("rate")) ports.rate = rate->number(0, 1e6);
  ports.name = pattern(at->find("name")).value_or("");
  to.push_back(std::move(ports));
}

void read_mounts(const Cursor& mounts, Expectation& expected) {
  static const std::vector<std::string> members = {"at", "source", "type", "writable"};
  for (const Cursor& each : mounts.elements()) {
    ExpectedMount one;
    if (each.json().is_string()) {
      one.place = pattern(each).value_or("");
    } else if (each.object()) {
      each.only(members);
      one.place = pattern(each.need("at")).value_or("");
      one.source = pattern(each.find("source")).value_or("");
      one.type = pattern(each.find("type")).value_or("");
      if (const auto writable = each.find("writable")) one.writable = writable->flag();
    }
    expected.mounts.push_back(std::move(one));
  }
}

// Whether a port is one of that name: "mlx5_0" stands for all ports of the device.
bool is_named(const std::string& name, const NetworkPart& part) {
  return name.empty() || matches(name, part.name) || matches(name, part.name.substr(0, part.name.find(':')));
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
    mounts();
    named("kernel", expected_.kernel, machine_.system.kernel);
    named("driver", expected_.driver, machine_.system.nvidia_driver);
    named("clock_source", expected_.clock_source, machine_.system.clocksource);
    return std::move(found_);
  }

 private:
  void add(std::string what, std::string expected, std::string found) {
    found_.push_back({std::move(what), std::move(expected), std::move(found)});
  }

  void cpu() {
    const auto& cpu = machine_.cpu;
    amount("cpu.sockets", expected_.sockets, cpu.sockets);
    if (expected_.cores) {
      const std::int64_t cores = expected_.cores->value;
      const bool granted = !cpu.quota_cpus || *cpu.quota_cpus >= static_cast<double>(cores);
      if (cpu.usable_cores < cores && cpu.usable_cores < cpu.cores)
        add("cpu.cores", std::to_string(cores), fmt::format("{} usable of {}", cpu.usable_cores, cpu.cores));
      else if (amount("cpu.cores", expected_.cores, cpu.usable_cores) && !granted)
        add("cpu.cores", std::to_string(cores), fmt::format("{:.3g} by the cgroup's quota", *cpu.quota_cpus));
    }
    amount("cpu.threads", expected_.threads, std::ssize(cpu.online));
    if (expected_.model && !matches(*expected_.model, cpu.name) && !matches(*expected_.model, cpu.brand))
      add("cpu.model", *expected_.model,
          cpu.name == cpu.brand ? (cpu.brand.empty() ? "unknown" : cpu.brand)
                                : fmt::format("{} ({})", cpu.name, cpu.brand));
    for (const auto& name : expected_.isa)
      if (!cpu.has(spelled(name))) add("cpu.isa", name, "absent");
  }

  // Whether it held.
  bool amount(const std::string& what, const std::optional<Amount>& expected, std::int64_t found) {
    if (!expected) return true;
    const bool held = expected->exactly ? found == expected->value : found >= expected->value;
    if (!held)
      add(what, (expected->exactly ? "exactly " : "") + std::to_string(expected->value), std::to_string(found));
    return held;
  }

  void within(const std::string& what, const std::optional<std::uint64_t>& least,
              const std::optional<std::uint64_t>& most, const std::optional<std::uint64_t>& found) {
    const auto text = [](std::uint64_t bytes) { return format_bytes(static_cast<double>(bytes)); };
    if (least && (!found || *found < *least)) add(what, text(*least), found ? text(*found) : "unknown");
    if (most && (!found || *found > *most)) add(what, "at most " + text(*most), found ? text(*found) : "unknown");
  }

  void named(const std::string& what, const std::optional<std::string>& expected, const std::string& found) {
    if (expected && !matches(*expected, found)) add(what, *expected, found.empty() ? "unknown" : found);
  }

  // "8 with a link of 400 Gbit/s", "exactly 1 mlx5_0".
  void ports(const std::string& what, const ExpectedPorts& expected, const std::vector<NetworkPart>& all) {
    const Amount wanted = expected.count.value_or(Amount{1, false});
    std::int64_t found = 0;
    std::vector<std::string> others;
    for (const NetworkPart& one : all) {
      if (!is_named(expected.name, one)) continue;
      const bool fast =
          !expected.rate ||
          (one.rate && (expected.rate_exactly ? *one.rate == *expected.rate : *one.rate >= *expected.rate));
      const bool counts = fast && (one.up || expected.without_link);
      found += counts ? 1 : 0;
      if (!counts)
        others.push_back(fmt::format("{} {}", one.name,
                                     !one.up     ? "without a link"
                                     : !one.rate ? "of unknown rate"
                                                 : fmt::format("of {:g} Gbit/s", *one.rate)));
    }
    if (wanted.exactly ? found == wanted.value : found >= wanted.value) return;
    add(what,
        fmt::format("{}{}{}{}", wanted.exactly ? "exactly " : "", wanted.value,
                    expected.name.empty() ? "" : " " + expected.name,
                    expected.rate           ? fmt::format(" of {:g} Gbit/s", *expected.rate)
                    : expected.without_link ? ""
                                            : " with a link"),
        fmt::format("{}{}", found, others.empty() ? "" : " (" + first_few(others, 8) + ")"));
  }

  void mounts() {
    const auto all = expected_.mounts.empty() ? std::vector<MountPart>() : mount_parts(root_);
    for (const ExpectedMount& wanted : expected_.mounts) {
      const auto what = "mounts " + wanted.place;
      const auto found = std::ranges::find(all, wanted.place, &MountPart::place);
      if (found == all.end()) {
        add(what, "mounted", "not mounted");
        continue;
      }
      if (!wanted.source.empty() && !matches(wanted.source, found->source)) add(what, wanted.source, found->source);
      if (!wanted.type.empty() && !matches(wanted.type, found->type)) add(what, wanted.type, found->type);
      if (wanted.writable && *wanted.writable != found->writable)
        add(what, *wanted.writable ? "writable" : "read-only", found->writable ? "writable" : "read-only");
    }
  }

  void memory() {
    if (expected_.max_memory_bytes) within("memory", std::nullopt, expected_.max_memory_bytes, machine_.memory.total);
    if (!expected_.memory_bytes) return;
    const auto& memory = machine_.memory;
    const auto wanted = static_cast<double>(*expected_.memory_bytes);
    if (!memory.total) return add("memory", format_bytes(wanted), "unknown");
    const auto total = static_cast<double>(*memory.total);
    // Online blocks far above MemTotal include memory that a balloon or hot-plug has taken back.
    const bool exact = memory.installed && static_cast<double>(*memory.installed) * 0.9 <= total;
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

  // The generation that slot and card support; an idle link runs slower.
  std::optional<int> generation_of(const GpuPart& gpu) const {
    auto reachable = pcie_generation(gpu.max_link_speed);
    // Virtual bridges claim any speed.
    if (const auto slot = pcie_generation(gpu.slot_link_speed); slot && reachable && machine_.system.hypervisor.empty())
      reachable = std::min(*reachable, *slot);
    const auto now = pcie_generation(gpu.link_speed);
    return now && now > reachable.value_or(0) ? now : reachable;
  }

  void gpus() {
    amount("gpus.count", expected_.gpu_count, std::ssize(machine_.gpus));
    const bool about_each = expected_.gpu_name || expected_.link_width || expected_.link_generation;
    if (about_each && machine_.gpus.empty() && !expected_.gpu_count) add("gpus", "at least 1", "0");
    for (const auto& gpu : machine_.gpus) {
      const auto name = name_of(gpu);
      if (expected_.gpu_name && !matches(*expected_.gpu_name, name))
        add("gpus.name " + gpu.pci, *expected_.gpu_name, name.empty() ? fmt::format("unknown ({})", gpu.id) : name);
      number("gpus.link_width " + gpu.pci, expected_.link_width, gpu.link_width);
      const auto generation = generation_of(gpu);
      number("gpus.link_generation " + gpu.pci, expected_.link_generation,
             generation ? std::optional<std::int64_t>(*generation) : std::nullopt);
    }
  }

  void number(std::string what, std::optional<std::int64_t> expected, std::optional<std::int64_t> found) {
    if (expected && (!found || *found < *expected))
      add(std::move(what), std::to_string(*expected), found ? std::to_string(*found) : "unknown");
  }

  const Expectation& expected_;
  const Machine& machine_;
  std::span<const HardwareSheet> sheets_;
  const Root& root_;
  std::vector<Shortfall> found_;
};

}  // namespace

Expectation read_expectation(const std::filesystem::path& file, const Root& machine) {
  static const std::vector<std::string> members = {"schema",     "cpu",    "memory",     "swap",
                                                   "numa_nodes", "gpus",   "infiniband", "ethernet",
                                                   "mounts",     "kernel", "driver",     "clock_source"};
  constexpr std::uintmax_t max_bytes = std::uintmax_t{1} << 20;
  std::error_code unknown;
  if (std::filesystem::is_regular_file(file, unknown) && std::filesystem::file_size(file, unknown) <= max_bytes) {
    std::string text;
    try {
      text = read_whole(file, max_bytes);
    } catch (const Error&) {  // said below
    }
    const auto hostname = machine.text("proc/sys/kernel/hostname").value_or("");
    if (is_nhc(text)) return read_nhc(text, one_line(file.filename().string()), hostname.substr(0, hostname.find('.')));
  }
  Expectation expected;
  const auto json = read_json(file);
  Problems problems(file.string());
  const Cursor root(json, problems);
  if (root.object() && root.schema(expectation_schema)) {
    root.only(members);
    if (const auto cpu = root.find("cpu")) read_cpu(*cpu, expected);
    expected.memory_bytes = size(root.find("memory"));
    expected.swap_bytes = size(root.find("swap"));
    if (const auto gpus = root.find("gpus")) read_gpus(*gpus, expected);
    expected.numa_nodes = amount(root.find("numa_nodes"));
    read_ports(root.find("infiniband"), expected.infiniband);
    read_ports(root.find("ethernet"), expected.ethernet);
    if (const auto mounts = root.find("mounts")) read_mounts(*mounts, expected);
    expected.kernel = pattern(root.find("kernel"));
    expected.driver = pattern(root.find("driver"));
    expected.clock_source = pattern(root.find("clock_source"));
  }
  problems.raise();
  return expected;
}

std::vector<Shortfall> shortfalls(const Expectation& expectation, const Machine& machine,
                                  std::span<const HardwareSheet> sheets, const Root& root) {
  return Comparison(expectation, machine, sheets, root).run();
}

std::string shortfalls_text(const std::string& file, const Expectation& expectation,
                            const std::vector<Shortfall>& shortfalls) {
  std::string text;
  if (shortfalls.empty())
    text = fmt::format("\n{}: all{} held\n", file, expectation.left_out.empty() ? "" : " that was taken over");
  else
    text = fmt::format("\n{}: {}\n", file, plural(shortfalls.size(), "shortfall"));
  for (const Shortfall& each : shortfalls)
    text += fmt::format("  {}: expected {}, found {}\n", each.what, each.expected, each.found);
  for (const std::string& each : expectation.left_out) text += fmt::format("  not taken over: {}\n", each);
  return text;
}

}  // namespace assay
