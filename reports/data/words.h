// Small phrases that all reports share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay::report {

// "1 case", "2 cases".
std::string plural(std::int64_t n, const char* word);
// "± 0.7 %", of a fraction.
std::string plus_minus(double fraction);
// "1, 2, 4".
std::string joined(const std::vector<int>& numbers);
std::string first_line(const std::string& text);

}  // namespace assay::report
