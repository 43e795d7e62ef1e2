#include "workloads/nn/walk.h"

#include "harness/trace/trace.h"

namespace assay::nn {

namespace {

class Walker {
 public:
  Walker(const StepPlan& plan, const StepMemory& memory, const Program& program, std::int64_t micro_batch,
         const Walk& how, Stream& stream)
      : plan_(plan),
        memory_(memory),
        program_(program),
        how_(how),
        stream_(stream),
        places_(memory.places(program, micro_batch)),
        going_(static_cast<bool>(how.inspect)),
        gathered_(program.gathers.size()) {}

  void run() {
    const std::vector<Instruction>& list = program_.instructions;
    for (std::size_t i = 0; i < list.size() && !ended();) {
      const Phase phase = list[i].phase;
      const bool forward = phase == Phase::forward;
      part_ = forward ? Part::forward : Part::backward;
      begin(part_);
      const trace::Span phase_span(trace::Category::sample, forward ? "forward" : "backward");
      while (i < list.size() && !ended() && list[i].phase == phase) {
        const std::size_t scope = list[i].scope;
        const trace::Span layer_span(trace::Category::layer, program_.scopes[scope].c_str());
        for (; i < list.size() && !ended() && list[i].phase == phase && list[i].scope == scope; ++i) {
          before(i);
          list[i].run(stream_, places_);
          if (going_) going_ = how_.inspect(list[i], places_);
          after(i);
        }
      }
    }
    // The next program takes the arena.
    if (!program_.reductions.empty() && how_.reduce) await(reduced_, Part::exposed_communication);
  }

 private:
  bool ended() const { return how_.inspect && !going_ && program_.gathers.empty(); }
  void begin(Part part) {
    if (how_.clock) how_.clock->begin(part, stream_);
  }
  std::byte* at(const Window& window) const { return memory_.arena() + window.offset; }
  void await(Reduction::Mark mark, Part part) {
    begin(part);
    how_.collectives->after(mark, stream_);
    begin(part_);
  }

  void before(std::size_t i) {
    for (; queued_ < program_.gathers.size() && program_.gathers[queued_].begin == i; ++queued_) {
      const Window& window = program_.gathers[queued_];
      gathered_[queued_] = how_.collectives->gather(window, at(window), how_.gather, stream_);
    }
    for (; bound_ < program_.gathers.size() && program_.gathers[bound_].first == i; ++bound_) {
      const Window& window = program_.gathers[bound_];
      await(gathered_[bound_], Part::exposed_gather);
      places_.bind(window.slot(), at(window));
    }
    for (const Window& window : program_.reductions)
      if (window.first == i) {
        places_.bind(window.slot(), at(window));
        if (window.clear) how_.collectives->clear(window, at(window), stream_);
      }
  }

  void after(std::size_t i) {
    if (!how_.reduce) return;
    if (how_.last && i + 1 == program_.forward_done) how_.collectives->reduce_sums(stream_);
    for (; reduction_ < program_.reductions.size() && program_.reductions[reduction_].last == i; ++reduction_) {
      const Window& window = program_.reductions[reduction_];
      if (reduction_ > 0) await(reduced_, Part::exposed_communication);
      reduced_ = how_.collectives->reduce(window, at(window), how_.first, stream_);
    }
    if (!how_.last || !program_.reductions.empty()) return;
    const auto& buckets = plan_.parameters.buckets;
    for (; bucket_ < buckets.size() && buckets[bucket_].ready == i + 1; ++bucket_)
      how_.collectives->reduce(buckets[bucket_], stream_);
  }

  const StepPlan& plan_;
  const StepMemory& memory_;
  const Program& program_;
  const Walk& how_;
  Stream& stream_;
  Places places_;
  bool going_;
  Part part_ = Part::forward;
  std::vector<Reduction::Mark> gathered_;                            // by window
  std::size_t queued_ = 0, bound_ = 0, reduction_ = 0, bucket_ = 0;  // the next of each
  Reduction::Mark reduced_ = 0;                                      // the last reduction
};

}  // namespace

void walk(const StepPlan& plan, const StepMemory& memory, const Program& program, std::int64_t micro_batch,
          const Walk& how, Stream& stream) {
  Walker(plan, memory, program, micro_batch, how, stream).run();
}

}  // namespace assay::nn
