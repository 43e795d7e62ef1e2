// Quantiles and tails of distributions, by Boost.Math, whose headers take seconds to compile.
#pragma once

namespace assay {

// Below `normal_quantile(p)` are p of the values of a standard normal distribution, above `normal_upper_quantile(p)`.
// The latter is exact for the smallest p, too.
double normal_quantile(double p);
double normal_upper_quantile(double p);
double normal_upper_tail(double x);  // the share of the values above x

// The same of Student's t distribution with these degrees of freedom (> 0).
double student_quantile(double freedom, double p);
double student_upper_quantile(double freedom, double p);
double student_upper_tail(double freedom, double x);

}  // namespace assay
