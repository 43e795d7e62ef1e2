// Which changes the detector finds in series from anywhere: a line per series on stdin, its name and natural logarithms
// ("nan" where there is none); a line per series on stdout, its name and the places, from 0, from which on it differs.
// Prints alarms and their ends; with --levels the steps between the levels that the detector sees at the end: those that
// alarmed and have not gone back, and those that were accepted without an alarm.
#include "harness/history/detect/detector.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace assay::history {
namespace {

std::vector<Night> levels(const SeriesState& state) {
  std::vector<Night> all;
  for (const Change& change : state.changes)
    if (change.stage == Stage::open || change.stage == Stage::small) all.push_back(change.first_after);
  return all;
}

// The places of alarms, and of returns from those that recovered.
std::vector<Night> alarms(const SeriesState& state) {
  std::vector<Night> all;
  for (const Change& change : state.changes) {
    if (!change.opened) continue;
    all.push_back(change.first_after);
    for (const SeriesState::Excursion& excursion : state.excursions)
      if (change.stage == Stage::recovered && excursion.first == change.first_after) all.push_back(excursion.last + 1);
  }
  std::ranges::sort(all);
  return all;
}

int run(bool of_levels) {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string name;
    if (!(words >> name)) continue;
    Track track;
    Night night = 0;
    for (std::string word; words >> word; ++night) {
      char* end = nullptr;
      const double value = std::strtod(word.c_str(), &end);
      if (*end != '\0') {
        fmt::print(stderr, "history_changes: {}: \"{}\" is not a number\n", name, word);
        return 2;
      }
      if (std::isfinite(value)) track.nights.push_back(night), track.values.push_back(value);
    }
    if (track.nights.empty()) {
      fmt::print(stderr, "history_changes: {}: no numbers\n", name);
      return 2;
    }
    fmt::print("{}", name);
    const Analysis analysis = analyse(std::span(&track, 1), {}, {});
    for (const Night place : (of_levels ? levels : alarms)(analysis.series.front())) fmt::print(" {}", place);
    fmt::print("\n");
  }
  return 0;
}

}  // namespace
}  // namespace assay::history

int main(int count, char** words) {
  const bool of_levels = count == 2 && std::string_view(words[1]) == "--levels";
  if (count > 1 && !of_levels) {
    fmt::print(stderr, "history_changes: only --levels can be asked for\n");
    return 2;
  }
  return assay::history::run(of_levels);
}
