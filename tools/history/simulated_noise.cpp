// Generators of noise.
#include "tools/history/simulated_noise.h"

#include <cmath>

namespace assay::history {

namespace {

std::vector<double> autoregressive(Stream& random, std::size_t length, double correlation, auto innovation) {
  std::vector<double> values(length);
  double state = innovation(random);
  for (double& x : values) {
    x = state;
    state = correlation * state + std::sqrt(1 - correlation * correlation) * innovation(random);
  }
  return values;
}

double normal_of(Stream& random) { return random.normal(); }

// Outliers at `rate`, four of five of them slower, of 3 to `largest` standard deviations, of one to `longest` nights.
void add_outliers(Stream& random, std::vector<double>& values, double rate, double largest, int longest) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!random.chance(rate)) continue;
    const double size = (random.chance(0.8) ? -1 : 1) * random.uniform(3, largest);
    for (int left = random.whole(1, longest); left > 0 && i < values.size(); --left) values[i++] += size;
  }
}

// A second level that is entered with chance `enter` a night, and left after 1 to `longest` nights.
void add_mode(Stream& random, std::vector<double>& values, double distance, double enter, int longest) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!random.chance(enter)) continue;
    for (int left = random.whole(1, longest); left > 0 && i < values.size(); --left) values[i++] += distance;
  }
}

// What nightly figures of real machines show, each in some of the series: heavy or skewed tails, correlation of
// neighbouring nights, slow wandering, outliers and a second level of one to three nights, and figures rounded to a few
// digits. No recorded data went into it; the shares are chosen, not measured.
std::vector<double> mixed_noise(Stream& random, std::size_t length) {
  const double tails = random.uniform();
  const double correlation = random.chance(0.5) ? random.uniform(0, 0.6) : 0;
  std::vector<double> values = autoregressive(random, length, correlation, [&](Stream& r) {
    if (tails < 0.4) return r.normal();
    if (tails < 0.65) return r.student(4) / 1.1;
    if (tails < 0.85) return r.student(3) / 1.13;
    return 1 - r.exponential();  // skewed: slow nights are further away than fast ones
  });
  if (random.chance(0.2)) {
    const double share = random.uniform(0.05, 0.3);
    const std::vector<double> slow = autoregressive(random, length, 0.9, normal_of);
    for (std::size_t i = 0; i < length; ++i) values[i] = std::sqrt(1 - share) * values[i] + std::sqrt(share) * slow[i];
  }
  if (random.chance(0.4)) add_outliers(random, values, random.uniform(0.01, 0.08), 15, random.chance(0.2) ? 3 : 1);
  if (random.chance(0.15)) {
    const double enter = random.uniform(0.02, 0.3);
    add_mode(random, values, random.uniform(-4, 4), enter, random.whole(1, 3));
  }
  if (random.chance(0.15)) {
    const double step = random.uniform(0.3, 2);
    for (double& x : values) x = step * std::round(x / step);
  }
  return values;
}

}  // namespace

double Stream::exponential() { return -std::log(1 - uniform()); }

int Stream::whole(int low, int high) { return low + static_cast<int>(uniform() * (high - low + 1)); }

double Stream::student(int freedom) {
  double squares = 0;
  for (int i = 0; i < freedom; ++i) {
    const double x = normal();
    squares += x * x;
  }
  return normal() / std::sqrt(squares / freedom);
}

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::iid: return "iid";
    case Kind::ar: return "AR .5";
    case Kind::t3: return "t3";
    case Kind::outl: return "outl";
    case Kind::mixed: return "mixed";
    case Kind::modes: return "modes";
    case Kind::common: return "common";
    case Kind::ar3: return "AR .3";
    case Kind::drift: return "drift";
    case Kind::weekday: return "weekday";
  }
  return "";
}

std::vector<double> noise_of(Kind kind, std::size_t length, std::uint64_t seed, const std::vector<double>& common) {
  Stream random(seed, name_of(kind));
  switch (kind) {
    case Kind::iid: return autoregressive(random, length, 0, normal_of);
    case Kind::ar: return autoregressive(random, length, 0.5, normal_of);
    case Kind::t3: return autoregressive(random, length, 0, [](Stream& r) { return r.student(3) / 1.13; });
    case Kind::outl: {
      std::vector<double> values = autoregressive(random, length, 0.2, normal_of);
      add_outliers(random, values, 0.07, 10, 1);
      return values;
    }
    case Kind::mixed: return mixed_noise(random, length);
    case Kind::modes: {
      std::vector<double> values = autoregressive(random, length, 0.2, normal_of);
      add_mode(random, values, random.uniform(3, 5) * (random.chance(0.5) ? 1 : -1), 0.02, 14);
      return values;
    }
    case Kind::common: {
      std::vector<double> values = autoregressive(random, length, 0, normal_of);
      for (std::size_t i = 0; i < length; ++i) values[i] = std::sqrt(0.7) * values[i] + std::sqrt(0.3) * common.at(i);
      return values;
    }
    case Kind::ar3: return autoregressive(random, length, 0.3, normal_of);
    case Kind::drift: {
      std::vector<double> values = autoregressive(random, length, 0, normal_of);
      const double slope = random.uniform(-10, 10) / 365;
      for (std::size_t i = 0; i < length; ++i) values[i] += slope * static_cast<double>(i);
      return values;
    }
    case Kind::weekday: {
      std::vector<double> values = autoregressive(random, length, 0, normal_of);
      const double weekend = random.uniform(1, 4) * (random.chance(0.5) ? 1 : -1);
      for (std::size_t i = 0; i < length; ++i) values[i] += i % 7 < 2 ? weekend : 0;
      return values;
    }
  }
  return {};
}

}  // namespace assay::history
