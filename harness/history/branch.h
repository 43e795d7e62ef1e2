// The runs of a branch against what its series are on the main one. Opens no event and changes none.
#pragma once

#include "harness/core/words.h"
#include "harness/history/history.h"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace assay::history {

// undecided: a step of blind_step would not even have been a suspect.
enum class BranchVerdict { slower, faster, suspect, same, undecided };
constexpr auto words(BranchVerdict) {
  return std::to_array<std::string_view>({"slower", "faster", "suspect", "same", "undecided"});
}

struct BranchChange {
  std::size_t series = 0;  // index of the tracked series
  Comparison found;        // the branch compared with the main one
  std::size_t nights = 0;  // nights of the branch
  BranchVerdict verdict = BranchVerdict::same;
  bool blind = false;  // to a step of blind_step from the level
};

struct BranchComparison {
  std::string branch;
  std::vector<BranchChange> changes;  // one for every series compared, the smallest p first
  std::size_t new_series = 0;         // series that only the branch has, or with too few nights on the main one

  // How many changes have this verdict.
  std::size_t count(BranchVerdict verdict) const;
  // Most series are undecided, or could not be compared.
  bool is_blind() const;
  // "blind: in 9 of 10 series a step of 100 % would not have shown"; empty if none.
  std::string blind_text() const;
  // failed: something is slower; no_data: nothing could be compared, or (`strict`) it is blind.
  ExitCode exit_code(bool strict = false) const;
};

// `with_branch` is Store::read() of the branch; `main` the history without it. One night of a branch has the noise of
// one night, however many runs it has.
BranchComparison compare_branch(const store::Contents& with_branch, const std::string& branch, const History& main);
// Sorts the changes by p and sets their verdicts: slower and faster are those that are significant over all series
// (Benjamini-Hochberg, at the rate of false alarms promised) and may alarm; suspects have p of at most 1e-3, or are
// larger than any excursion in the series' history. The others are undecided if they are blind.
void judge_branch(std::vector<BranchChange>& changes, const Options& options);

}  // namespace assay::history
