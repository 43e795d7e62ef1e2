// A store as the detector and the reports see it: each series with the series that it continues, one value per night.
#pragma once

#include "harness/history/detect/detector.h"
#include "harness/history/store/store.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::history {

inline constexpr Night week = 7;

struct TrackedSeries {
  std::int64_t number = 0;                 // the lowest of its parts: it never changes
  std::int64_t newest = 0;                 // store::Series::number of its newest part
  store::SeriesIdentity identity;          // identity of its newest part
  std::string title;                       // "gemm f32 2048, throughput"
  std::string name;                        // "node1: gemm f32 2048, throughput"
  std::vector<std::string> former = {};    // names of its older parts before an alias
  Track track;                             // the median of each night's runs, on the scale of the oldest part
  double offset = 0;                       // added to a value of the track: on the scale of the newest part
  std::vector<std::int32_t> runs = {};     // the last run of each night: index of Contents::runs
  std::vector<std::int32_t> choices = {};  // and what was chosen in it: index of Contents::facts
  // A series of another protocol that this one follows without a common night, so that a change of protocol and one of
  // speed cannot be separated: index of a tracked series.
  std::optional<std::size_t> unbridged = {};

  // The figure in its unit.
  double figure(double value) const;
  // The place of the last night up to `night`, and of the first from `night` on.
  std::optional<std::size_t> at_or_before(Night night) const;
  std::optional<std::size_t> at_or_after(Night night) const;
};

// "node1: gemm f32 2048, throughput".
std::string series_name(const store::Series& series);

// Tracks all series, sorted by number, so that new series come last. A night's value is the median of that night's
// undisturbed figures, or of all if all are disturbed. A series of another protocol goes on with the values of the
// older one, where both ran on one night: older figures count until a night has none.
std::vector<TrackedSeries> tracked_series(const store::Contents& contents);

// Finds series by their names of now, else of before.
class SeriesNames {
 public:
  explicit SeriesNames(std::span<const TrackedSeries> series);
  // The index of the series of that name which has nights on both sides of a gap; absent if none has.
  std::optional<std::size_t> across(const std::string& name, Night last_before, Night first_after) const;

 private:
  std::span<const TrackedSeries> series_;
  std::multimap<std::string, std::size_t> by_name_;
};

// A case on all machines, a machine's family, a machine: series that something in common may have changed.
struct TrackedGroup {
  std::string name;  // "gemm on node1", "node1", "gemm f32 2048, throughput on all machines"
  Group group;
};

// Groups of at least five members each, ordered by their fifth, so that groups that became large enough later come
// last.
std::vector<TrackedGroup> tracked_groups(const std::vector<TrackedSeries>& series);

// The newest night of any series, and the newest before `night`; absent if there is none.
std::optional<Night> last_night(std::span<const TrackedSeries> series);
std::optional<Night> night_before(std::span<const TrackedSeries> series, Night night);

// Whether `pattern` names the series: anywhere in its name without `*` and `?`, else from end to end; case counts.
bool matches(std::string_view pattern, std::string_view name);

}  // namespace assay::history
