// Cells that the tables of the summary share.
#pragma once

#include "reports/data/figures.h"
#include "reports/data/run_set.h"
#include "reports/model/document.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace assay::report {

// A dash where there is nothing to show.
Cell no_cell();
// "412 GFLOP/s"; {"metric","value","unit"} for machines. Null gives a dash.
Cell figure_cell(const Metric* metric);
// "± 0.7 %": half of the interval as a share of the figure.
Cell interval_cell(const Metric* metric);
Cell peak_cell(const Metric* metric);
// "103 % of 41 GB/s".
Cell reference_cell(const Metric* metric);
// "ok (2 disturbed)", "FAILED", "skipped: no GPU".
Cell verdict_cell(const Record& record, const Metric* metric);

// A row of a table of cases, the same everywhere.
struct CaseRow {
  const Entry* entry = nullptr;
  const Metric* metric = nullptr;  // that is shown; null: none
  std::string title;
  std::size_t runs = 1;                // of this case on this machine
  std::optional<Interval> range = {};  // of the figure over those runs
};
// Columns that only some tables need.
struct CaseColumns {
  bool reference = false;
  bool runs = false;
};
std::vector<Column> case_columns(const CaseColumns& wanted);
std::vector<Cell> case_row(const CaseRow& row, const CaseColumns& wanted);

std::string first_line(const std::string& text);
// "1 case", "2 cases".
std::string plural(std::size_t n, const char* word);

}  // namespace assay::report
