// Attributes that must be equal for records to be in one series: everything that scaling itself does not change.
#pragma once

#include "harness/runs/run_set.h"

#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::report::scaling {

// Family and parameters except those `left_out`, as one text.
std::string configuration(const Record& record, std::span<const std::string_view> left_out);

// Aspects that must be equal besides the configuration. `labels` are conditions, choices, and the labels of the run.
enum class Aspect { hardware, device, seed, protocol, threads, labels };
inline constexpr std::size_t aspect_count = 6;
using Likeness = std::array<std::string, aspect_count>;

// Likenesses of many records; what depends only on the run is found once per run. `runs` must outlive it.
class Likenesses {
 public:
  explicit Likenesses(const RunSet& runs);
  // Without the batch (strong scaling changes a rank's, weak scaling the global one) and choices that follow from it.
  Likeness of(const Entry& entry) const;

 private:
  std::vector<std::string> hardware_;                 // one for each run
  std::vector<std::set<std::string>> labels_;         // for each run the names of labels that must be equal
  mutable std::map<std::string, std::string> kinds_;  // kind of each device's name, cached
};

// "different protocol (max_seconds 3 instead of 30); different seed (1 instead of 0)": a record against a series.
std::string difference(const Entry& entry, const Likeness& own, const Entry& other, const Likeness& theirs);
// The difference of a series from others of the same title: the aspects in which any two of them differ.
std::string distinction(const Likeness& own, std::span<const Likeness> all);

// Why a record cannot be in any series; absent if it can: its figures do not count (why_left_out), or its world size is
// unknown.
std::optional<std::string> unfit(const Record& record);

}  // namespace assay::report::scaling
