// Reading an expectation and comparing a machine with it.
#include "harness/machine/expectation.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/json.h"

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
  static const std::vector<std::string> members = {"cores", "model", "isa"};
  if (!cpu.object()) return;
  cpu.only(members);
  expected.cores = count(cpu.find("cores"));
  expected.model = pattern(cpu.find("model"));
  if (const auto list = cpu.find("isa"))
    for (const auto& each : list->elements())
      if (const auto name = pattern(each)) expected.isa.push_back(*name);
}

void read_gpus(const Cursor& gpus, Expectation& expected) {
  static const std::vector<std::string> members = {"count", "name", "link_width", "link_generation"};
  if (!gpus.object()) return;
  gpus.only(members);
  expected.gpu_count = count(gpus.find("count"));
  expected.gpu_name = pattern(gpus.find("name"));
  expected.link_width = count(gpus.find("link_width"));
  expected.link_generation = count(gpus.find("link_generation"));
}

class Comparison {
 public:
  Comparison(const Expectation& expected, const Machine& machine, std::span<const HardwareSheet> sheets)
      : expected_(expected), machine_(machine), sheets_(sheets) {}

  std::vector<Shortfall> run() {
    cpu();
    memory();
    if (expected_.numa_nodes && std::ssize(machine_.numa) < *expected_.numa_nodes)
      add("numa_nodes", std::to_string(*expected_.numa_nodes), std::to_string(machine_.numa.size()));
    gpus();
    return std::move(found_);
  }

 private:
  void add(std::string what, std::string expected, std::string found) {
    found_.push_back({std::move(what), std::move(expected), std::move(found)});
  }

  void cpu() {
    const auto& cpu = machine_.cpu;
    if (expected_.cores) {
      const bool granted = !cpu.quota_cpus || *cpu.quota_cpus >= static_cast<double>(*expected_.cores);
      if (cpu.usable_cores < *expected_.cores)
        add("cpu.cores", std::to_string(*expected_.cores),
            cpu.usable_cores < cpu.cores ? fmt::format("{} usable of {}", cpu.usable_cores, cpu.cores)
                                         : std::to_string(cpu.usable_cores));
      else if (!granted)
        add("cpu.cores", std::to_string(*expected_.cores),
            fmt::format("{:.3g} by the cgroup's quota", *cpu.quota_cpus));
    }
    if (expected_.model && !matches(*expected_.model, cpu.name) && !matches(*expected_.model, cpu.brand))
      add("cpu.model", *expected_.model,
          cpu.name == cpu.brand ? (cpu.brand.empty() ? "unknown" : cpu.brand)
                                : fmt::format("{} ({})", cpu.name, cpu.brand));
    for (const auto& name : expected_.isa)
      if (!cpu.has(spelled(name))) add("cpu.isa", name, "absent");
  }

  void memory() {
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
    if (expected_.gpu_count && std::ssize(machine_.gpus) < *expected_.gpu_count)
      add("gpus.count", std::to_string(*expected_.gpu_count), std::to_string(machine_.gpus.size()));
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
  std::vector<Shortfall> found_;
};

}  // namespace

Expectation read_expectation(const std::filesystem::path& file) {
  static const std::vector<std::string> members = {"schema", "cpu", "memory", "gpus", "numa_nodes"};
  Expectation expected;
  const auto json = read_json(file);
  Problems problems(file.string());
  const Cursor root(json, problems);
  if (root.object() && root.schema(expectation_schema)) {
    root.only(members);
    if (const auto cpu = root.find("cpu")) read_cpu(*cpu, expected);
    if (const auto memory = root.find("memory"))
      if (const auto bytes = memory->quantity(bytes_of, 0, 1e18))
        expected.memory_bytes = static_cast<std::uint64_t>(*bytes);
    if (const auto gpus = root.find("gpus")) read_gpus(*gpus, expected);
    expected.numa_nodes = count(root.find("numa_nodes"));
  }
  problems.raise();
  return expected;
}

std::vector<Shortfall> shortfalls(const Expectation& expectation, const Machine& machine,
                                  std::span<const HardwareSheet> sheets) {
  return Comparison(expectation, machine, sheets).run();
}

std::string shortfalls_text(const std::string& file, const std::vector<Shortfall>& shortfalls) {
  if (shortfalls.empty()) return fmt::format("\n{}: all held\n", file);
  std::string text = fmt::format("\n{}: {}\n", file, plural(shortfalls.size(), "shortfall"));
  for (const Shortfall& each : shortfalls)
    text += fmt::format("  {}: expected {}, found {}\n", each.what, each.expected, each.found);
  return text;
}

}  // namespace assay
