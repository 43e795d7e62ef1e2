// What the store keeps of a run: its figures, the cases that held and those that broke.
#pragma once

#include "harness/store/store.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace assay::store {

struct Figure {
  Identity identity;
  std::string name;  // text_of(identity)
  std::string title;
  double log = 0;
  float within = 0;
  std::string choices;  // text_of(Facts)
  bool disturbed = false;
};

struct RunFigures {
  std::string name;  // id of run.json
  std::string started;
  std::string machine;
  Facts facts;
  std::string hardware, commit, branch;
  std::int64_t records = 0;  // that the run has: it grows when the run is resumed
  bool finished = false;
  std::vector<Figure> figures;  // one per identity
  std::vector<std::string> held;
  std::vector<std::pair<std::string, std::string>> broken;  // key, "failed: reason"
  std::size_t left_out = 0;
};

// Of the last attempt at each case: every metric above 0 of records that are ok, comparable and without injected
// faults; several records of one series (hosts, seeds) are averaged. Throws UsageError if the run says no time.
RunFigures figures_of(const RunData& run, const AddOptions& options);

// Differs for different identities.
std::string text_of(const Identity& identity);

// Of all that a store says of the run, whatever its numbers there.
std::int64_t digest_of(const RunFigures& run);

}  // namespace assay::store
