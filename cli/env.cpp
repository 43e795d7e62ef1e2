// assay env: describes this machine, what will spoil measurements on it, and whether it has what it should.
#include "cli/command.h"
#include "cli/configs.h"
#include "cli/env_audit.h"
#include "cli/env_fleet.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/core/version.h"
#include "harness/json/members.h"
#include "harness/machine/environment.h"
#include "harness/machine/expectation.h"
#include "harness/machine/spoilers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>

namespace assay::cli {

namespace {

struct EnvOptions {
  bool json = false;
  std::string expect;
  bool audit = false;
  std::string hostfile, timeout;
  bool with_serials = false;
  std::vector<std::string> runs;
};

struct Answer {
  Machine machine;
  Json environment;
  std::vector<Finding> findings;
  std::vector<HardwareSheet> sheets;
  std::vector<Shortfall> shortfalls;
  std::optional<audit::Audit> audit;
};

void row(std::string_view name, const std::string& text) {
  if (!text.empty()) fmt::print("  {:<14} {}\n", name, text);
}

std::string size_of_memory(const std::optional<std::uint64_t>& bytes) {
  return bytes ? format_bytes(static_cast<double>(*bytes)) : "unknown";
}

std::string cpu_line(const CpuPart& cpu) {
  const auto name = cpu.name == cpu.brand || cpu.brand.empty() ? cpu.name : fmt::format("{} ({})", cpu.name, cpu.brand);
  return fmt::format("{}: {} socket{}, {} cores, {} CPUs", name.empty() ? "unknown" : name, cpu.sockets,
                     cpu.sockets == 1 ? "" : "s", cpu.cores, cpu.online.size());
}

std::string cache_line(const CpuPart& cpu) {
  std::vector<std::string> parts;
  for (const auto& cache : cpu.caches) {
    const auto* const suffix = cache.type == "data" ? "d" : cache.type == "instruction" ? "i" : "";
    parts.push_back(
        fmt::format("L{}{} {} x {}", cache.level, suffix, cache.count, format_bytes(static_cast<double>(cache.bytes))));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string clock_line(const CpuPart& cpu) {
  if (!cpu.cpufreq) return "";
  std::vector<std::string> governors;
  for (const auto& [name, cpus] : cpu.governors) governors.push_back(fmt::format("{} on {}", name, cpus));
  auto line = fmt::format("governor {}", fmt::join(governors, ", "));
  if (cpu.min_hz && cpu.max_hz) line += fmt::format("; {:.2f} to {:.2f} GHz", *cpu.min_hz / 1e9, *cpu.max_hz / 1e9);
  if (cpu.turbo) line += *cpu.turbo ? "; turbo on" : "; turbo off";
  return line;
}

std::string memory_line(const MemoryPart& memory) {
  auto line = fmt::format("{}, {} available", size_of_memory(memory.installed ? memory.installed : memory.total),
                          size_of_memory(memory.available));
  if (memory.limit) line += fmt::format(", limited to {}", size_of_memory(memory.limit));
  if (!memory.transparent_huge_pages.empty()) line += ", huge pages: " + memory.transparent_huge_pages;
  return line;
}

std::string gpu_line(const GpuPart& gpu, const std::vector<HardwareSheet>& sheets) {
  const auto* const sheet = find_hardware_by_pci(sheets, gpu.id);
  auto line = fmt::format("{} {}", gpu.pci, !gpu.name.empty() ? gpu.name : sheet ? sheet->description : gpu.id);
  if (gpu.link_width) line += fmt::format(", x{}", *gpu.link_width);
  if (const auto generation = pcie_generation(gpu.max_link_speed)) line += fmt::format(" PCIe {}", *generation);
  if (gpu.driver.empty()) line += ", no driver";
  return line;
}

std::string system_line(const SystemPart& system) {
  std::vector<std::string> parts;
  if (!system.instance_type.empty())
    parts.push_back(fmt::format("{} {}", system.provider, system.instance_type));
  else if (!system.provider.empty())
    parts.push_back(system.provider);
  if (!system.hypervisor.empty())
    parts.push_back("virtual machine (" + system.hypervisor + ")");
  else
    parts.emplace_back("no hypervisor seen");
  if (!system.container.empty()) parts.push_back("container (" + system.container + ")");
  return fmt::format("{}", fmt::join(parts, ", "));
}

void print_machine(const Answer& answer) {
  const auto& machine = answer.machine;
  fmt::print("{}\n", machine.system.hostname.empty() ? "this machine" : machine.system.hostname);
  row("CPU", cpu_line(machine.cpu));
  if (machine.cpu.usable_cores < machine.cpu.cores) row("usable", fmt::format("{} cores", machine.cpu.usable_cores));
  row("instructions", fmt::format("{}", fmt::join(machine.cpu.isa(), " ")));
  row("caches", cache_line(machine.cpu));
  row("clock", clock_line(machine.cpu));
  row("memory", memory_line(machine.memory));
  if (machine.numa.size() > 1) row("NUMA nodes", std::to_string(machine.numa.size()));
  if (machine.gpus.empty()) row("GPU", "none on the PCI bus");
  for (const auto& gpu : machine.gpus) row("GPU", gpu_line(gpu, answer.sheets));
  if (!machine.system.nvidia_driver.empty()) {
    const auto& cuda = machine.system.nvidia_cuda;
    row("driver", "NVIDIA " + machine.system.nvidia_driver + (cuda.empty() ? "" : ", CUDA up to " + cuda));
  }
  row("system",
      fmt::format("{}, kernel {}", machine.system.os.empty() ? "Linux" : machine.system.os, machine.system.kernel));
  row("place", system_line(machine.system));
  std::vector<std::string> libraries;
  for (const auto& [name, version] : answer.environment["libraries"].items())
    libraries.push_back(fmt::format("{} {}", name, version.get<std::string>()));
  row("libraries", fmt::format("{}", fmt::join(libraries, ", ")));
  row("assay", fmt::format("{} ({}, {})", build_info().version, build_info().build_type, build_info().compiler));
}

void print_shortfalls(const std::string& file, const std::vector<Shortfall>& shortfalls) {
  if (shortfalls.empty()) {
    fmt::print("\n{}: all held\n", file);
    return;
  }
  fmt::print("\n{}: {} shortfall{}\n", file, shortfalls.size(), shortfalls.size() == 1 ? "" : "s");
  for (const auto& each : shortfalls) fmt::print("  {}: expected {}, found {}\n", each.what, each.expected, each.found);
}

Json to_json(const Answer& answer, const std::string& file, const Root& root, bool with_serials) {
  Json json = {{"schema", 1}};
  json.update(answer.environment);
  json["findings"] = spoilers_json(answer.findings);
  if (answer.audit) {
    AuditedMachine audited = *answer.audit;
    add_identities(audited, root, answer.machine, with_serials);
    json["audit"] = json_of(audited);
  }
  if (file.empty()) return json;
  Json shortfalls = Json::array();
  for (const auto& each : answer.shortfalls)
    shortfalls.push_back({{"what", each.what}, {"expected", each.expected}, {"found", each.found}});
  json["expect"] = {{"file", file}, {"held", answer.shortfalls.empty()}, {"shortfalls", std::move(shortfalls)}};
  return json;
}

// Flags that only make sense with others.
void require_fitting(const EnvOptions& options) {
  const auto need_audit = [&](bool given, const char* flag) {
    if (given && !options.audit) throw UsageError(fmt::format("env: {} needs --audit", flag));
  };
  need_audit(!options.hostfile.empty(), "--hostfile");
  need_audit(options.with_serials, "--with-serials");
  need_audit(!options.timeout.empty(), "--timeout");
  need_audit(!options.runs.empty(), "--runs");
}

FleetOptions fleet_options(const EnvOptions& options) {
  FleetOptions fleet{.with_serials = options.with_serials, .runs = options.runs, .json = options.json};
  if (!options.expect.empty()) throw UsageError("env: --expect is about one host: leave it out with several");
  if (options.timeout.empty()) return fleet;
  fleet.timeout_seconds = parse_flag("--timeout", options.timeout, parse_seconds);
  if (!(fleet.timeout_seconds > 0))
    throw UsageError(fmt::format("env: --timeout {}: must be above 0", one_line(options.timeout)));
  return fleet;
}

ExitCode env(const EnvOptions& options) {
  require_fitting(options);
  if (options.audit)
    if (const auto hosts = hosts_to_audit(options.hostfile)) return audit_hosts(*hosts, fleet_options(options));
  if (!options.runs.empty()) throw UsageError("env: --runs compares hosts: name them in --hostfile");
  // Read the user's file first: report a bad file before measuring anything.
  const bool expecting = !options.expect.empty();
  const auto expectation = expecting ? read_expectation(options.expect) : Expectation();

  Answer answer;
  const Root root = user_root();
  if (options.audit) answer.audit = audit_now(root);
  answer.machine = answer.audit ? answer.audit->machine : probe_machine(root);
  answer.environment = environment_json(answer.machine);
  answer.sheets = load_hardware(configs_dir() / "hardware");
  answer.findings = answer.audit ? answer.audit->spoilers : find_spoilers(answer.machine, present_circumstances(root));
  if (expecting) answer.shortfalls = shortfalls(expectation, answer.machine, answer.sheets);

  if (options.json) {
    fmt::print("{}", dump_document(to_json(answer, options.expect, root, options.with_serials), 2));
  } else {
    print_machine(answer);
    // The problems of an audit include the findings.
    answer.audit ? print_audit(*answer.audit) : print_spoilers(answer.findings);
    if (expecting) print_shortfalls(options.expect, answer.shortfalls);
  }
  const bool held = answer.shortfalls.empty() && !(answer.audit && has_fault(answer.audit->problems));
  return held ? ExitCode::ok : ExitCode::failed;
}

}  // namespace

Command env_command(CLI::App& root) {
  auto options = std::make_shared<EnvOptions>();
  CLI::App* app = root.add_subcommand("env", "Describe this machine, and what will spoil measurements on it");
  app->add_flag("--json", options->json, "As JSON");
  app->add_option("--expect", options->expect, "File that says what the machine should have; exit 1 if it has less")
      ->type_name("FILE");
  app->add_flag("--audit", options->audit, "Look for what is broken or set up badly; exit 1 for a fault");
  app->add_option("--hostfile", options->hostfile,
                  "Audit these hosts and compare them; in a Slurm job its hosts are known")
      ->type_name("FILE");
  app->add_option("--timeout", options->timeout, "Time limit of each host's audit (60s)")->type_name("TIME");
  app->add_flag("--with-serials", options->with_serials, "With the serial numbers of hosts and GPUs");
  app->add_option("--runs", options->runs,
                  "Runs with --each-host on these hosts, to say which figure a difference moves")
      ->type_name("DIR");
  return {app, [options, app] {
            if (app->count("--expect") > 0 && options->expect.empty()) throw UsageError("env: --expect needs a file");
            return env(*options);
          }};
}

}  // namespace assay::cli
