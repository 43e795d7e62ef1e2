// Cases that seem to have been renamed: one stopped where another began, at the same speed.
#pragma once

#include "harness/history/history.h"

#include <string>
#include <vector>

namespace assay::history {

struct Rename {
  std::string from, to;  // keys of cases
};

// Of the cases that are silent, those all of whose series have a successor in one new case on the same machine: it
// began after their last night, with the same metrics and within 10 % (or three standard deviations) of their figures.
// Each new case is named once, for the nearest.
std::vector<Rename> seeming_renames(const History& history);

// "assay history store alias parse parse_v2", words of a shell.
std::string alias_command(const Rename& rename);

}  // namespace assay::history
