// The readers of import_formats() that are not in harness/figures.
#pragma once

#include "reports/exchange/import.h"

namespace assay::report {

ForeignFile read_asv(const ForeignInput& input);
ForeignFile read_bmf(const ForeignInput& input);
ForeignFile read_csv(const ForeignInput& input);
ForeignFile read_hyperfine(const ForeignInput& input);
ForeignFile read_nccl_tests(const ForeignInput& input);
ForeignFile read_nvbandwidth(const ForeignInput& input);
ForeignFile read_otava(const ForeignInput& input);
ForeignFile read_pytest_benchmark(const ForeignInput& input);
ForeignFile read_rccl_tests(const ForeignInput& input);
ForeignFile read_superbench(const ForeignInput& input);

}  // namespace assay::report
