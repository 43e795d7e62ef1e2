// What must be equal for records to stand in one series: everything but what scaling itself changes.
#pragma once

#include "reports/data/run_set.h"

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::report::scaling {

// Family and parameters but for those `left_out`, as one text.
std::string configuration(const Record& record, std::span<const std::string_view> left_out);
// A label; empty when the record lacks it.
std::string label(const Record& record, const std::string& name);

// What of a record beyond its configuration must be equal.
enum class Aspect { hardware, device, seed, protocol, threads, labels };
inline constexpr std::size_t aspect_count = 6;
using Likeness = std::array<std::string, aspect_count>;

// Likenesses of many records; what a run alone decides is found once a run. `runs` must outlive it.
class Likenesses {
 public:
  explicit Likenesses(const RunSet& runs);
  // The batch is left out of the protocol: strong scaling changes a rank's, weak scaling the global one. Labels that
  // name what a world size itself changes (batch, peak, memory plan, transport) are left out too.
  Likeness of(const Entry& entry) const;

 private:
  std::vector<std::string> hardware_;                 // by run
  mutable std::map<std::string, std::string> kinds_;  // of devices, by name: many records, few names
};

// "other protocol (max_seconds 3, there 30); other seed (1, there 0)": of a record against one of the series.
std::string difference(const Entry& entry, const Likeness& own, const Entry& other, const Likeness& there);
// What tells a series from others of the same title: the aspects in which any two of them differ.
std::string distinction(const Likeness& own, std::span<const Likeness> all);

// Why a record can enter no series; absent when it can: its figures count for nothing (why_left_out), or its world size
// is not said.
std::optional<std::string> unfit(const Record& record);

}  // namespace assay::report::scaling
