// How a case is measured. Part of the record; records are compared only when their hashes are equal.
#pragma once

#include "harness/json/fwd.h"

#include <array>
#include <map>
#include <string>
#include <string_view>

namespace assay {

// Decided before the first sample, never measured: what is found while sampling (repetitions per sample, number of
// samples, why it stopped) belongs to the samples.
struct Protocol {
  enum class Form { repeat, steps, window, procedure };  // the Sampler's form; rounds are recorded as `repeat`
  enum class Cache { cold, hot, warm, none };            // cold: buffers are rotated, or the cache flushed
  // Many back-to-back repetitions per sample, or one; or many that were captured in a graph, which is launched.
  enum class Batching { batched, isolated, graph };

  Form form = Form::repeat;
  std::string data = "normal";  // values of the inputs: normal, zeros, uniform, integers, files, ...
  Cache cache = Cache::cold;
  Batching batching = Batching::batched;
  std::string timer;            // the device's: steady_clock, cuda_event
  double warmup_seconds = 0.1;  // and at least one repetition
  int min_samples = 30;
  int max_samples = 0;               // 0: the stop rule's limit, 100,000
  double max_seconds = 3.0;          // time limit of measuring; the stop rule may end it earlier
  double target_relative_ci = 0.01;  // half width of the 95 % interval over the median at which sampling stops
  // Everything else that must be equal for figures to compare: isa, page_size, numa, ...
  std::map<std::string, std::string> details;

  // Samples of `repeat` go behind the device's gate: each repetition enqueues `launches` (kernels, copies, graphs) and
  // neither synchronises nor waits for another rank. Never for training steps or collectives. Called by the case in
  // setup(); stored as the detail "gate".
  void set_gate(int launches);
  // Launches per repetition behind the gate; 0: no gate.
  int gated_launches() const;

  friend constexpr auto words(Form) {
    return std::to_array<std::string_view>({"repeat", "steps", "window", "procedure"});
  }
  friend constexpr auto words(Cache) { return std::to_array<std::string_view>({"cold", "hot", "warm", "none"}); }
  friend constexpr auto words(Batching) { return std::to_array<std::string_view>({"batched", "isolated", "graph"}); }

  // Flat object of the above, details merged in, with "hash" over all other fields.
  Json to_json() const;
  std::string hash() const;
};

// The hash of a protocol object as read from a record; without its "hash" member.
std::string protocol_hash(const Json& protocol);

}  // namespace assay
