// The parts of cpuid.h that do not depend on the architecture.
#include "harness/device/cpu/cpuid.h"

#include <utility>

namespace assay::cpu {

std::string Processor::name() const {
  if (!name_by_instructions.empty()) return name_by_instructions;
  if (!microarchitecture.empty()) return vendor + " " + microarchitecture;
  if (!brand.empty()) return brand;
  return vendor.empty() ? architecture + " processor" : vendor + " " + architecture + " processor";
}

std::vector<std::string> InstructionSets::names() const {
  const std::pair<bool, const char*> all[] = {{avx, "avx"},
                                              {avx2, "avx2"},
                                              {fma, "fma"},
                                              {f16c, "f16c"},
                                              {avx512f, "avx512f"},
                                              {avx512bw, "avx512bw"},
                                              {avx512dq, "avx512dq"},
                                              {avx512vl, "avx512vl"},
                                              {avx512_vnni, "avx512_vnni"},
                                              {avx512_bf16, "avx512_bf16"},
                                              {avx512_fp16, "avx512_fp16"},
                                              {avx_vnni, "avx_vnni"},
                                              {amx_tile, "amx_tile"},
                                              {amx_bf16, "amx_bf16"},
                                              {amx_int8, "amx_int8"}};
  std::vector<std::string> set;
  for (const auto& [present, name] : all)
    if (present) set.emplace_back(name);
  return set;
}

}  // namespace assay::cpu
