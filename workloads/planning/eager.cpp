#include "workloads/planning/eager.h"

#include <algorithm>
#include <utility>

namespace assay::planning {

std::size_t Heap::allocate(double bytes, Use of) {
  events_.push_back({blocks_, bytes, stream});
  live_ += bytes;
  of_use_[static_cast<std::size_t>(of)] += bytes;
  if (live_ > peak_) peak_ = live_, at_peak_ = of_use_;
  return blocks_++;
}

void Heap::free(std::size_t block, double bytes, Use of, Stream on) {
  events_.push_back({block, 0, on});
  live_ -= bytes;
  of_use_[static_cast<std::size_t>(of)] -= bytes;
}

void Heap::change(double bytes, Use from, Use to) {
  of_use_[static_cast<std::size_t>(from)] -= bytes;
  of_use_[static_cast<std::size_t>(to)] += bytes;
}

Block::Block(Heap& heap, double bytes)
    : heap_(heap),
      bytes_(bytes),
      use_(heap.use),
      stream_(heap.stream),
      id_(bytes > 0 ? heap.allocate(bytes, heap.use) : 0) {}

Block::~Block() {
  if (bytes_ > 0) heap_.free(id_, bytes_, use_, stream_);
}

void Block::become(Use use) {
  heap_.change(bytes_, use_, use);
  use_ = use;
}

void Gradients::add(Buffer gradient) {
  if (again_) return;
  gradient->become(Use::gradients);
  all_.push_back(std::move(gradient));
}

Buffer Tape::allocate(double bytes) {
  const bool stopped = last_save_ > 0 && saved_ >= last_save_;
  return std::make_shared<Block>(heap_, stopped ? 0 : bytes);
}

Buffer Tape::allocate_kept(double bytes) {
  if (kept_ == nullptr) return allocate(bytes);
  if (forgets_) return kept_->outputs.emplace_back(allocate(bytes));
  // Where the computation has stopped, the output stays with the others until the region's backward pass ends.
  if (last_save_ > 0 && saved_ >= last_save_) return allocate(0);
  Buffer output = std::move(kept_->outputs.front());
  kept_->outputs.pop_front();
  return output;
}

Buffer Tape::allocate_product(double bytes) {
  const bool keeps = kept_ != nullptr && kept_->products++ % 2 == 0;
  return keeps ? allocate_kept(bytes) : allocate(bytes);
}

void Tape::saves() { ++saved_; }

Variable Tape::made(Buffer data, const std::vector<Variable>& inputs, Backward backward, bool trains) {
  const bool wanted = trains || std::ranges::any_of(inputs, &Variable::wanted);
  if (!wanted) return {.data = std::move(data)};
  Node node;
  for (const Variable& each : inputs) node.inputs.push_back(each.node);
  if (!forgets_) node.backward = std::move(backward);
  nodes_.push_back(std::move(node));
  return {.data = std::move(data), .node = nodes_.size() - 1};
}

Variable Tape::made_of_views(const Variable& input, Backward join) {
  Variable views = made(input.data, {input}, std::move(join));
  if (views.wanted()) nodes_[views.node].joins = true;
  return views;
}

Variable Tape::input(Buffer data, bool wanted) {
  if (!wanted) return {.data = std::move(data)};
  nodes_.emplace_back();
  return {.data = std::move(data), .node = nodes_.size() - 1};
}

Buffer Tape::backward(const Variable& output, Buffer gradient) {
  // What was computed again has stopped early; from here on all is computed.
  last_save_ = 0;
  Buffer first;
  nodes_.at(output.node).gradient = std::move(gradient);
  for (std::size_t index = nodes_.size(); index-- > 0;) {
    Node node = std::move(nodes_[index]);
    nodes_.pop_back();
    if (!node.gradient) continue;
    if (!node.backward) {
      first = std::move(node.gradient);
      continue;
    }
    std::vector<Buffer> gradients = node.backward(std::move(node.gradient));
    node.backward = nullptr;  // frees what was kept
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i] || node.inputs[i] == Variable::no_node) continue;
      Node& to = nodes_[node.inputs[i]];
      // A second gradient is added into a third tensor, as PyTorch does where it cannot add in place.
      if (!to.gradient)
        to.gradient = gradients[i];
      else if (to.joins)
        to.parts.push_back(gradients[i]);
      else
        to.gradient = allocate(std::max(to.gradient->bytes(), gradients[i]->bytes()));
      gradients[i].reset();
    }
  }
  return first;
}

}  // namespace assay::planning
