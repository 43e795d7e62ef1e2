#include "harness/statistics/distributions.h"

#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

namespace assay {

namespace bm = boost::math;

double normal_quantile(double p) { return bm::quantile(bm::normal(), p); }
double normal_upper_quantile(double p) { return bm::quantile(bm::complement(bm::normal(), p)); }
double normal_upper_tail(double x) { return bm::cdf(bm::complement(bm::normal(), x)); }

double student_quantile(double freedom, double p) { return bm::quantile(bm::students_t(freedom), p); }
double student_upper_quantile(double freedom, double p) {
  return bm::quantile(bm::complement(bm::students_t(freedom), p));
}
double student_upper_tail(double freedom, double x) { return bm::cdf(bm::complement(bm::students_t(freedom), x)); }

}  // namespace assay
