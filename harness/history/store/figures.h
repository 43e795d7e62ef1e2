// The contents of a run that the store keeps: its figures, the cases that held and the cases that broke.
#pragma once

#include "harness/history/store/store.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace assay::store {

struct Figure {
  SeriesIdentity identity;
  std::string name;  // text_of(identity)
  std::string title;
  double log = 0;
  float within = 0;
  std::string choices;  // text_of(Facts)
  bool disturbed = false;
};

struct RunFigures {
  std::string name;  // the id in run.json
  std::string started;
  std::string machine;
  Facts facts;
  std::string hardware, commit, branch;
  std::int64_t records = 0;  // number of the run's records, which grows when the run is resumed
  bool finished = false;
  std::vector<Figure> figures;  // one per identity
  std::vector<std::string> held;
  std::vector<std::pair<std::string, std::string>> broken;  // key, "failed: reason"
  std::size_t left_out = 0;
};

// Takes from the last attempt at each case every metric above 0 of records that are ok, comparable and without injected
// faults; several records of one series (hosts, seeds) are averaged. Throws UsageError if the run has no time.
RunFigures figures_of(const RunData& run, const AddOptions& options);

// A text that differs for different identities.
std::string text_of(const SeriesIdentity& identity);

// A hash of everything that a store keeps of the run, whatever numbers it has there.
std::int64_t digest_of(const RunFigures& run);

}  // namespace assay::store
