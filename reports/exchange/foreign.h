// The readers of import_formats() that are not in harness/figures.
#pragma once

#include "harness/figures/foreign.h"

#include <string>

namespace assay::report {

ForeignFile read_pytest_benchmark(const std::string& text, const std::string& file);
ForeignFile read_nccl_tests(const std::string& text, const std::string& file);
ForeignFile read_superbench(const std::string& text, const std::string& file);
ForeignFile read_csv(const std::string& text, const std::string& file);

}  // namespace assay::report
