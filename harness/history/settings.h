// How the nights of a history are judged, kept in its store: what one check takes apart, the next must not put
// together.
#pragma once

#include "harness/history/detect/detector.h"
#include "harness/history/store/store.h"

#include <string>

namespace assay::history {

struct JudgeSettings {
  std::string split_by;  // the fact by whose values series are split; "none": not at all; empty: as kept
  std::string order;     // "commit" or "night"; empty: as kept
};

// What becomes of a setting that differs from that of the store.
enum class OtherSettings {
  counts,   // it counts this time: of a report
  refused,  // UsageError, which begins with `verb`: of a check
  changes,  // it counts from now on
};

// The options with these settings, and with those that the store keeps where none is given. Nights in the order of
// commits ask the repository of this folder; UsageError if there is none, or its clone is shallow.
Options with_settings(const std::string& verb, const store::Store& store, Options options, const JudgeSettings& given,
                      OtherSettings other);

// Keeps the settings of these options, with which the history could be read.
void keep_settings(store::Store& store, const Options& options);

}  // namespace assay::history
