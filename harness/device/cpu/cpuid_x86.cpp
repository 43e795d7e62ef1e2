// x86-64: CPUID leaves, the registers that the operating system saves (XCR0), and permission to use AMX tiles.
#include "harness/device/cpu/cpuid.h"
#include "harness/device/cpu/names.h"

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
    const Leaf l7 = leaf(7), l71 = l7.a >= 1 ? leaf(7, 1) : Leaf{};
    const auto has = [&](std::string_view flag) {
      return flag == "amx_tile"      ? bit(l7.d, 24)
             : flag == "avx512_fp16" ? bit(l7.d, 23)
             : flag == "avx512_bf16" ? bit(l71.a, 5)
             : flag == "avx512_vnni" ? bit(l7.c, 11)
                                     : flag == "avx512f" && bit(l7.b, 16);
    };
    if (const auto other = contradiction(found.vendor, found.family, found.model, found.stepping, has))
      found.name_by_instructions = other->name;
    else
      found.microarchitecture = x86_microarchitecture(found.vendor, found.family, found.model, found.stepping);
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
