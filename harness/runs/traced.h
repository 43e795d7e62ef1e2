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

// What matrix products, convolutions and attention computed, where a trace has the shapes of their operands.
struct TracedWork {
  double flops = 0, bytes = 0;  // of a step; operands and results, each moved once
  double seconds = 0;           // of a step, of those calls, with what else they ran
  std::string dtype;            // of the operands; empty: several
  std::optional<double> least;  // s of a step, by the GPU's hardware sheet; absent: no sheet, or not known for all
  double least_by_memory = 0;   // s of it: of calls whose bytes take longer than their FLOPs

  // Sums; what is not known of both is not known.
  void add(const TracedWork& other, double scale = 1);
  double rate() const { return flops / seconds; }     // FLOP/s
  double intensity() const { return flops / bytes; }  // FLOP/B
  std::optional<double> of_bound() const { return least ? std::optional(*least / seconds) : std::nullopt; }
  const char* bound_by() const { return least && 2 * least_by_memory > *least ? "memory" : "peak"; }

  static void members(auto& self, auto& io) {
    io("flops", self.flops), io("bytes", self.bytes), io("seconds", self.seconds), io("dtype", self.dtype);
    io.sparse("least", self.least), io("least_by_memory", self.least_by_memory);
  }
};

// A kernel, a copy, or, without a GPU, an operator without those that it calls.
struct TracedUse {
  std::string name;
  double calls = 0;    // of a step
  double seconds = 0;  // of a step
  std::optional<TracedWork> work = {};

  static void members(auto& self, auto& io) {
    io("name", self.name), io("calls", self.calls), io("seconds", self.seconds), io.sparse("work", self.work);
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
