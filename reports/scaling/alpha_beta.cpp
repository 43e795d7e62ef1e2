#include "reports/scaling/alpha_beta.h"

#include "reports/scaling/fit.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace assay::report::scaling {

namespace {

constexpr double resolution = 1e-3;       // relative; no clock or model is better, and exact figures must compare too
constexpr std::size_t max_searched = 64;  // sizes: the search for two breaks takes cubic time

double steps(int ranks) { return std::bit_width(static_cast<unsigned>(ranks - 1)); }  // ceil(log2 n)
double neighbours(int ranks) { return ranks - 1; }
double others(int ranks) { return static_cast<double>(ranks - 1) / ranks; }  // (n-1)/n

constexpr std::string_view thakur = "Thakur, Rabenseifner & Gropp 2005";
constexpr std::string_view sanders = "Sanders, Speck & Traeff 2009";

const std::array<Form, 14> all_forms{{
    {"all_reduce", "ring", "2(n-1) α + 2(n-1)/n S/B", "Patarasu & Yuan 2009", [](int n) { return 2 * neighbours(n); },
     [](int n) { return 2 * others(n); }},
    {"all_reduce", "tree", "2⌈log2 n⌉ α + 2 S/B", sanders, [](int n) { return 2 * steps(n); }, [](int) { return 2.0; }},
    {"all_reduce", "binomial tree", "2⌈log2 n⌉ (α + S/B)", thakur, [](int n) { return 2 * steps(n); },
     [](int n) { return 2 * steps(n); }},
    {"all_reduce", "recursive halving", "2⌈log2 n⌉ α + 2(n-1)/n S/B", thakur, [](int n) { return 2 * steps(n); },
     [](int n) { return 2 * others(n); }},
    {"all_gather", "ring", "(n-1) α + (n-1)/n S/B", thakur, neighbours, others},
    {"all_gather", "recursive doubling", "⌈log2 n⌉ α + (n-1)/n S/B", thakur, steps, others},
    {"reduce_scatter", "ring", "(n-1) α + (n-1)/n S/B", thakur, neighbours, others},
    {"reduce_scatter", "recursive halving", "⌈log2 n⌉ α + (n-1)/n S/B", thakur, steps, others},
    {"broadcast", "ring", "(⌈log2 n⌉+n-1) α + 2(n-1)/n S/B", thakur, [](int n) { return steps(n) + neighbours(n); },
     [](int n) { return 2 * others(n); }},
    {"broadcast", "tree", "⌈log2 n⌉ α + S/B", sanders, steps, [](int) { return 1.0; }},
    {"broadcast", "binomial tree", "⌈log2 n⌉ (α + S/B)", thakur, steps, steps},
    {"all_to_all", "pairwise", "(n-1) α + (n-1)/n S/B", thakur, neighbours, others},
    {"all_to_all", "Bruck", "⌈log2 n⌉ (α + S/2B)", thakur, steps, [](int n) { return steps(n) / 2; }},
    {"send_recv", "point to point", "α + S/B", "Hockney 1994", [](int) { return 1.0; }, [](int) { return 1.0; }},
}};

// A coefficient with its interval on logarithms; absent at 0, or if the figures do not determine it.
std::optional<Estimate> coefficient(const TermFit& fit, std::size_t term) {
  const double value = fit.coefficients[term];
  if (!(value > 0)) return std::nullopt;
  Terms gradient{};
  gradient[term] = 1 / value;
  const auto half = fit.half_width(gradient);
  if (!half) return Estimate{value, std::nullopt};
  if (*half > std::log(max_error_factor)) return std::nullopt;
  return Estimate{value, Interval{value * std::exp(-*half), value * std::exp(*half)}};
}

std::optional<Estimate> inverse(const std::optional<Estimate>& estimate) {
  if (!estimate) return std::nullopt;
  return ratio({1, Interval{1, 1}}, *estimate);
}

double squares(const TermFit& fit) {
  return (fit.rms * fit.rms + resolution * resolution) * static_cast<double>(fit.residuals.size());
}

// Sum of squared relative residuals of the line a + g S, a, g >= 0, that minimises the sum of (1 - f/t)^2. In closed
// form, as the search needs hundreds of them.
double misfit(std::span<const MessagePoint> points) {
  double one = 0, both = 0, square = 0;  // products of 1/t and S/t
  double a_sum = 0, g_sum = 0;
  for (const MessagePoint& point : points) {
    const double u = 1 / point.time.value, v = point.bytes / point.time.value;
    one += u * u;
    both += u * v;
    square += v * v;
    a_sum += u;
    g_sum += v;
  }
  const double determinant = one * square - both * both;
  double a = determinant > 0 ? (a_sum * square - g_sum * both) / determinant : 0;
  double g = determinant > 0 ? (g_sum * one - a_sum * both) / determinant : 0;
  if (!(a > 0)) a = 0, g = g_sum / square;
  if (!(g > 0)) g = 0, a = a_sum / one;
  double squares = 0;
  for (const MessagePoint& point : points) squares += std::pow(1 - (a + g * point.bytes) / point.time.value, 2);
  return squares;
}

}  // namespace

std::vector<Form> forms_of(std::string_view op) {
  std::vector<Form> forms;
  for (const Form& form : all_forms)
    if (form.op == op) forms.push_back(form);
  return forms;
}

std::optional<LineFit> fit_line(const MessageLine& line) {
  if (static_cast<int>(line.points.size()) < min_sizes) return std::nullopt;
  std::vector<Observation> points;
  for (const MessagePoint& point : line.points)
    points.push_back({{1, point.bytes}, point.time.value, relative_error(point.time)});
  const auto fit = fit_terms(points, 2);
  if (!fit) return std::nullopt;
  LineFit result;
  result.latency = coefficient(*fit, 0);
  result.bandwidth = inverse(coefficient(*fit, 1));
  result.latency_seconds = fit->coefficients[0];
  result.seconds_per_byte = fit->coefficients[1];
  result.rms = fit->rms;
  result.residuals = fit->residuals;
  if (result.latency && result.bandwidth) {
    const double a = result.latency_seconds, g = result.seconds_per_byte;
    const auto half = fit->half_width({1 / a, -1 / g});
    if (!half)
      result.half_size = Estimate{a / g, std::nullopt};
    else if (*half <= std::log(max_error_factor))
      result.half_size = Estimate{a / g, Interval{a / g * std::exp(-*half), a / g * std::exp(*half)}};
  }
  return result;
}

std::vector<MessageLine> split_by_size(const MessageLine& line) {
  const std::size_t sizes = line.points.size(), shortest = min_sizes;
  const auto count = static_cast<double>(sizes);
  if (sizes < 2 * shortest || sizes > max_searched) return {line};
  const double whole = misfit(line.points);
  if (whole <= good_rms * good_rms * count) return {line};
  const auto cost = [&](std::size_t from, std::size_t to) {
    return misfit(std::span(line.points).subspan(from, to - from));
  };
  // Two coefficients per piece, and a place per break.
  const auto criterion = [&](double squares, std::size_t pieces) {
    return count * std::log(squares / count + resolution * resolution) + 6.0 * static_cast<double>(pieces);
  };
  double best_two = std::numeric_limits<double>::infinity(), best_three = best_two;
  std::vector<std::size_t> two, three;
  for (std::size_t i = shortest; i + shortest <= sizes; ++i) {
    const double left = cost(0, i);
    if (const double all = left + cost(i, sizes); all < best_two) best_two = all, two = {i};
    for (std::size_t j = i + shortest; j + shortest <= sizes; ++j)
      if (const double all = left + cost(i, j) + cost(j, sizes); all < best_three) best_three = all, three = {i, j};
  }
  std::vector<std::size_t> breaks;
  double held = criterion(whole, 1);
  if (const double gained = criterion(best_two, 2); gained <= held - akaike_margin) held = gained, breaks = two;
  if (criterion(best_three, 3) <= held - (breaks.empty() ? 2 : 1) * akaike_margin) breaks = three;
  breaks.push_back(sizes);
  std::vector<MessageLine> pieces;
  std::size_t from = 0;
  for (const std::size_t to : breaks) {
    const auto begin = line.points.begin();
    pieces.push_back(
        {line.ranks, {begin + static_cast<std::ptrdiff_t>(from), begin + static_cast<std::ptrdiff_t>(to)}});
    from = to;
  }
  return pieces;
}

std::vector<FormFit> fit_forms(std::string_view op, const std::vector<MessageLine>& lines) {
  std::vector<FormFit> fits;
  std::vector<double> costs;
  for (const Form& form : forms_of(op)) {
    std::vector<Observation> points;
    FormFit result;
    result.form = form;
    for (const MessageLine& line : lines) {
      result.worlds.push_back(line.ranks);
      for (const MessagePoint& point : line.points)
        points.push_back({{form.alpha_terms(line.ranks), form.volume(line.ranks) * point.bytes},
                          point.time.value,
                          relative_error(point.time)});
    }
    if (static_cast<int>(points.size()) < min_sizes) continue;
    const auto fit = fit_terms(points, 2);
    if (!fit) continue;
    result.alpha = coefficient(*fit, 0);
    result.bandwidth = inverse(coefficient(*fit, 1));
    result.rms = fit->rms;
    costs.push_back(squares(*fit));
    fits.push_back(std::move(result));
  }
  if (fits.empty()) return fits;
  const double best = *std::ranges::min_element(costs);
  std::size_t left = 0, last = 0, figures = 0;
  for (const MessageLine& line : lines) figures += line.points.size();
  for (std::size_t i = 0; i < fits.size(); ++i) {
    const double difference = static_cast<double>(figures) * std::log(costs[i] / best);
    if (difference >= akaike_margin || fits[i].rms > worst_rms)
      fits[i].verdict = Verdict::refuted;
    else
      ++left, last = i;
  }
  if (left == 1 && fits[last].rms <= good_rms) fits[last].verdict = Verdict::fits_best;
  return fits;
}

}  // namespace assay::report::scaling
