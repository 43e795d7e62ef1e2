#include "reports/model/words.h"

#include <fmt/format.h>

namespace assay::report {

std::string plus_minus(double fraction) {
  const double percent = 100 * fraction;
  return fmt::format("± {:.{}f} %", percent, percent < 10 ? 1 : 0);
}

std::string precision_text(double half) { return half <= max_usable_half ? plus_minus(half) : "no usable figure"; }

}  // namespace assay::report
