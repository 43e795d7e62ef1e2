#include "reports/model/words.h"

#include <fmt/format.h>

namespace assay::report {

std::string plus_minus(double fraction) {
  const double percent = 100 * fraction;
  return fmt::format("± {:.{}f} %", percent, percent < 10 ? 1 : 0);
}

}  // namespace assay::report
