#include "reports/data/words.h"

#include <fmt/format.h>

namespace assay::report {

std::string plural(std::int64_t n, const char* word) { return fmt::format("{} {}{}", n, word, n == 1 ? "" : "s"); }

std::string plus_minus(double fraction) {
  const double percent = 100 * fraction;
  return fmt::format("± {:.{}f} %", percent, percent < 10 ? 1 : 0);
}

std::string joined(const std::vector<int>& numbers) { return fmt::format("{}", fmt::join(numbers, ", ")); }

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace assay::report
