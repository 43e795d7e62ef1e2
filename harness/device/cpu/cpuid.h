// Which processor this is, and which instruction sets it has and the operating system allows.
#pragma once

#include <string>
#include <vector>

namespace assay::cpu {

struct Processor {
  std::string architecture;       // x86_64, aarch64
  std::string vendor;             // Intel, AMD, otherwise the processor's own string
  std::string brand;              // the vendor's string: "AMD EPYC 9654 96-Core Processor"
  std::string microarchitecture;  // "Zen 4", "Emerald Rapids"; empty when unknown
  // Names the CPU by what its instructions allow if they contradict the model that it reports; else empty.
  std::string name_by_instructions;
  int family = 0;
  int model = 0;
  int stepping = 0;
  std::string hypervisor;  // KVM, Hyper-V, VMware, Xen, ...; empty on bare metal

  // "Intel Emerald Rapids"; the brand if the microarchitecture is unknown.
  std::string name() const;
};

// Usable instruction sets: the processor has them and the operating system saves their registers.
struct InstructionSets {
  bool avx = false;
  bool avx2 = false;
  bool fma = false;
  bool f16c = false;
  bool avx512f = false;
  bool avx512bw = false;
  bool avx512dq = false;
  bool avx512vl = false;
  bool avx512_vnni = false;
  bool avx512_bf16 = false;
  bool avx512_fp16 = false;
  bool avx_vnni = false;
  // Tiles need a permission from the kernel; set if it was requested and granted.
  bool amx_tile = false;
  bool amx_bf16 = false;
  bool amx_int8 = false;

  // Names of the members that are set.
  std::vector<std::string> names() const;
};

const Processor& processor();
const InstructionSets& instruction_sets();

}  // namespace assay::cpu
