// The runs of a branch against what its series are on the main one. Opens no event and changes none.
#pragma once

#include "reports/history/history.h"
#include "reports/model/document.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace assay::history {

enum class BranchVerdict { slower, faster, suspect, same };
std::string_view name_of(BranchVerdict verdict);

struct BranchChange {
  std::size_t series = 0;  // index of the tracked series
  double shift = 0;        // natural logarithm of the branch's speed over the main one's
  Interval interval = {};  // 95 %
  double p = 1;
  std::size_t nights = 0;  // of the branch
  BranchVerdict verdict = BranchVerdict::same;
};

struct BranchComparison {
  std::string branch;
  std::vector<BranchChange> changes;  // of every series compared, the smallest p first
  std::size_t new_series = 0;         // of the branch only, or with too few nights on the main one

  // failed: something is slower; no_data: nothing could be compared.
  ExitCode exit_code() const;
};

// `with_branch` is Store::read() of the branch; `main` the history without it. A change counts if it is significant
// over all series (Benjamini-Hochberg, at the rate of false alarms promised) and at least the tolerance. Two tests must
// agree: Student's t, and how far beyond all nights of its regime the branch lies. One night of a branch has the noise
// of one night, however many runs it has.
BranchComparison compare_branch(const store::Contents& with_branch, const std::string& branch, const History& main);

report::Document branch_document(const BranchComparison& comparison, const History& main);
Json branch_json(const BranchComparison& comparison, const History& main);

}  // namespace assay::history
