// x86-64: CPUID leaves, the registers that the operating system saves (XCR0), and permission to use AMX tiles.
#include "harness/device/cpu/cpuid.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace assay::cpu {

namespace {

struct Leaf {
  std::uint32_t a = 0, b = 0, c = 0, d = 0;
};

// Zeros if the processor has no such leaf.
Leaf leaf(std::uint32_t number, std::uint32_t sub = 0) {
  Leaf out;
  if (__get_cpuid_max(number & 0x80000000u, nullptr) >= number) __cpuid_count(number, sub, out.a, out.b, out.c, out.d);
  return out;
}

bool bit(std::uint32_t word, int index) { return (word >> index) & 1u; }

std::string text(std::initializer_list<std::uint32_t> words) {
  std::string out;
  for (const std::uint32_t word : words) {
    char bytes[4];
    std::memcpy(bytes, &word, 4);
    out.append(bytes, 4);
  }
  out.resize(std::strlen(out.c_str()));
  return out;
}

std::string trimmed(const std::string& s) {
  const std::size_t first = s.find_first_not_of(' ');
  return first == std::string::npos ? "" : s.substr(first, s.find_last_not_of(' ') - first + 1);
}

// Register state components that the operating system saves; the instruction needs OSXSAVE.
std::uint64_t enabled_state() {
  if (!bit(leaf(1).c, 27)) return 0;
  std::uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (std::uint64_t{high} << 32) | low;
}

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

std::string hypervisor_name() {
  if (!bit(leaf(1).c, 31)) return {};
  Leaf l;
  __cpuid(0x40000000u, l.a, l.b, l.c, l.d);  // outside the range that __get_cpuid_max knows
  const std::string signature = trimmed(text({l.b, l.c, l.d}));
  if (signature == "KVMKVMKVM") return "KVM";
  if (signature == "Microsoft Hv") return "Hyper-V";
  if (signature == "VMwareVMware") return "VMware";
  if (signature == "XenVMMXenVMM") return "Xen";
  return signature.empty() ? "unknown" : signature;
}

// Linux grants a process the tile registers only on request (arch_prctl ARCH_REQ_XCOMP_PERM, feature 18).
bool request_tiles() {
  constexpr long arch_req_xcomp_perm = 0x1023;
  constexpr long xtile_data = 18;
  return syscall(SYS_arch_prctl, arch_req_xcomp_perm, xtile_data) == 0;
}

}  // namespace

const Processor& processor() {
  static const Processor known = [] {
    Processor found;
    found.architecture = "x86_64";
    const Leaf l0 = leaf(0);
    const std::string vendor = text({l0.b, l0.d, l0.c});
    found.vendor = vendor == "GenuineIntel" ? "Intel" : vendor == "AuthenticAMD" ? "AMD" : vendor;
    const std::uint32_t signature = leaf(1).a;
    const int base_family = static_cast<int>((signature >> 8) & 0xf);
    found.family = base_family == 0xf ? base_family + static_cast<int>((signature >> 20) & 0xff) : base_family;
    found.model = static_cast<int>((signature >> 4) & 0xf);
    if (base_family == 0x6 || base_family == 0xf) found.model += static_cast<int>((signature >> 16) & 0xf) << 4;
    found.stepping = static_cast<int>(signature & 0xf);
    std::string brand;
    for (const std::uint32_t number : {0x80000002u, 0x80000003u, 0x80000004u}) {
      const Leaf l = leaf(number);
      std::string part = text({l.a, l.b, l.c, l.d});
      brand += part;
    }
    found.brand = trimmed(brand);
    if (found.vendor == "Intel") found.microarchitecture = intel_name(found.family, found.model, found.stepping);
    if (found.vendor == "AMD") found.microarchitecture = amd_name(found.family, found.model);
    found.hypervisor = hypervisor_name();
    return found;
  }();
  return known;
}

const InstructionSets& instruction_sets() {
  static const InstructionSets known = [] {
    InstructionSets found;
    const std::uint64_t state = enabled_state();
    const bool ymm = (state & 0x6) == 0x6;            // SSE and AVX state
    const bool zmm = ymm && (state & 0xe0) == 0xe0;   // opmask, upper ZMM halves, ZMM16-31
    const bool tiles = (state & 0x60000) == 0x60000;  // tile configuration and data
    const Leaf l1 = leaf(1), l7 = leaf(7), l71 = leaf(7).a >= 1 ? leaf(7, 1) : Leaf{};
    found.avx = ymm && bit(l1.c, 28);
    found.fma = ymm && bit(l1.c, 12);
    found.f16c = ymm && bit(l1.c, 29);
    found.avx2 = ymm && bit(l7.b, 5);
    found.avx_vnni = ymm && bit(l71.a, 4);
    found.avx512f = zmm && bit(l7.b, 16);
    found.avx512dq = zmm && bit(l7.b, 17);
    found.avx512bw = zmm && bit(l7.b, 30);
    found.avx512vl = zmm && bit(l7.b, 31);
    found.avx512_vnni = zmm && bit(l7.c, 11);
    found.avx512_bf16 = zmm && bit(l71.a, 5);
    found.avx512_fp16 = zmm && bit(l7.d, 23);
    found.amx_tile = tiles && bit(l7.d, 24) && request_tiles();
    found.amx_bf16 = found.amx_tile && bit(l7.d, 22);
    found.amx_int8 = found.amx_tile && bit(l7.d, 25);
    return found;
  }();
  return known;
}

}  // namespace assay::cpu
