// What the trace of a profiler says of a job besides its steps, as run.json keeps it in `trace`.
#pragma once

#include "harness/json/fwd.h"
#include "harness/record/record.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// A kernel, a copy, or, without a GPU, an operator without those that it calls.
struct TracedUse {
  std::string name;
  double calls = 0;    // of a step
  double seconds = 0;  // of a step

  static void members(auto& self, auto& io) {
    io("name", self.name), io("calls", self.calls), io("seconds", self.seconds);
  }
};

// A collective of one kind over the ranks: the last rank to come waits least, so that what it spends is the transfer.
struct TracedCollective {
  std::string name;
  double calls = 0;       // of a step, on each rank
  double transfer = 0;    // s, mean of the shortest of each call
  double skew = 0;        // s, mean of the longest minus the shortest
  int last = 0;           // the rank that came last most often
  double last_share = 0;  // of the calls

  static void members(auto& self, auto& io) {
    io("name", self.name), io("calls", self.calls), io("transfer", self.transfer), io("skew", self.skew);
    io("last", self.last), io("last_share", self.last_share);
  }
};

struct Traced {
  bool kernels = true;          // false: `uses` are operators
  std::vector<TracedUse> uses;  // the longest first
  std::size_t left_out = 0;     // shorter ones
  std::vector<TracedCollective> collectives;

  const char* what() const { return kernels ? "kernels" : "operators"; }
  static void members(auto& self, auto& io) {
    io("kernels", self.kernels), io("uses", self.uses), io("left_out", self.left_out);
    io("collectives", self.collectives);
  }
};

Json trace_json(const Traced& traced);
// The seconds of a part of a traced step, or of the recorded steps of a watched job; absent if the record lacks it.
std::optional<double> traced_span(const Record& record, std::string_view name);
// Of a run.json; absent if it has no trace, or one that cannot be read.
std::optional<Traced> traced_of(const Json& run);

}  // namespace assay
