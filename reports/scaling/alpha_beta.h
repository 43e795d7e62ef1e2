// The alpha-beta model of collectives: fixed cost per call, cost per byte, and which algorithm explains them.
#pragma once

#include "reports/scaling/collectives.h"

#include <optional>
#include <string_view>
#include <vector>

namespace assay::report::scaling {

inline constexpr int min_sizes = 3;  // two determine a line and leave no residual to judge it by

// t = A + G S over the message sizes of one world size. Every form below is such a line at a fixed world size.
struct LineFit {
  std::optional<Estimate> latency = {};    // A, seconds; absent if it does not show (A = 0)
  std::optional<Estimate> bandwidth = {};  // 1 / G, algbw of an infinite message, B/s; absent if it does not show
  std::optional<Estimate> half_size = {};  // n_1/2 = A / G, bytes: both parts take equal time (Hockney & Jesshope 1988)
  double latency_seconds = 0;              // A
  double seconds_per_byte = 0;             // G
  double rms = 0;                          // root mean square of the relative residuals
  std::vector<double> residuals;           // ln(t / fit), one per point

  double at(double bytes) const { return latency_seconds + seconds_per_byte * bytes; }
};

// Absent with fewer than min_sizes sizes.
std::optional<LineFit> fit_line(const MessageLine& line);

inline constexpr double worst_rms = 0.25;  // largest rms of relative residuals at which a model holds
inline constexpr double good_rms = 0.10;   // within it, it does

// Splits the line into pieces of adjacent sizes if one fit exceeds `good_rms` and pieces fit much better:
// libraries change algorithm and transport with the size, and no fit spans that. At most three pieces of at least
// min_sizes, if each lowers Akaike's criterion by at least 10, counting its place and coefficients (Burnham & Anderson
// 2002). Otherwise one piece, the whole line.
std::vector<MessageLine> split_by_size(const MessageLine& line);

// How an algorithm's cost depends on the world size n: t = alpha_terms(n) alpha + volume(n) S / B.
struct Form {
  std::string_view op;
  std::string_view name;     // ring, tree
  std::string_view formula;  // text for people
  std::string_view source;
  double (*alpha_terms)(int ranks);
  double (*volume)(int ranks);
};

// Empty for an unknown op.
std::vector<Form> forms_of(std::string_view op);

enum class Verdict { fits_best, cannot_tell, refuted };

struct FormFit {
  Form form;
  std::optional<Estimate> alpha = {};      // seconds per message
  std::optional<Estimate> bandwidth = {};  // B of a link, B/s
  double rms = 0;
  std::vector<int> worlds;
  Verdict verdict = Verdict::cannot_tell;
};

// Fits every form of the op over all world sizes at once; none with fewer than min_sizes figures. A form is refuted if
// another form explains the same figures better beyond chance (Akaike difference of at least 10), or if it misses them
// by more than `worst_rms`. The best is named only if it alone is left and within `good_rms`: ring and tree are the
// same line at one world size.
std::vector<FormFit> fit_forms(std::string_view op, const std::vector<MessageLine>& lines);

}  // namespace assay::report::scaling
