// After NVIDIA's XID catalogue (docs.nvidia.com/deploy/xid-errors) and the names in nverror.h of the open kernel
// modules. Only numbers whose meaning is certain; what is not listed is said to be unknown.
#include "harness/audit/xids.h"

#include <algorithm>
#include <iterator>

namespace assay::audit {

namespace {

constexpr Severity fault = Severity::fault, warning = Severity::warning, info = Severity::info;
constexpr std::string_view application =
    "look at the program; if several programs fail on this GPU, run dcgmi diag -r 3";
constexpr std::string_view gpu_reset = "reset the GPU; if it returns, replace the card";
constexpr std::string_view nvlink = "reset the GPU; if it returns, check the NVLink board and cables";
constexpr std::string_view support =
    "update driver and firmware; if it returns, send nvidia-bug-report.log.gz to the vendor";

// Sorted by number.
constexpr Xid table[] = {
    {8, info, "a channel of a program did not answer", application},
    {11, info, "a stream of commands was damaged", application},
    {13, info, "a kernel made an exception, such as an address out of range", application},
    {25, info, "a stream of commands was damaged", application},
    {31, info, "a kernel touched an address that is not mapped", application},
    {32, info, "a stream of commands was damaged", application},
    {37, info, "the driver's firmware made an error in a program", application},
    {38, warning, "the driver's firmware made an error", support},
    {43, info, "a program's channel was stopped; the GPU itself is well", application},
    {44, warning, "a fault while switching contexts", support},
    {45, info, "channels were ended early, as a program was killed or after an earlier error", application},
    {46, fault, "the GPU stopped processing", gpu_reset},
    {48, fault, "an ECC error of two bits in the GPU's memory", gpu_reset},
    {54, fault, "auxiliary power is not connected", "connect the card's power cables"},
    {59, warning, "the power management unit made an error", support},
    {61, fault, "the power management unit stopped at a breakpoint", gpu_reset},
    {62, fault, "the power management unit has halted", gpu_reset},
    {63, warning, "a memory page was retired or a row marked to be remapped", "reset the GPU when it is free"},
    {64, fault, "a memory page could not be retired, or a row not be remapped",
     "reset the GPU; if it returns, replace the card"},
    {66, warning, "the driver touched memory without permission", support},
    {67, warning, "the driver touched memory without permission", support},
    {69, info, "a program used a class of commands wrongly", application},
    {74, fault, "an NVLink error", nvlink},
    {78, warning, "a virtual GPU could not be started", support},
    {79, fault, "the GPU has fallen off the bus",
     "power-cycle the machine; reseat the card, check its power; if it returns, replace it"},
    {80, fault, "data sent to the GPU were damaged", "reseat the card or its riser"},
    {92, warning, "many single-bit ECC errors were corrected", "watch it; if it returns, run fieldiag"},
    {93, warning, "the card's InfoROM has been erased more often than it allows", support},
    {94, warning, "an uncorrected memory error hit one program only",
     "restart the program; reset the GPU when it is free"},
    {95, fault, "an uncorrected memory error was not contained to one program", gpu_reset},
    {106, info, "a test message", "nothing"},
    {107, info, "a test message", "nothing"},
    {109, warning, "switching contexts took too long", support},
    {110, fault, "the GPU reported a security fault", gpu_reset},
    {119, fault, "the GPU's system processor (GSP) did not answer", gpu_reset},
    {120, fault, "the GPU's system processor (GSP) made an error", gpu_reset},
    {121, warning, "the link between CPU and GPU (C2C) corrected errors", "reset the GPU when it is free"},
    {122, warning, "the card's flash could not be read", support},
    {123, warning, "the card's flash could not be written", support},
    {125, warning, "the card's InfoROM has a damaged file system", support},
    {136, fault, "an NVLink could not be trained", nvlink},
    {137, info, "a program touched another GPU's memory over NVLink without permission", application},
    {140, fault, "an ECC error was not recovered", gpu_reset},
    {141, info, "a fast path of CUDA made an error", application},
    {143, fault, "the GPU could not be initialised", gpu_reset},
    {144, warning, "an NVLink error (SAW)", nvlink},
    {145, warning, "an NVLink error (RLW)", nvlink},
    {146, warning, "an NVLink error (TLW)", nvlink},
    {147, warning, "an NVLink error (TREX)", nvlink},
    {148, warning, "an NVLink error (NVLPW_CTRL)", nvlink},
    {149, warning, "an NVLink error (NETIR)", nvlink},
    {150, warning, "an NVLink error (MSE)", nvlink},
    {151, warning, "a key for confidential computing could not be changed", support},
    {154, fault, "the driver asks for a recovery of the GPU", "do what the line names: reset the GPU or reboot"},
    {155, warning, "an NVLink error defined by software", nvlink},
    {156, warning, "a part of the GPU was retired", "reset the GPU when it is free"},
    {157, fault, "a part of the GPU could not be retired", gpu_reset},
    {158, fault, "the GPU timed out fatally", gpu_reset},
    {159, warning, "an error on the link between CPU and GPU (C2C)", gpu_reset},
    {160, warning, "a channel of the GPU's memory was retired", "reset the GPU when it is free"},
    {161, warning, "a channel of the GPU's memory could not be retired", support},
    {162, info, "power smoothing is on again", "nothing"},
    {163, warning, "power smoothing was switched off by heat or a timeout",
     "check cooling; reset the GPU when it is free"},
    {164, warning, "the circuit for power smoothing is nearly worn out", "plan to replace the card"},
    {165, warning, "the circuit for power smoothing is worn out", "replace the card if its power may not swing"},
    {166, warning, "NVLink saw traffic before the link was set up for encryption", support},
    {167, fault, "PCI Express timed out fatally", "reset the GPU or reboot; reseat the card or its riser"},
    {168, warning, "errors in the protected part of the GPU's memory reduce its size", "switch ECC on, or reboot"},
    {169, fault, "a controller of the GPU has halted", gpu_reset},
    {170, warning, "NVLink raised an interrupt in confidential computing", support},
    {171, fault, "an ECC error in the GPU's memory (DRAM) was not corrected", gpu_reset},
    {172, fault, "an ECC error in the GPU's caches (SRAM) was not corrected", gpu_reset},
};

// Engines of which a GPU has several, with a number each.
struct Engines {
  std::int64_t first, last;
  std::string_view meaning;
};
constexpr std::string_view copying = "a copy engine made an exception";
constexpr std::string_view decoding = "a video or picture engine made an exception";
constexpr Engines engines[] = {{39, 41, copying},   {68, 68, decoding},  {70, 72, copying},   {75, 77, copying},
                               {82, 84, decoding},  {85, 85, copying},   {86, 86, decoding},  {88, 89, decoding},
                               {96, 104, decoding}, {126, 135, copying}, {139, 139, decoding}};

}  // namespace

std::optional<Xid> find_xid(std::int64_t number) {
  const auto* const found = std::ranges::lower_bound(table, number, {}, [](const Xid& xid) { return xid.number; });
  if (found != std::end(table) && found->number == number) return *found;
  for (const auto& [first, last, meaning] : engines)
    if (number >= first && number <= last) return Xid{number, info, meaning, application};
  return std::nullopt;
}

}  // namespace assay::audit
