// Who keeps the others waiting when a case is not done in time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay {

// What is known of a rank at the end of a case's time.
struct RankSight {
  std::string host;
  bool done = false;         // its part of the record is there
  bool answers = false;      // its process told where it is when it was asked
  std::string phase;         // its last span: setup, measure, ...; empty before the first
  double phase_seconds = 0;  // since that span began
  char state = '?';          // of its process, as the kernel has it (T, D, R, S); '?' on another host
  std::uint64_t begun = 0;   // collectives that it entered
  std::uint64_t ended = 0;   // and left
  std::string call;          // the last one that it entered
};

struct Lateness {
  int rank = -1;      // the first of those to blame; -1: none of them more than another
  std::string words;  // "rank 1 on n2, in measure for 2.9 s, has not entered ...": empty for a world of one that runs
};

// Ranks that do not answer at all are to blame; else those that have entered fewest collectives; else those outside
// the collective in which others wait; else nobody, and the call is named in which all of them are.
Lateness find_late(const std::vector<RankSight>& ranks);

// The state of a process of this machine; '?' where it cannot be read.
char process_state(std::int64_t pid);

}  // namespace assay
