// Columns and rows of a table of cases, the same everywhere.
#pragma once

#include "harness/runs/run_set.h"
#include "reports/bounds/bounds.h"
#include "reports/model/cells.h"
#include "reports/references/published.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace assay::report {

struct CaseRow {
  const Entry* entry = nullptr;
  const Metric* metric = nullptr;  // the metric shown, or null
  std::string title;
  std::size_t runs = 1;                // number of runs of this case on this machine
  std::optional<Interval> range = {};  // range of the figure over those runs
  std::vector<const PublishedFigure*> published = {};
  std::string such = {};  // where the figure lies among runs of such machines; empty: there are none
  bool amber = false;
};
// Columns that only some tables need.
struct CaseColumns {
  bool reference = false;
  bool runs = false;
  bool published = false;
  bool usual = false;  // the usual share of the peak
  bool such = false;
};
std::vector<Column> case_columns(const CaseColumns& wanted);
std::vector<Cell> case_row(const CaseRow& row, const CaseColumns& wanted);

}  // namespace assay::report
