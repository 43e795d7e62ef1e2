// The sampler: calls a case's work and times it by the protocol. It owns gate, flush, rotation, batching,
// agreement between ranks and the stop rule.
#pragma once

#include "harness/comm/communicator.h"
#include "harness/device/device.h"
#include "harness/measure/protocol.h"
#include "harness/measure/statistics.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace assay {

// What sampling gave. Times are seconds a repetition (or step); a multi-rank value is the slowest rank's.
struct Measurement {
  std::vector<double> values;
  std::vector<double> at;               // start of each sample, seconds since the case's start
  std::int64_t repetitions = 1;         // back-to-back calls a sample, agreed between ranks
  std::string stopped_by;               // noise, plateau, time, count, done
  Summary summary;                      // of `values`
  std::vector<double> rank_medians;     // one a rank
  std::vector<double> first_touch;      // repetitions before warm-up ended, reported apart
  std::vector<int> disturbed;           // indices of samples that the system disturbed
  double window_seconds = 0;            // wall time of the whole window (steps, window)
  double items = 0;                     // delivered in that window (window form)
  std::vector<double> pieces;           // window form: items a second in each piece of the window
};

class Sampler {
 public:
  // `started` is the case's start on the steady clock, the origin of `at`. All must outlive the sampler.
  Sampler(Device& device, Communicator& comm, const Protocol& protocol,
          std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now());
  // The fault slow-rank: from here on every call on this rank is made to last about twice as long, inside the timed
  // region. Called before measuring, on the straggler only.
  void slow_down() { slow_ = true; }

  // Buffer sets a case keeps for rotation so that the whole exceeds the last-level cache `times` over;
  // 1 when the protocol is hot. `bytes` is the footprint of one repetition.
  static int rotation_slots(const Device& device, const Protocol& protocol, std::uint64_t bytes, double times = 2.0);

  // Micro-benchmark: fn(stream, slot) enqueues one repetition on the buffers of `slot` in [0, slots).
  void repeat(int slots, const std::function<void(Stream&, int)>& fn);
  // One call, one sample (a training step); fn(step) returns when its work is done.
  void steps(const std::function<void(std::int64_t)>& fn);
  // Free-running work: each call delivers and returns a number of items (a batch of a loader).
  void window(const std::function<std::int64_t()>& fn);
  // The case's own clock (time to quality): fn returns the samples in seconds.
  void procedure(const std::function<std::vector<double>()>& fn);

  Stream& stream() { return *stream_; }
  const Measurement& measurement() const { return measurement_; }

 private:
  Device& device_;
  Communicator& comm_;
  const Protocol& protocol_;
  std::chrono::steady_clock::time_point started_;
  bool slow_ = false;
  std::unique_ptr<Stream> stream_;
  Measurement measurement_;
};

}  // namespace assay
