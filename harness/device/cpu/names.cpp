#include "harness/device/cpu/names.h"

#include "harness/core/whole_number.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace assay::cpu {

namespace {

bool within(int value, int low, int high) { return low <= value && value <= high; }

// Display models of Intel's family 6 (Intel SDM, volume 4, table 2-1).
std::string intel_name(int family, int model, int stepping) {
  if (family != 6) return {};
  switch (model) {
    case 0x3c:
    case 0x3f:
    case 0x45:
    case 0x46: return "Haswell";
    case 0x3d:
    case 0x47:
    case 0x4f:
    case 0x56: return "Broadwell";
    case 0x4e:
    case 0x5e: return "Skylake";
    case 0x55: return stepping >= 10 ? "Cooper Lake" : stepping >= 5 ? "Cascade Lake" : "Skylake-SP";
    case 0x8e:
    case 0x9e: return "Kaby Lake";
    case 0xa5:
    case 0xa6: return "Comet Lake";
    case 0x6a:
    case 0x6c: return "Ice Lake-SP";
    case 0x7d:
    case 0x7e: return "Ice Lake";
    case 0x8c:
    case 0x8d: return "Tiger Lake";
    case 0xa7: return "Rocket Lake";
    case 0x97:
    case 0x9a: return "Alder Lake";
    case 0xb7:
    case 0xba:
    case 0xbf: return "Raptor Lake";
    case 0xaa:
    case 0xac: return "Meteor Lake";
    case 0xb5:
    case 0xc5:
    case 0xc6: return "Arrow Lake";
    case 0xbd: return "Lunar Lake";
    case 0x8f: return "Sapphire Rapids";
    case 0xcf: return "Emerald Rapids";
    case 0xad:
    case 0xae: return "Granite Rapids";
    case 0xaf: return "Sierra Forest";
    default: return {};
  }
}

// Model ranges of AMD's families as the Linux kernel groups them.
std::string amd_name(int family, int model) {
  if (family == 0x17) {
    if (within(model, 0x08, 0x08) || within(model, 0x18, 0x18)) return "Zen+";
    if (within(model, 0x00, 0x2f) || within(model, 0x50, 0x5f)) return "Zen";
    return "Zen 2";
  }
  if (family == 0x19) return within(model, 0x10, 0x1f) || within(model, 0x60, 0xaf) ? "Zen 4" : "Zen 3";
  if (family == 0x1a) {
    if (within(model, 0x00, 0x2f) || within(model, 0x40, 0x4f) || within(model, 0x60, 0x7f)) return "Zen 5";
    if (within(model, 0x50, 0x5f) || within(model, 0x80, 0xaf) || within(model, 0xc0, 0xcf)) return "Zen 6";
  }
  return {};
}

// From the newest on, those that first had an instruction set. Each name has the sets of those after it, too.
struct Step {
  std::string_view flag;
  std::vector<std::string_view> since;  // the first of them names the step
};
const std::vector<Step>& steps_of(std::string_view vendor) {
  static const std::vector<Step> intel = {
      {"amx_tile", {"Sapphire Rapids", "Emerald Rapids", "Granite Rapids"}},
      {"avx512_fp16", {"Sapphire Rapids", "Alder Lake"}},
      {"avx512_bf16", {"Cooper Lake"}},
      {"avx512_vnni", {"Cascade Lake", "Ice Lake", "Ice Lake-SP", "Tiger Lake", "Rocket Lake"}},
      {"avx512f", {"Skylake-SP"}}};
  static const std::vector<Step> amd = {{"avx512f", {"Zen 4", "Zen 5", "Zen 6"}}};
  static const std::vector<Step> none;
  return vendor == "Intel" ? intel : vendor == "AMD" ? amd : none;
}

// As lscpu of util-linux names them: processors of servers and of developers' boards.
struct ArmPart {
  int implementer, part;
  std::string_view name;
};
// clang-format off
constexpr ArmPart arm_parts[] = {
    {0x41, 0xd03, "Cortex-A53"}, {0x41, 0xd05, "Cortex-A55"}, {0x41, 0xd07, "Cortex-A57"}, {0x41, 0xd08, "Cortex-A72"},
    {0x41, 0xd09, "Cortex-A73"}, {0x41, 0xd0a, "Cortex-A75"}, {0x41, 0xd0b, "Cortex-A76"}, {0x41, 0xd0c, "Neoverse N1"},
    {0x41, 0xd0d, "Cortex-A77"}, {0x41, 0xd40, "Neoverse V1"}, {0x41, 0xd41, "Cortex-A78"}, {0x41, 0xd42, "Cortex-A78AE"},
    {0x41, 0xd44, "Cortex-X1"}, {0x41, 0xd46, "Cortex-A510"}, {0x41, 0xd47, "Cortex-A710"}, {0x41, 0xd48, "Cortex-X2"},
    {0x41, 0xd49, "Neoverse N2"}, {0x41, 0xd4a, "Neoverse E1"}, {0x41, 0xd4d, "Cortex-A715"}, {0x41, 0xd4e, "Cortex-X3"},
    {0x41, 0xd4f, "Neoverse V2"}, {0x41, 0xd80, "Cortex-A520"}, {0x41, 0xd81, "Cortex-A720"}, {0x41, 0xd82, "Cortex-X4"},
    {0x41, 0xd83, "Neoverse V3AE"}, {0x41, 0xd84, "Neoverse V3"}, {0x41, 0xd85, "Cortex-X925"}, {0x41, 0xd87, "Cortex-A725"},
    {0x41, 0xd8e, "Neoverse N3"}, {0x42, 0x516, "ThunderX2"}, {0x43, 0x0a1, "ThunderX 88XX"}, {0x43, 0x0af, "ThunderX2 99xx"},
    {0x43, 0x0b8, "ThunderX3 T110"}, {0x46, 0x001, "A64FX"}, {0x46, 0x003, "MONAKA"}, {0x48, 0xd01, "Kunpeng 920"},
    {0x48, 0xd02, "Kunpeng 920"}, {0x48, 0xd06, "Kunpeng 950"}, {0x4e, 0x004, "Carmel"}, {0x4e, 0x010, "Olympus"},
    {0x50, 0x000, "X-Gene"}, {0x51, 0x001, "Oryon"}, {0x51, 0xc00, "Falkor"}, {0x6d, 0xd49, "Azure Cobalt 100"},
    {0xc0, 0xac3, "AmpereOne"}, {0xc0, 0xac4, "AmpereOne A"}};
constexpr std::pair<int, std::string_view> implementers[] = {
    {0x41, "Arm"}, {0x42, "Broadcom"}, {0x43, "Cavium"}, {0x46, "Fujitsu"}, {0x48, "HiSilicon"}, {0x4d, "Motorola"},
    {0x4e, "NVIDIA"}, {0x50, "APM"}, {0x51, "Qualcomm"}, {0x53, "Samsung"}, {0x56, "Marvell"}, {0x61, "Apple"},
    {0x69, "Intel"}, {0x6d, "Microsoft"}, {0x70, "Phytium"}, {0xc0, "Ampere"}};
// clang-format on

// "0x41"; -1 if it is no such number.
int number_of(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  return whole_number<int>(text, 16).value_or(-1);
}

}  // namespace

std::string x86_microarchitecture(std::string_view vendor, int family, int model, int stepping) {
  if (vendor == "Intel") return intel_name(family, model, stepping);
  return vendor == "AMD" ? amd_name(family, model) : std::string();
}

std::optional<Contradiction> contradiction(std::string_view vendor, int family, int model, int stepping,
                                           const std::function<bool(std::string_view flag)>& has) {
  const auto name = x86_microarchitecture(vendor, family, model, stepping);
  if (name.empty()) return std::nullopt;
  for (const Step& step : steps_of(vendor)) {
    if (std::ranges::find(step.since, name) != step.since.end()) return std::nullopt;
    if (!has(step.flag)) continue;
    auto reported = "model " + std::to_string(model);
    if (vendor == "AMD") reported = "family " + std::to_string(family) + ", " + reported;
    return Contradiction{
        std::string(vendor) + ", " + std::string(step.since.front()) + " or later (reported as " + reported + ")",
        std::string(step.flag)};
  }
  return std::nullopt;
}

std::string arm_implementer(std::string_view code) {
  for (const auto& [number, name] : implementers)
    if (number == number_of(code)) return std::string(name);
  return std::string(code);
}

std::string arm_core(std::string_view implementer, std::string_view part) {
  for (const ArmPart& one : arm_parts)
    if (one.implementer == number_of(implementer) && one.part == number_of(part)) return std::string(one.name);
  return "part " + std::string(part);
}

}  // namespace assay::cpu
