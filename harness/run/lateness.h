// Finds the rank that keeps the others waiting when a case exceeds its time limit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay {

// The state of a rank at a case's deadline.
struct RankStatus {
  std::string host;
  bool done = false;         // its part of the record has arrived
  bool answers = false;      // its process answered when asked how far it has come
  std::string phase;         // its last span: setup, measure, ...; empty before the first
  double phase_seconds = 0;  // since that span began
  char state = '?';          // the kernel's state of its process (T, D, R, S); '?' on another host
  std::uint64_t begun = 0;   // collectives it entered
  std::uint64_t ended = 0;   // collectives it left
  std::string call;          // the last collective it entered
};

struct Lateness {
  int rank = -1;      // the first of the late ranks; -1: none is later than the others
  std::string words;  // "rank 1 on n2, in measure for 2.9 s, has not arrived at ..."
};

// Blames the ranks that do not answer; else the ranks that have entered the fewest collectives; else the ranks outside
// the collective in which others wait; else none, and names the call that all of them are in.
Lateness find_late(const std::vector<RankStatus>& ranks);

// The state of a process on this machine; '?' if it cannot be read.
char process_state(std::int64_t pid);

}  // namespace assay
