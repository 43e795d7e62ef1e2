// Where two commands spend their time: the functions whose own time differs most, by Linux' perf.
#pragma once

#include "harness/ab/commands.h"

#include <map>
#include <string>
#include <vector>

namespace assay::ab {

// Shares of all CPU time in user space, without what a function calls.
struct FunctionShares {
  std::string name;
  double a = 0, b = 0;
};

struct Where {
  std::vector<FunctionShares> functions;  // at most five, the largest difference first
  std::string why;                        // why none is known
};

// Runs each command once more under `perf record`, which gets so many seconds at most.
Where where_time_goes(const std::string& a, const std::string& b, const Runner& run_one, double limit_seconds = 600);

// "std::string::append 2 % -> 19 %, parse 40 % -> 31 %", or "not known: there is no perf on the PATH".
std::string text_of(const Where& where);

// The shares in what `perf report --stdio -F overhead,symbol` prints, by function. Addresses without a name are left
// out.
std::map<std::string, double> shares_in_report(const std::string& report);
// The five that differ most, by half a per cent of all time or more.
std::vector<FunctionShares> largest_differences(const std::map<std::string, double>& a,
                                                const std::map<std::string, double>& b);

}  // namespace assay::ab
