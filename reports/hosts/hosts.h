// Hosts compared: the same case on several of them, and the links between them.
#pragma once

#include "harness/runs/run_set.h"
#include "reports/model/document.h"

#include <string_view>
#include <vector>

namespace assay::report {

// For each case that several hosts measured on their own: median, min, max and spread over the hosts. From 8 hosts on,
// outliers by robust z-score (harness/statistics/outliers.h), in words; with fewer, the hosts side by side. Empty if no
// case has two hosts.
std::vector<Section> host_sections(const RunSet& runs);
// Every host's figures for those cases, for files.
std::vector<Section> host_figure_sections(const RunSet& runs);

// For each record with a matrix of pairs: the slow host or link in words, and the figures by pair, as a heat map in
// HTML. Large matrices are cut to the slowest members and go to an appendix.
std::vector<Section> pair_sections(const RunSet& runs);

// Of a record with a matrix of pairs: each host's median link on each rail, if it has rails; every pair. For a page.
std::vector<Table> link_tables(const Record& record);

// "n2" before "n10".
bool natural_less(std::string_view a, std::string_view b);

}  // namespace assay::report
