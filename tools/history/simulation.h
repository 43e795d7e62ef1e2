// What the simulations share: made-up series, what the detector makes of them, tables and bounds.
#pragma once

#include "harness/history/detect/regimes.h"
#include "tools/history/simulated_noise.h"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace assay::history {

inline constexpr Night first_night = 20000;
inline constexpr double sigma = 0.01;
inline constexpr std::size_t nights = 335;
inline constexpr std::size_t year = 365;

// Calls work(i) for every i < count, each once, in two threads.
void parallel(std::size_t count, const std::function<void(std::size_t)>& work);

// A value per night from first_night on: `values` times `scale`.
Track track_of(std::vector<double> values, double scale = sigma);
// All nights of a track.
Walked walked(const Track& track, const Options& options);
// The alarms of one series among `tests`, if nothing else changes on the same night: the first trial of each change
// that passes.
std::vector<const Trial*> alarms_of(const Walked& made, const Options& options, std::size_t tests);

// What became of a step. Counts of simulated series, of those that were found at all for the last four.
struct Found {
  std::size_t within[3] = {};  // 7, 14, 30 nights
  std::size_t found = 0;
  std::size_t exact = 0;    // the night
  std::size_t near = 0;     // within two nights
  std::size_t covered = 0;  // by the interval, as of the last night
};
// Counts the alarm for a step of that size at that place.
void add_alarm(const Walked& made, std::size_t at, double shift, std::size_t tests, const Options& options,
               Found& found);

// Markdown.
std::string row(const std::string& head, const std::vector<std::string>& cells);
std::string rule(std::size_t cells);
double share_of(std::size_t n, std::size_t of);

std::string rate(double x);

// The most of `n` cases that happen with a chance of 1e-4 at least, if each has that chance.
std::size_t binomial_limit(std::size_t n, double chance);

// Names a bound that does not hold on stderr; broken_bounds() is then above 0.
void bound(bool holds, const std::string& what);
std::size_t broken_bounds();

}  // namespace assay::history
