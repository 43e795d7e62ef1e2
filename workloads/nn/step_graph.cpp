#include "workloads/nn/step_graph.h"

#include "harness/trace/trace.h"

namespace assay::nn {

void PartClock::begin(Part part, Stream& stream) {
  if (used_ > 0 && marks_[used_ - 1].part == part) return;
  if (used_ == marks_.size()) marks_.push_back({part, device_.make_event()});
  Mark& mark = marks_[used_++];
  mark.part = part;
  mark.event->stamp(stream);
}

std::array<double, timed_parts> PartClock::seconds() const {
  std::array<double, timed_parts> all{};
  for (std::size_t i = 0; i + 1 < used_; ++i)
    all[static_cast<std::size_t>(marks_[i].part)] += marks_[i + 1].event->seconds_since(*marks_[i].event);
  return all;
}

void StepGraph::run(Stream& stream, const Body& body) {
  if (trace::timeline_on()) why_not_ = "traced: kernels are attributed to spans";  // impossible for a replay
  if (!graph_ && warm_ && why_not_.empty())
    graph_ = device_.capture(
        stream, [&] { enqueue(body); }, why_not_);
  if (graph_) {
    const trace::Span span(trace::Category::sample, "graph");
    graph_->launch(stream);
    return;
  }
  enqueue(body);
  warm_ = true;
}

void StepGraph::enqueue(const Body& body) {
  clock_.restart();
  body(clock_);
}

}  // namespace assay::nn
