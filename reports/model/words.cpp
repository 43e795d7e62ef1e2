#include "reports/model/words.h"

#include <fmt/format.h>

namespace assay::report {

std::string plus_minus(double fraction) {
  const double percent = 100 * fraction;
  return fmt::format("± {:.{}f} %", percent, percent < 10 ? 1 : 0);
}

std::string joined(const std::vector<int>& numbers) { return fmt::format("{}", fmt::join(numbers, ", ")); }

}  // namespace assay::report
