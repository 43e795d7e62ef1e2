// What is wrong with a machine or worth a remark: by the audit, by what spoils measurements, by the gate.
#pragma once

#include "harness/json/fwd.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

enum class Severity { info, warning, fault };  // fault: hard evidence that the machine must not be used
constexpr auto words(Severity) { return std::to_array<std::string_view>({"info", "warning", "fault"}); }

// The area of a machine, as codes name it: ASSAY-GPU-001.
enum class Area { gpu, cpu, memory, network, disk, system };
constexpr auto words(Area) { return std::to_array<std::string_view>({"GPU", "CPU", "MEM", "NET", "DISK", "SYS"}); }
// Absent for a text that is no code.
std::optional<Area> area_of(std::string_view code);

struct Finding {
  std::string id;  // "xid-fatal", "governor": stable, for scripts
  Severity severity = Severity::warning;
  std::string seen = {};          // on this machine, with its figures: "XID 79 at 2026-11-20T03:12:44Z, 2 times"
  std::string meaning = {};       // "the GPU has fallen off the bus"; of a spoiler, what it does to a measurement
  std::string fix = {};           // one command or setting
  std::string device = {};        // "0000:1b:00.0", "mlx5_0", "/scratch"; empty: the host
  std::optional<Area> area = {};  // absent: its kind is not in the table
  std::string host = {};          // empty: the machine that says it

  static void members(auto& self, auto& io) {
    io.required("id", self.id), io.required("severity", self.severity), io("device", self.device);
    io("seen", self.seen), io("meaning", self.meaning), io("fix", self.fix);
    io.sparse("area", self.area), io.sparse("host", self.host);
  }
};

bool has_fault(const std::vector<Finding>& findings);
// The worst of them first; those of one severity by id and device.
void sort_by_severity(std::vector<Finding>& findings);

// As run.json holds what spoils measurements: `meaning` is called "effect", and "seen" begins with the device.
Json spoilers_json(const std::vector<Finding>& findings);
// Reads it, also from runs of older versions, without trusting it; what is not a list of objects has none.
std::vector<Finding> read_spoilers(const Json& json);

}  // namespace assay
