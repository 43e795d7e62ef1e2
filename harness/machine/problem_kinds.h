// The table of every kind of finding: its code, how bad it is, what it means, what to do. It is problems.json in this
// folder, which the build puts into the program.
#pragma once

#include "harness/machine/finding.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// The part that a vendor has to look at.
enum class VendorPart { gpu, nvlink, network, pcie, memory, disk };
constexpr auto words(VendorPart) {
  return std::to_array<std::string_view>({"gpu", "nvlink", "network", "pcie", "memory", "disk"});
}

struct ProblemKind {
  std::string id;
  std::string code;                     // ASSAY-GPU-001, never used for anything else; empty: the gate never reports it
  std::optional<Area> area = {};        // that of the code, if there is one
  Severity severity = Severity::fault;  // of a finding of this kind
  Severity at_most = Severity::fault;   // before a job: an audit may take more seriously what does not hinder one
  std::string action = {};              // isolate, reset, monitor
  std::optional<VendorPart> part = {};  // absent: a setting, whose fix is known
  std::string meaning = {};
  std::string fix = {};  // empty: only tests of the gate find it
  bool by_area = false;  // an area of the audit names each device, so that a spoiler of this kind is one more

  static void members(auto& self, auto& io) {
    io.required("id", self.id), io("code", self.code), io("area", self.area), io.required("severity", self.severity);
    io("at_most", self.at_most), io("action", self.action), io("part", self.part), io("by_area", self.by_area);
    io.required("meaning", self.meaning), io("fix", self.fix);
  }
};

// The kind of what is expected and could not be judged.
inline constexpr std::string_view expected_unread = "expected-unread";

// In the order of their codes.
const std::vector<ProblemKind>& problem_kinds();
// Null for an id that the table lacks.
const ProblemKind* find_kind(std::string_view id);
// A finding of that kind. Throws Error for an id that the table lacks.
Finding finding_of(std::string_view id, std::string seen, std::string device = {});

}  // namespace assay
