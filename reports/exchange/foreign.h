// The readers of import_formats().
#pragma once

#include "reports/exchange/import.h"

#include <string>
#include <vector>

namespace assay::report {

std::vector<ForeignFigure> read_gbench(const std::string& text, const std::string& file);
std::vector<ForeignFigure> read_pytest_benchmark(const std::string& text, const std::string& file);
std::vector<ForeignFigure> read_nccl_tests(const std::string& text, const std::string& file);
std::vector<ForeignFigure> read_superbench(const std::string& text, const std::string& file);
std::vector<ForeignFigure> read_csv(const std::string& text, const std::string& file);
std::vector<ForeignFigure> read_lines(const std::string& text, const std::string& file);

}  // namespace assay::report
