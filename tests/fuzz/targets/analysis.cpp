// The analysis that a history keeps from one check to the next: whatever the store holds, a check finds what an
// analysis of all nights finds, and behind valid checksums it does not crash.
#include "harness/history/bytes.h"
#include "harness/history/series/kept.h"
#include "harness/record/content_hash.h"
#include "tests/fuzz/fuzz.h"

#include <cmath>

namespace assay::fuzz {

namespace {

using namespace history;

// Seven series of one machine, which differ in noise and in where they begin. Three become slower on night 30, one only
// for some nights; the hardware of all is another from night 20 on.
std::vector<TrackedSeries> made_series() {
  constexpr Night first = 20000, nights = 44;
  std::vector<TrackedSeries> all(7);
  for (std::size_t s = 0; s < all.size(); ++s) {
    TrackedSeries& one = all[s];
    one.number = one.newest = static_cast<std::int64_t>(s) + 1;
    one.identity.machine = "node1";
    one.identity.family = "gemm";
    one.identity.key = fmt::format("gemm/n={}", s);
    for (Night night = s == 6 ? 10 : 0; night < nights; ++night) {
      const double step = s < 3 && night >= 30 ? -0.2 : s == 3 && night >= 15 && night < 24 ? -0.3 : 0;
      one.track.nights.push_back(first + night);
      one.track.values.push_back(step + 0.01 * std::sin(static_cast<double>((s + 3) * 100003 + night * night * 7919)));
    }
    one.track.replaced = {first + 20};
    one.runs.assign(one.track.nights.size(), 0);
    one.choices.assign(one.track.nights.size(), 0);
  }
  return all;
}

struct Fixed {
  std::vector<TrackedSeries> series = made_series();
  std::vector<TrackedGroup> groups = tracked_groups(series);
  std::string kept;  // what the store of these series holds
  std::string states = found(kept);

  // All states that an analysis gives which goes on from `bytes`.
  std::string found(std::string& bytes) const {
    const Analysis analysis = analyse_from(bytes, series, groups, {});
    std::string all;
    for (const auto* list : {&analysis.series, &analysis.groups})
      for (const SeriesState& state : *list) all += to_bytes(state);
    for (const NightSummary& night : analysis.nights) all += fmt::format("{} {}\n", night.night, night.threshold);
    return all;
  }
};

std::string sealed(std::string bytes) {
  const std::uint64_t sum = hash64(bytes);
  bytes.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  return bytes;
}

// The bytes with changes, which are two bytes for the place and one for the value each.
std::string changed(std::string bytes, std::string_view changes) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(changes[at]); };
  for (std::size_t at = 0; at + 2 < changes.size() && at < 300; at += 3)
    bytes[(byte(at) + 256u * byte(at + 1)) % bytes.size()] = static_cast<char>(byte(at + 2));
  return bytes;
}

// Members of a state between the magic number and the checksum that state_of_bytes() wants.
std::string framed(std::string_view members) {
  std::string bytes = to_bytes({}).substr(0, sizeof(std::uint32_t)) + std::string(members);
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  bytes.append(reinterpret_cast<const char*>(&hash), sizeof hash);
  return bytes;
}

}  // namespace

void analysis(std::string_view input) {
  static const Fixed fixed;
  std::string found(input), behind = sealed(std::string(input));
  expect(fixed.found(found) == fixed.states, "other states than without what was kept");
  expect(found == fixed.kept, "what is kept is not what it should be");
  fixed.found(behind);
  // The same as changes of what is kept: numbers differ between processors, so that no seed can hold it.
  const std::string unsealed = fixed.kept.substr(0, fixed.kept.size() - sizeof(std::uint64_t));
  std::string again = sealed(changed(unsealed, input));
  const bool same = again == fixed.kept;
  const std::string states = fixed.found(again);
  if (same) expect(states == fixed.states && again == fixed.kept, "other states from what was kept");
  // In place of the state of every series and group.
  SeriesState state;
  try {
    state = state_of_bytes(framed(input));
  } catch (const DataError&) {
    return;
  }
  const Analysis past{std::vector(fixed.series.size(), state),
                      std::vector(fixed.groups.size(), state),
                      {{fixed.series[0].track.nights.end()[-2]}}};
  std::string kept = bytes_to_keep(past, fixed.series[0].track.nights.end()[-2], fixed.series, fixed.groups, {});
  fixed.found(kept);
}

}  // namespace assay::fuzz
