// Reading an expectation.
#include "harness/machine/expectation.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/json.h"
#include "harness/machine/nhc.h"

#include <fmt/format.h>

namespace assay {
namespace {

constexpr int expectation_schema = 1;
constexpr std::int64_t max_count = 1 << 24;

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

// Reads a size that must be reached, or met exactly.
void read_size(const std::optional<Cursor>& at, std::optional<std::uint64_t>& least,
               std::optional<std::uint64_t>& most) {
  const bool exactly = at && at->json().is_object();
  if (exactly) at->only({"exactly"});
  const auto value = exactly ? at->need("exactly") : at;
  if (const auto bytes = value ? value->quantity(bytes_of, 0, 1e18) : std::nullopt) {
    least = static_cast<std::uint64_t>(*bytes);
    if (exactly) most = least;
  }
}

// Reads "400 Gb/s", "400 Gbit/s" and "400" as 400.
double gigabits_of(std::string_view text) {
  for (const std::string_view unit : {"Gb/s", "Gbit/s", "Gbps", "Gb/sec"})
    if (text.ends_with(unit)) return parse_real(trim(text.substr(0, text.size() - unit.size())));
  return parse_real(text);
}

std::optional<double> rate(const std::optional<Cursor>& at) {
  return at ? at->quantity(gigabits_of, 0, 1e6) : std::nullopt;
}

// Reads "x16 gen5", or one of the two.
ExpectedLink pcie(const std::optional<Cursor>& at) {
  ExpectedLink link;
  const auto text = at ? at->text() : std::nullopt;
  if (!text) return link;
  bool known = !words(*text).empty();
  for (const std::string& word : words(lower_case(*text))) {
    const std::size_t prefix = word.starts_with("gen") ? 3 : 1;
    const auto number = to_integer(std::string_view(word).substr(prefix));
    known = known && number && *number > 0 && word == fmt::format("{}{}", prefix == 3 ? "gen" : "x", *number);
    (prefix == 3 ? link.generation : link.width) = number;
  }
  if (!known) at->error(fmt::format("{} is not of the form \"x16 gen5\"", in_quotes(*text)));
  return link;
}

std::optional<std::string> pattern(const std::optional<Cursor>& at) {
  auto text = at ? at->text() : std::nullopt;
  if (text && text->empty()) at->error("is empty; * matches every name");
  return text;
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
  static const std::vector<std::string> members = {"count", "name",           "link_width", "link_generation",
                                                   "pcie",  "nvlinks_active", "driver",     "vbios"};
  if (!gpus.object()) return;
  gpus.only(members);
  expected.gpu_count = amount(gpus.find("count"));
  expected.gpu_name = pattern(gpus.find("name"));
  expected.link_width = count(gpus.find("link_width"));
  expected.link_generation = count(gpus.find("link_generation"));
  expected.gpu_link = pcie(gpus.find("pcie"));
  expected.nvlinks_active = amount(gpus.find("nvlinks_active"));
  expected.gpu_driver = pattern(gpus.find("driver"));
  expected.vbios = pattern(gpus.find("vbios"));
}

void read_ports(const std::optional<Cursor>& at, std::vector<ExpectedPorts>& to) {
  static const std::vector<std::string> members = {"count", "rate", "name"};
  if (!at || !at->object()) return;
  at->only(members);
  ExpectedPorts ports;
  ports.count = amount(at->find("count"));
  ports.rate = rate(at->find("rate"));
  ports.name = pattern(at->find("name")).value_or("");
  to.push_back(std::move(ports));
}

void read_rails(const Cursor& rails, std::vector<ExpectedPorts>& to) {
  for (const Cursor& each : rails.elements()) {
    if (!each.object()) continue;
    each.only({"board_id", "name", "count", "rate", "state", "pcie", "firmware"});
    ExpectedPorts ports;
    ports.count = amount(each.find("count"));
    ports.rate = rate(each.find("rate"));
    ports.name = pattern(each.find("name")).value_or("");
    ports.board_id = pattern(each.find("board_id")).value_or("");
    ports.state = pattern(each.find("state")).value_or("ACTIVE");
    ports.firmware = pattern(each.find("firmware")).value_or("");
    ports.link = pcie(each.find("pcie"));
    to.push_back(std::move(ports));
  }
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

}  // namespace

std::string expectation_text(const std::filesystem::path& file) {
  constexpr std::uintmax_t max_bytes = 100'000;  // so that it fits on a command line
  try {
    return read_whole(file, max_bytes, Pipes::read);
  } catch (const Error& error) {
    throw UsageError(fmt::format("{}: {}", file.string(), error.what()));
  }
}

Expectation read_expectation(std::string_view text, const std::string& source, const Root& machine) {
  static const std::vector<std::string> members = {
      "schema",   "cpu",   "cpus",   "memory", "swap",   "numa_nodes",   "gpus",      "infiniband",
      "ethernet", "rails", "mounts", "kernel", "driver", "clock_source", "gpudirect", "bios"};
  if (is_nhc(text)) {
    const auto hostname = machine.text("proc/sys/kernel/hostname").value_or("");
    const auto name = std::filesystem::path(source).filename().string();
    return read_nhc(text, one_line(name), hostname.substr(0, hostname.find('.')));
  }
  Expectation expected;
  const Json json = parse_json(text, source);
  Problems problems(source);
  const Cursor root(json, problems);
  if (root.object() && root.schema(expectation_schema)) {
    root.only(members);
    if (const auto cpu = root.find("cpu")) read_cpu(*cpu, expected);
    expected.cpus = amount(root.find("cpus"));
    read_size(root.find("memory"), expected.memory_bytes, expected.max_memory_bytes);
    read_size(root.find("swap"), expected.swap_bytes, expected.max_swap_bytes);
    if (const auto gpus = root.find("gpus")) read_gpus(*gpus, expected);
    expected.numa_nodes = amount(root.find("numa_nodes"));
    read_ports(root.find("infiniband"), expected.infiniband);
    read_ports(root.find("ethernet"), expected.ethernet);
    if (const auto rails = root.find("rails")) read_rails(*rails, expected.rails);
    if (const auto mounts = root.find("mounts")) read_mounts(*mounts, expected);
    expected.kernel = pattern(root.find("kernel"));
    expected.driver = pattern(root.find("driver"));
    expected.clock_source = pattern(root.find("clock_source"));
    expected.bios = pattern(root.find("bios"));
    if (const auto gpudirect = root.find("gpudirect")) expected.gpudirect = gpudirect->flag();
  }
  problems.raise();
  return expected;
}

Expectation read_expectation(const std::filesystem::path& file, const Root& machine) {
  return read_expectation(expectation_text(file), file.string(), machine);
}

}  // namespace assay
