// The sampler: calls a case's work and times it by the protocol. It owns flush, rotation, batching, agreement between
// ranks and the stop rule.
#pragma once

#include "harness/comm/communicator.h"
#include "harness/device/device.h"
#include "harness/record/protocol.h"
#include "harness/sampling/disturbance.h"
#include "harness/sampling/stop_rule.h"
#include "harness/statistics/statistics.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace assay {

// What sampling gave. Times are seconds a repetition (or step); a multi-rank value is the slowest rank's.
// Of one of several measurements of a case (Sampler::rounds): seconds a repetition.
struct RoundResult {
  double median = 0;
  double low = 0;  // 95 % interval of the median; NaN where it is not known
  double high = 0;
};

struct Measurement {
  std::vector<double> values;
  std::vector<double> at;        // start of each sample, seconds since the case's start; procedure: unknown, empty
  std::int64_t repetitions = 1;  // back-to-back calls a sample, agreed between ranks
  StopReason stopped_by = StopReason::done;
  Summary summary;                   // of `values`
  std::vector<double> rank_medians;  // one a rank, of its own times
  std::vector<double> rank_paces;    // one a rank: lower quartile of its times without what it waited for other ranks
  std::vector<double> first_touch;   // single calls before warm-up ended, reported apart
  std::vector<int> disturbed;        // indices of samples that the system disturbed, on any rank
  double window_start = 0;           // seconds since the case's start
  double window_seconds = 0;         // wall time of the whole window
  double items = 0;                  // delivered in that window by all ranks (window form)
  std::vector<double> pieces;        // window form: items a second of all ranks in each piece of the window
  // Rounds form: by round and rank, what the rank's group measured; nothing where the rank had no part.
  std::vector<std::vector<std::optional<RoundResult>>> rounds;
};

// Every rank calls the same form with the same protocol. Errors of the work pass through.
//
// Cache state of `repeat`:
//  cold  Each repetition finds its buffers outside the last-level cache. Where the case brings several slots
//        (rotation_slots) rotation does this: every repetition takes the next slot, also from one sample to the next.
//        With one slot nothing else than flushing can, so the cache is flushed before each sample and a sample is one
//        repetition. Isolated samples are flushed too: agreement between ranks and the readings between samples would
//        leave caches in a state that no one has stated.
//  hot   One slot, repeated; warm-up has brought it in.
//  other Slots rotate, nothing is flushed.
//
// Where the protocol has a gate (Protocol::set_gate) samples of `repeat` are enqueued behind it and then let go, so
// that the device never waits for the host. The first call of each slot and the first sample of warm-up are not gated:
// what is loaded on first use could wait for the gate for ever.
//
// Its own cost, by empty work on one rank of a CPU (Zen 4, 2 cores): 2.5 us between samples (the readings of
// disturbances, mostly; median of `at` differences less the sample), outside the timed region; inside it 30 ns a sample
// (the clock) and 3 ns a repetition (the calls of `fn`).
class Sampler {
 public:
  using Clock = std::function<double()>;  // seconds since the case's start

  // `started` is the case's start on the steady clock, the origin of `at`. All must outlive the sampler.
  Sampler(Device& device, Communicator& comm, const Protocol& protocol,
          std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now());
  // With a clock of one's own for what events do not time: limits, `at`, steps and windows.
  Sampler(Device& device, Communicator& comm, const Protocol& protocol, Clock clock);

  // The fault slow-rank: from here on every call on this rank is made to last about twice as long, inside the timed
  // region. Called before measuring, on the straggler only.
  void slow_down() { slow_ = true; }
  // The calls of `repeat` are collectives, so that a batch of them takes every rank as long as the slowest. Paces are
  // then told by single calls after the measurement. Called before measuring, on every rank.
  void calls_meet() { meet_ = true; }
  // Seconds of the call that runs now in which this rank waited for others: no part of its pace.
  void waited(double seconds) { waited_ += seconds; }
  // gpus=each: ranks measure one after another, the others wait outside the timed region. What is then kept is the
  // slowest rank's series, and every rank's own median. Called before measuring, on every rank.
  void take_turns() { turns_ = true; }

  // Buffer sets a case keeps for rotation so that the whole exceeds the last-level cache `times` over; 1 when the
  // protocol is hot. `bytes` is the footprint of one repetition; below a cache line of 64 bytes it counts as one.
  static int rotation_slots(const Device& device, const Protocol& protocol, std::uint64_t bytes, double times = 2.0);

  // Micro-benchmark: fn(stream, slot) enqueues one repetition on the buffers of `slot` in [0, slots).
  void repeat(int slots, const std::function<void(Stream&, int)>& fn);
  // One call, one sample (a training step); fn(step) returns when its work is done. Steps count on from warm-up's.
  void steps(const std::function<void(std::int64_t)>& fn);
  // However many rounds share the protocol's time, each measurement is given this much of it (or all).
  static constexpr double min_round_seconds = 0.1;
  // What a rank does in one of several measurements.
  struct Round {
    Communicator* comm = nullptr;             // of the ranks that measure together; null: this rank has no part in it
    std::function<void(Stream&, int)> fn;     // as of `repeat`
    std::function<void(Stream&)> after = {};  // once it is measured; untimed
  };
  // `count` measurements one after another, each like `repeat` on one slot with a share of the protocol's time, by
  // groups of ranks that measure at once, each by itself: make(i) is called on every rank and may communicate. Samples
  // and first touches are those of the slowest group of all.
  void rounds(int count, const std::function<Round(int)>& make);
  // Free-running work: each call delivers and returns a number of items (a batch of a loader). The window is cut into
  // pieces of a second, or a tenth of max_seconds where that is less; values are seconds an item, a piece each:
  // the slowest rank's time over the items of all. Throws Error when a piece delivers nothing within max_seconds.
  void window(const std::function<std::int64_t()>& fn);
  // The case's own clock (time to quality): fn returns the samples in seconds, as many on every rank.
  void procedure(const std::function<std::vector<double>()>& fn);

  Stream& stream() { return *stream_; }
  const Measurement& measurement() const { return measurement_; }

 private:
  struct Repetition;

  // Runs a form on all ranks together, or on one after another.
  template <typename Form>
  void in_turn(const Form& form);
  void join_turns();
  // Replaces every rank's measurement by that of `rank`.
  void copy_from(int rank);
  void repeat_here(int slots, const std::function<void(Stream&, int)>& fn);
  void steps_here(const std::function<void(std::int64_t)>& fn);
  void window_here(const std::function<std::int64_t()>& fn);
  void procedure_here(const std::function<std::vector<double>()>& fn);
  // Starts a form: forgets what an earlier one measured.
  void begin();
  // Runs `call`, and idles as long again where the fault slow-rank is meant for this rank.
  template <typename Call>
  void run(const Call& call);
  // Whether any rank says yes.
  bool any(bool yes);
  void finish(std::vector<double> values, StopReason stopped_by);
  // Seconds of one call on this rank, less what it waited for others; `paces_` keeps them.
  void keep_pace(double seconds);
  void gather_disturbed();

  Device& device_;
  Communicator& world_;
  Communicator* comm_;  // those that measure together: the world, or in turns this rank alone
  const Protocol& own_protocol_;
  const Protocol* protocol_;  // that samples are taken by: the case's, or a round's share of it
  Clock clock_;
  bool slow_ = false;
  bool turns_ = false;
  bool meet_ = false;
  double waited_ = 0;
  std::unique_ptr<Stream> stream_;
  DisturbanceWatch watch_;
  std::vector<double> own_;    // this rank's times
  std::vector<double> paces_;  // the same without waiting, where that differs
  Measurement measurement_;
};

}  // namespace assay
