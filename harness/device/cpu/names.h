// Names of processors by the numbers that they report, and what their instructions say against these.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace assay::cpu {

// "Zen 4", "Emerald Rapids" of `vendor` Intel or AMD; empty when unknown.
std::string x86_microarchitecture(std::string_view vendor, int family, int model, int stepping);

// A model that lacks an instruction set which the processor has, as a virtual machine may report.
struct Contradiction {
  std::string name;  // by what the instructions allow: "Intel, Sapphire Rapids or later (reported as model 167)"
  std::string flag;  // the instruction set as the kernel names it
};
// `has`: whether the processor has that instruction set. Absent for a model whose instruction sets are not known.
std::optional<Contradiction> contradiction(std::string_view vendor, int family, int model, int stepping,
                                           const std::function<bool(std::string_view flag)>& has);

// "Arm", "Ampere" of an implementer code of Arm's register MIDR_EL1 ("0x41"); the text itself when unknown.
std::string arm_implementer(std::string_view code);
// "Neoverse V2" of such a code and a part number ("0xd4f"); "part 0xfff" when unknown.
std::string arm_core(std::string_view implementer, std::string_view part);

}  // namespace assay::cpu
