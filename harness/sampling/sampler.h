// The sampler calls a case's work and times it by the protocol. It owns the flush, rotation, batching, agreement
// between ranks and the stop rule.
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
#include <utility>
#include <vector>

namespace assay {

// One of several measurements of a case (Sampler::rounds), in seconds per repetition.
struct RoundResult {
  double median = 0;
  double low = 0;  // 95 % interval of the median; NaN if unknown
  double high = 0;
};

// Times are seconds per repetition (or step); a value of several ranks is that of the slowest.
struct Measurement {
  std::vector<double> values;
  std::vector<double> at;        // start of each sample, seconds since the case's start; procedure: unknown, empty
  std::int64_t repetitions = 1;  // back-to-back calls per sample, agreed between ranks
  StopReason stopped_by = StopReason::done;
  Summary summary;                   // of `values`
  std::vector<double> rank_medians;  // per rank, of its own times
  std::vector<double> rank_paces;    // per rank: lower quartile of its times minus what it waited for other ranks
  // Collectives: single calls, each begun by all ranks together and ended by the slowest; empty if a graph makes
  // several.
  std::vector<double> single_calls;
  std::vector<double> first_touch;  // single calls during warm-up, reported separately
  std::vector<int> disturbed;       // indices of samples disturbed on any rank
  std::optional<int> samples_of;    // the rank that measured `values` by itself or in a group; absent: all together
  double window_start = 0;          // seconds since the case's start
  double window_seconds = 0;        // wall time of the whole window
  std::optional<std::pair<double, double>> own_window;  // this rank's, from and to, if ranks measured one after another
  double items = 0;                                     // delivered in that window by all ranks (window form)
  std::vector<double> pieces;  // window form: items per second of all ranks in each piece of the window
  // Rounds form: by round and rank, what the rank's group measured; absent if the rank took no part.
  std::vector<std::vector<std::optional<RoundResult>>> rounds;
  // If a gate opened by itself: to how many calls per sample it was then limited; 0: dropped, so that launches count.
  std::optional<std::int64_t> max_gated;
};

// The buffer sets (slots) that repetitions use in turn.
struct Rotation {
  int slots = 1;
  // Whether between two uses of a slot the others alone evict it: they are larger together than the cache.
  bool exceeds_cache = false;
};

// Every rank calls the same form with the same protocol. Errors of the work pass through.
//
// Cache state of `repeat`:
//  cold  Each repetition finds its buffers outside the last-level cache. Every repetition uses the next slot, across
//        samples too. If rotation alone does not exceed the cache (Rotation), the slots that a sample will use are
//        evicted before it, and a sample has at most as many repetitions as there are slots. Isolated samples are
//        evicted too: agreement between ranks and the readings between samples would leave the caches in an undefined
//        state. What the repetitions write may stay in a large cache until after the sample: for a loop that only
//        streams, half of its traffic stores, this is up to 15 % faster than long rotation below 4 MiB per slot and
//        1 % above (Granite Rapids in a virtual machine, 480 MiB of L3).
//  hot   One slot, repeated; warm-up has loaded it.
//  other Slots rotate, nothing is evicted.
//
// If the protocol has a gate (Protocol::set_gate), samples of `repeat` are enqueued behind it and then released, so
// that the device never waits for the host. The first call of each slot and the first sample of warm-up are not gated:
// what is loaded on first use could wait for the gate forever. If a gate opens by itself, because the host waits for
// work behind it, measuring starts again with half as many calls per sample, in the end without the gate.
//
// Overhead, with empty work on one rank of a CPU (Zen 4, 2 cores): 2.5 us between samples, outside the timed region
// (mostly the readings of disturbances; median of the differences of `at` minus the sample); inside it 30 ns per sample
// (the clock) and 3 ns per repetition (the calls of `fn`).
class Sampler {
 public:
  using Clock = std::function<double()>;  // seconds since the case's start

  // `started` is the case's start on the steady clock, the origin of `at`. All must outlive the sampler.
  Sampler(Device& device, Communicator& comm, const Protocol& protocol,
          std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now());
  // With a given clock for what events do not time: limits, `at`, steps and windows.
  Sampler(Device& device, Communicator& comm, const Protocol& protocol, Clock clock);

  // The fault slow-rank: from now on every call on this rank takes about twice as long, inside the timed region. Call
  // it before measuring, on the straggler only.
  void slow_down() { slow_ = true; }
  // The calls of `repeat` are collectives, so a batch of them takes every rank as long as the slowest: paces are then
  // measured by single calls afterwards, at least 9, and after batches up to 1,000 in a fiftieth of the time that
  // sampling took. Call it before measuring, on every rank.
  void calls_are_collective() { collective_ = true; }
  // Seconds of the current call in which this rank waited for others: not part of its pace.
  void waited(double seconds) { waited_ += seconds; }
  // gpus=each: ranks measure one after another, while the others wait outside the timed region. Kept are the slowest
  // rank's series and every rank's own median. Call it before measuring, on every rank.
  void take_turns() { turns_ = true; }

  // How many buffer sets a case of this protocol rotates, of `bytes` each as allocated; one if the protocol is hot. On
  // a CPU their number depends on `bytes` alone unless fewer exceed the cache, so that a case costs the same memory and
  // set-up on a machine with a large cache: at most max_rotation_bytes(), or one set.
  static Rotation rotation(const Device& device, const Protocol& protocol, std::uint64_t bytes);
  // The most bytes that sets of `bytes` each take on any device of this kind, for a case's estimate.
  static double max_rotation_bytes(DeviceKind kind, double bytes);

  // Micro-benchmark: fn(stream, slot) enqueues one repetition on the buffers of `slot` in [0, slots).
  // buffers(slot): all that a repetition on this slot reads and writes, for a cold case to evict.
  using Work = std::function<void(Stream&, int)>;
  using Buffers = std::function<std::vector<MemoryRange>(int slot)>;
  void repeat(const Rotation& rotation, const Work& fn, const Buffers& buffers = {});
  // The same for cases that are not cold.
  void repeat(const Work& fn) { repeat(Rotation{}, fn); }
  // One sample per call (a training step); fn(step) returns when its work is done. Steps of warm-up count too. Several
  // ranks agree only after a batch of steps (StopRule::next_batch), since their devices idle meanwhile.
  void steps(const std::function<void(std::int64_t)>& fn);
  // However many rounds share the protocol's time, each measurement gets at least this much of it (or all).
  static constexpr double min_round_seconds = 0.1;
  // A rank's part in one of several measurements.
  struct Round {
    Communicator* comm = nullptr;             // connects the ranks that measure together; null: this rank takes no part
    std::function<void(Stream&, int)> fn;     // the work, as in `repeat`
    std::function<void(Stream&)> after = {};  // after the measurement; untimed
  };
  // Makes `count` measurements one after another, each like `repeat` on one slot with a fraction of the protocol's
  // time, by groups of ranks that measure independently at the same time. make(i) is called on every rank and may
  // communicate. Samples and first touches are those of the slowest group of any measurement.
  void rounds(int count, const std::function<Round(int)>& make);
  // Free-running work: each call delivers and returns a number of items (a batch of a loader). The window is cut into
  // pieces of a second, or a tenth of max_seconds if that is less; values are seconds per item, one per piece: the
  // slowest rank's time over the items of all ranks. Throws Error if a piece delivers nothing within max_seconds.
  void window(const std::function<std::int64_t()>& fn);
  // The case's own clock (time to quality): fn returns samples in seconds, equally many on every rank.
  void procedure(const std::function<std::vector<double>()>& fn);

  // Called by a procedure with a gate of its own when that gate has opened by itself: see Measurement::max_gated.
  void limit_gate(std::int64_t calls);

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
  void repeat_here(const Rotation& rotation, const Work& fn, const Buffers& buffers);
  std::int64_t warm_up(Repetition& work);
  bool sample(Repetition& work, std::int64_t repetitions, StopRule& rule);
  void use_gate_less(Repetition& work, std::int64_t repetitions);
  void time_single_calls(Repetition& work, bool batched);
  void steps_here(const std::function<void(std::int64_t)>& fn);
  void window_here(const std::function<std::int64_t()>& fn);
  void procedure_here(const std::function<std::vector<double>()>& fn);
  // Starts a form: discards what an earlier one measured.
  void begin();
  // Runs `call`, and spins as long again if this rank has the fault slow-rank.
  template <typename Call>
  void run(const Call& call);
  // Whether it is true on any rank.
  bool any(bool value);
  void finish(std::vector<double> values, StopReason stopped_by);
  // Adds a call's seconds on this rank, minus what it waited for others, to `paces_`.
  void keep_pace(double seconds);
  void gather_disturbed();

  Device& device_;
  Communicator& world_;
  Communicator* comm_;  // ranks that measure together: the world, or this rank alone when taking turns
  const Protocol& own_protocol_;
  const Protocol* protocol_;  // in effect: the case's, or a round's fraction of it
  Clock clock_;
  bool slow_ = false;
  bool turns_ = false;
  bool collective_ = false;
  double waited_ = 0;
  std::unique_ptr<Stream> stream_;
  DisturbanceWatch watch_;
  std::vector<double> own_;    // this rank's times
  std::vector<double> paces_;  // the same without waiting, if that differs
  Measurement measurement_;
};

}  // namespace assay
