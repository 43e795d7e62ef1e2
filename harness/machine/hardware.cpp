// Reading hardware sheets, strictly: a figure without a source is refused.
#include "harness/machine/hardware.h"

#include "harness/core/configs.h"
#include "harness/core/dtype.h"
#include "harness/core/glob.h"
#include "harness/core/units.h"
#include "harness/json/json.h"
#include "harness/machine/links.h"

#include <algorithm>
#include <cctype>

namespace assay {
namespace {

constexpr int hardware_schema = 1;
// In base units: 989 for a peak in TFLOP/s is refused, and so is what would make times that are no numbers.
constexpr double min_rate = 1e6, max_rate = 1e24, min_watts = 0.1, max_watts = 1e6;

double bytes_of(std::string_view text) { return static_cast<double>(parse_bytes(text)); }

// Non-empty texts of an array.
std::vector<std::string> texts(const Cursor& list) {
  std::vector<std::string> all;
  for (const auto& each : list.elements())
    if (const auto text = each.text()) {
      if (text->empty()) each.error("is empty");
      all.push_back(*text);
    }
  return all;
}

std::optional<double> rate(const std::optional<Cursor>& at) {
  return at ? at->number(min_rate, max_rate) : std::nullopt;
}

void read_peak(const Cursor& peak, HardwareSheet& sheet) {
  for (const auto& [dtype, value] : peak.members()) {
    if (!dtype_from(dtype) && dtype != "f64_tensor" && dtype != "int8") value.error("is not a dtype");
    if (const auto flops = rate(value)) sheet.peak[dtype] = *flops;
  }
}

void read_links(const Cursor& links, HardwareSheet& sheet) {
  static const std::vector<std::string> members = {"name", "bytes_per_second"};
  for (const auto& each : links.elements()) {
    if (!each.object()) continue;
    each.only(members);
    const auto name_at = each.need("name");
    const auto name = name_at ? name_at->text() : std::nullopt;
    const auto speed = rate(each.need("bytes_per_second"));
    if (name && speed) sheet.links.push_back({*name, *speed});
  }
}

void read_sources(const Cursor& sources, HardwareSheet& sheet) {
  for (const auto& [member, value] : sources.members())
    if (const auto text = value.text()) {
      if (text->size() < 10) value.error("must name a document");
      sheet.sources[member] = *text;
    }
}

}  // namespace

std::optional<double> HardwareSheet::peak_of(std::string_view dtype) const {
  auto found = peak.find(std::string(dtype == "fp8" ? "fp8_e4m3" : dtype));
  if (dtype == "f64" && peak.contains("f64_tensor")) found = peak.find("f64_tensor");
  return found == peak.end() ? std::nullopt : std::optional(found->second);
}

HardwareSheet read_hardware(const std::filesystem::path& file) {
  static const std::vector<std::string> kinds = {"gpu", "cpu"};
  const auto read = [&](const Cursor& root) {
    HardwareSheet sheet;
    sheet.name = file.stem().string();
    if (const auto at = root.need("description")) sheet.description = at->text().value_or("");
    if (const auto at = root.need("kind")) sheet.kind = at->choice(kinds).value_or("");
    if (const auto at = root.need("match")) {
      sheet.match = texts(*at);
      if (sheet.match.empty()) at->error("needs a pattern");
    }
    if (const auto at = root.find("pci_ids")) sheet.pci_ids = texts(*at);
    if (const auto at = root.find("sold_as")) sheet.sold_as = texts(*at);
    if (const auto at = root.find("peak")) read_peak(*at, sheet);
    sheet.memory_bandwidth = rate(root.find("memory_bandwidth"));
    if (const auto at = root.find("memory_bytes"))
      if (const auto bytes = at->quantity(bytes_of, 1, 1e18)) sheet.memory_bytes = static_cast<std::uint64_t>(*bytes);
    if (const auto at = root.find("tdp_watts")) sheet.tdp_watts = at->number(min_watts, max_watts);
    if (const auto at = root.find("links")) read_links(*at, sheet);
    if (const auto at = root.need("sources")) {
      read_sources(*at, sheet);
      for (const auto* figure : {"peak", "memory_bandwidth", "memory_bytes", "tdp_watts", "links"})
        if (root.find(figure) && !sheet.sources.contains(figure)) at->error(std::string("has no source for ") + figure);
    }
    return sheet;
  };
  return read_strictly(file, hardware_schema,
                       {"schema", "description", "kind", "match", "pci_ids", "sold_as", "peak", "memory_bandwidth",
                        "memory_bytes", "tdp_watts", "links", "sources"},
                       read);
}

const std::vector<HardwareSheet>& shipped_hardware() {
  static const std::vector<HardwareSheet> sheets = [] {
    std::vector<HardwareSheet> all;
    for (const auto& file : json_files(configs_dir() / "hardware")) all.push_back(read_hardware(file));
    return all;
  }();
  return sheets;
}

HardwareSheet hardware_named(const std::string& word) {
  return read_hardware(find_config("hardware", "hardware sheet", word));
}

const HardwareSheet::Link* fastest_link(const HardwareSheet& sheet) {
  const auto fastest = std::ranges::max_element(sheet.links, {}, &HardwareSheet::Link::bytes_per_second);
  return fastest == sheet.links.end() ? nullptr : &*fastest;
}

const HardwareSheet::Link* pcie_link(const HardwareSheet& sheet) {
  const HardwareSheet::Link* best = nullptr;
  for (const HardwareSheet::Link& link : sheet.links)
    if (link.name.starts_with("PCIe") && (!best || link.bytes_per_second > best->bytes_per_second)) best = &link;
  return best;
}

const HardwareSheet* find_hardware(std::span<const HardwareSheet> sheets, std::string_view device_name) {
  for (const auto& sheet : sheets)
    for (const auto& pattern : sheet.match)
      if (matches(pattern, device_name)) return &sheet;
  return nullptr;
}

const HardwareSheet* find_hardware_by_pci(std::span<const HardwareSheet> sheets, std::string_view pci_id) {
  for (const auto& sheet : sheets)
    if (std::ranges::find(sheet.pci_ids, pci_id) != sheet.pci_ids.end()) return &sheet;
  return nullptr;
}

double pcie_rate(double lanes, double gigatransfers) {
  const double code = gigatransfers < 6 ? 8.0 / 10 : gigatransfers < 60 ? 128.0 / 130 : 242.0 / 256;
  return lanes * gigatransfers * 1e9 * code / 8;
}

bool matches(std::string_view pattern, std::string_view text) {
  return glob_matches(pattern, text, [](char p, char t) {
    return p == '?' || std::tolower(static_cast<unsigned char>(p)) == std::tolower(static_cast<unsigned char>(t));
  });
}

}  // namespace assay
