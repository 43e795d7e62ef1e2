#include "harness/kineto/events.h"

#include "harness/core/error.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/machine/hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

namespace assay::kineto {
namespace {

constexpr std::size_t max_names = 1u << 16, max_annotations = 1000;
constexpr std::string_view profiler_step = "ProfilerStep";
constexpr std::string_view engine = "autograd::engine::evaluate_function";

double seconds(std::int64_t ns) { return 1e-9 * static_cast<double>(ns); }

// NCCL's and RCCL's kernels, of all versions.
bool is_collective_kernel(std::string_view name) {
  return name.starts_with("ncclDevKernel") || name.starts_with("ncclKernel");
}

// Ranges in which threads of a backend on the host exchange data; those of NCCL only enqueue.
bool is_host_collective(std::string_view name) {
  return name.starts_with("gloo:") || name.starts_with("mpi:") || name.starts_with("ucc:");
}

// The number behind the last '#'.
std::optional<std::int64_t> number_of(std::string_view name) {
  const std::size_t mark = name.rfind('#');
  if (mark == name.npos) return std::nullopt;
  std::int64_t number = 0;
  const char* end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + mark + 1, end, number);
  return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

}  // namespace

// Names of the last years' releases; case differs among them.
Category category_from(std::string_view text) {
  const std::string name = lower_case(text);
  if (name == "cpu_op" || name == "operator") return Category::operation;
  if (name == "user_annotation") return Category::annotation;
  if (name == "kernel") return Category::kernel;
  if (name == "gpu_memcpy" || name == "memcpy" || name == "gpu_memset" || name == "memset") return Category::copy;
  if (name == "python_function") return Category::python;
  return Category::other;
}

void Event::clear() {
  name.clear(), collective.clear(), group.clear();
  category = Category::other, complete = false;
  start_us = duration_us = std::numeric_limits<double>::quiet_NaN();
  thread = device = 0, sequence = external = correlation = -1;
  inputs.clear();
}

void Events::take() {
  ++count;
  if (!event.complete || event.category == Category::other) return;
  constexpr double max_us = 4e15, max_duration_us = 1e13;  // 120 years, 115 days
  if (!(std::abs(event.start_us) < max_us) || !(std::abs(event.duration_us) < max_duration_us))
    throw UsageError(fmt::format("{}: event {} ({}) has no valid {}", file_, count, in_quotes(event.name),
                                 std::abs(event.start_us) < max_us ? "dur" : "ts"));
  negative_ += event.duration_us < 0;
  const std::int64_t start = std::llround(event.start_us * 1000);
  const Range range{start, start + std::max<std::int64_t>(0, std::llround(event.duration_us * 1000))};
  if (event.category == Category::kernel || event.category == Category::copy)
    take_gpu(range);
  else if (!take_step(range))
    take_host(range);
}

bool Events::take_step(Range range) {
  if (event.category == Category::python) return false;
  const std::string_view name = event.name, wanted = step_.empty() ? profiler_step : std::string_view(step_);
  if (!name.starts_with(wanted) || (name.size() > wanted.size() && name[wanted.size()] != '#')) return false;
  steps_.push_back({number_of(name).value_or(-1), range, event.thread});
  begun_[range.start] = range.end;
  return true;
}

std::optional<Events::Layer> Events::layer_of_event() const {
  const std::string_view name = event.name;
  switch (event.category) {
    case Category::annotation:
      if (name.starts_with("enumerate(DataLoader)")) return data;
      if (name.starts_with("Optimizer.step#")) return optimizer;
      return std::nullopt;
    case Category::python:  // with_stack=True
      if (name.starts_with("torch/serialization.py(") && name.ends_with("): save")) return checkpoint;
      return std::nullopt;
    default: return name.starts_with(engine) ? backward : operators;
  }
}

void Events::take_host(Range range) {
  if (event.category == Category::annotation) {
    if (annotations_.size() < max_annotations) annotations_.insert(event.name.substr(0, event.name.find('#')));
    if (is_host_collective(event.name)) {
      host_collectives_.push_back(range);
      add_collective(event.name, range);
      return;
    }
  }
  const auto layer = layer_of_event();
  if (!layer) return;
  if (layer == data && event.name.find("MultiProcessing") != std::string::npos) trace.loads_itself = false;
  Thread& thread = threads_[event.thread];
  const std::uint32_t product = event.category == Category::operation ? take_product(thread, range) : no_product;
  if (trace.gpu && layer != data) return;
  if (event.category == Category::operation && counts(range.start)) take_operator(thread, range, product);
  // Traces list what encloses first; what it encloses is part of it.
  if (range.start >= thread.started && range.end <= thread.covered) return;
  thread.layers[*layer].push_back(range);
  thread.started = range.start, thread.covered = range.end;
}

// The profiler runs during its own steps, so that all belongs to them; a GPU finishes some of it behind the last.
// Around other ranges there is more, which does not count. Traces list ranges before what runs in them.
bool Events::counts(std::int64_t start) const {
  if (step_.empty()) return true;
  const auto next = begun_.upper_bound(start);
  return next != begun_.begin() && start < std::prev(next)->second;
}

// An operator's own time is without those that it calls.
void Events::take_operator(Thread& thread, Range range, std::uint32_t product) {
  if (range.start < thread.last_operator) operators_in_order_ = false;
  thread.last_operator = range.start;
  close_operators(thread, range.start);
  const std::int64_t ns = range.end - range.start;
  if (!thread.open.empty()) thread.open.back().own -= ns;
  const std::uint32_t id = name_id(event.name);
  ++sums_[id].calls;
  thread.open.push_back({id, range.end, ns, product});
}

void Events::close_operators(Thread& thread, std::int64_t before) {
  for (; !thread.open.empty() && thread.open.back().end <= before; thread.open.pop_back()) {
    const Open& one = thread.open.back();
    sums_[one.name].ns += static_cast<double>(one.own);
    if (one.product != no_product) add_time(products_[one.product], one.name, one.own);
  }
}

void Events::add_time(Product& product, std::uint32_t name, std::int64_t ns) {
  product.ns += ns;
  if (ns > product.longest) product.longest = ns, product.name = name;
}

std::uint32_t Events::take_product(Thread& thread, Range range) {
  bool inside = thread.product != no_product && range.start >= thread.product_range.start &&
                range.end <= thread.product_range.end;
  const auto kind = product_kind(event.name);
  // The outermost counts; but autocast calls the same operator again with operands of another type.
  if (kind && (!inside || products_[thread.product].kind == *kind)) {
    shapes_missing_ = shapes_missing_ || event.inputs.shapes == 0;
    if (const auto work = work_of(*kind, event.inputs); work && products_.size() < no_product) {
      if (inside) products_[thread.product].work.flops = 0;
      thread.product = static_cast<std::uint32_t>(products_.size()), thread.product_range = range;
      products_.push_back({*kind, *work});
      inside = true;
    }
  }
  if (!inside) return no_product;
  if (event.external >= 0) product_of_[event.external] = thread.product;
  return thread.product;
}

void Events::take_gpu(Range range) {
  if (!trace.gpu) {
    trace.gpu = true;
    forget_operators();
  }
  used_devices_.insert(event.device);
  const auto ns = static_cast<double>(range.end - range.start);
  const bool counted = counts(range.start);
  if (counted) {
    Sum& sum = sums_[name_id(event.name)];
    ++sum.calls, sum.ns += ns;
  }
  // Older traces have a kernel's correlation as its `External id`, which is no operator's.
  if (const auto found = product_of_.find(event.external);
      event.category == Category::kernel && found != product_of_.end() && event.external != event.correlation) {
    if (counted)
      add_time(products_[found->second], name_id(event.name), range.end - range.start);
    else
      products_[found->second].work.flops = 0;  // some of its time is of no step
  }
  if (event.category == Category::copy) {
    copies_.push_back(range);
    copy_ns_ += ns;
    if (event.name.find("Pageable") != std::string::npos) pageable_ns_ += ns;
  } else if (is_collective_kernel(event.name)) {
    gpu_collectives_.push_back(range);
    // Who sends to whom differs from rank to rank.
    const bool between_two = event.name.find("SendRecv") != std::string::npos && !event.collective.starts_with("all");
    if (!between_two)
      add_collective(event.collective.empty() ? event.name.substr(0, event.name.find('(')) : event.collective, range);
  } else {
    kernels_.push_back(range);
  }
}

void Events::add_collective(std::string name, Range range) {
  if (!event.group.empty()) name += " of group " + event.group;
  if (trace.collectives.size() >= max_names && !trace.collectives.contains(name)) return;
  trace.collectives[name].push_back({range.start, range.end - range.start, event.sequence});
}

std::uint32_t Events::name_id(const std::string& name) {
  const auto found = ids_.find(name);
  if (found != ids_.end()) return found->second;
  const std::string kept = names_.size() < max_names ? name : "others";
  const auto [place, added] = ids_.emplace(kept, static_cast<std::uint32_t>(names_.size()));
  if (added) names_.push_back(kept), sums_.emplace_back();
  return place->second;
}

// With a GPU neither the table nor the parts of a step need the host's operators.
void Events::forget_operators() {
  ids_.clear(), names_.clear(), sums_.clear();
  for (auto& [id, thread] : threads_) {
    for (const Layer layer : {backward, operators, optimizer, checkpoint}) Ranges().swap(thread.layers[layer]);
    thread.open.clear();
  }
  for (Product& product : products_) product.ns = product.longest = 0;
}

RankTrace Events::finish() {
  if (!seen) throw UsageError(fmt::format("{}: is no trace of the PyTorch profiler: it has no traceEvents", file_));
  if (count == 0) throw UsageError(fmt::format("{}: has no events", file_));
  order_steps();
  if (trace.gpu)
    divide_gpu();
  else
    divide_host();
  for (auto& [name, calls] : trace.collectives) std::ranges::sort(calls, {}, &CollectiveCall::start);
  if (negative_ > 0)
    trace.remarks.push_back(fmt::format("{} end before they begin: taken as of no length",
                                        plural(static_cast<std::int64_t>(negative_), "event")));
  if (used_devices_.size() > 1)
    trace.remarks.push_back(
        fmt::format("has kernels of {} GPUs: a moment counts as busy if one of them is", used_devices_.size()));
  if (!used_devices_.empty() && *used_devices_.begin() >= 0 &&
      static_cast<std::size_t>(*used_devices_.begin()) < devices.size())
    trace.device = devices[static_cast<std::size_t>(*used_devices_.begin())];
  finish_uses();
  return std::move(trace);
}

void Events::order_steps() {
  const std::string what = step_.empty() ? "ProfilerStep#N" : step_;
  if (steps_.empty()) {
    std::vector<std::string> names(annotations_.begin(), annotations_.end());
    if (!step_.empty())
      throw UsageError(fmt::format("{}: no range is called {}{}", file_, in_quotes(step_), suggestion(step_, names)));
    throw UsageError(
        fmt::format("{}: has no range {}: call step() of the profiler after each step, or name another "
                    "range with --step{}",
                    file_, what, names.empty() ? "" : ": " + first_few(names, 5)));
  }
  std::ranges::stable_sort(steps_, {}, [](const StepRange& one) { return one.range.start; });
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (steps_[i].number < 0) steps_[i].number = static_cast<std::int64_t>(i);
    if (i == 0) continue;
    constexpr std::int64_t rounding_ns = 1000;
    if (steps_[i].range.start < steps_[i - 1].range.end - rounding_ns)
      throw UsageError(fmt::format("{}: its steps {} and {} overlap: name ranges that follow each other with --step",
                                   file_, steps_[i - 1].number, steps_[i].number));
    steps_[i].range.start = std::max(steps_[i].range.start, steps_[i - 1].range.end);
  }
}

std::vector<Range> Events::windows() const {
  std::vector<Range> all;
  for (const StepRange& step : steps_) all.push_back(step.range);
  return all;
}

void Events::divide_gpu() {
  Ranges& loading = threads_[steps_.front().thread].layers[data];
  for (Ranges* ranges : {&kernels_, &gpu_collectives_, &copies_, &loading}) unite(*ranges);
  const std::array<const Ranges*, 4> layers = {&kernels_, &gpu_collectives_, &copies_, &loading};
  const auto times = divide(windows(), layers);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    TracedStep step{steps_[i].number, seconds(steps_[i].range.start),
                    seconds(steps_[i].range.end - steps_[i].range.start)};
    step.compute = seconds(times[i][0]), step.communication = seconds(times[i][1]);
    step.copies = seconds(times[i][2]), step.data = seconds(times[i][3]);
    step.host = std::max(0.0, step.total - step.compute - step.communication - step.copies - step.data);
    trace.steps.push_back(step);
  }
  if (copy_ns_ > 0) trace.pageable_share = pageable_ns_ / copy_ns_;
}

void Events::divide_host() {
  auto& layers = threads_[steps_.front().thread].layers;
  for (Ranges& ranges : layers) unite(ranges);
  unite(host_collectives_);
  Ranges others = layers[operators];
  for (const Layer layer : {data, checkpoint, optimizer})
    others.insert(others.end(), layers[layer].begin(), layers[layer].end());
  unite(others);
  layers[backward] = phases(layers[backward], others);
  Ranges().swap(others);
  const std::array<const Ranges*, layer_count + 1> all = {&layers[data],     &layers[checkpoint], &layers[optimizer],
                                                          &layers[backward], &layers[operators],  &host_collectives_};
  const auto times = divide(windows(), all);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    TracedStep step{steps_[i].number, seconds(steps_[i].range.start),
                    seconds(steps_[i].range.end - steps_[i].range.start)};
    step.data = seconds(times[i][data]), step.checkpoint = seconds(times[i][checkpoint]);
    step.optimizer = seconds(times[i][optimizer]), step.backward = seconds(times[i][backward]);
    step.communication = seconds(times[i][layer_count]);
    step.forward =
        std::max(0.0, step.total - step.data - step.checkpoint - step.optimizer - step.backward - step.communication);
    trace.steps.push_back(step);
  }
}

void Events::finish_uses() {
  if (!trace.gpu && !operators_in_order_) {
    trace.remarks.emplace_back("its operators are not in the order of time: no table of them");
    return;
  }
  for (auto& [id, thread] : threads_) close_operators(thread, std::numeric_limits<std::int64_t>::max());
  for (std::size_t i = 0; i < names_.size(); ++i)
    trace.uses.push_back({names_[i], sums_[i].calls, 1e-9 * std::max(0.0, sums_[i].ns)});
  add_work();
  std::erase_if(trace.uses, [](const TracedUse& use) { return !(use.calls > 0); });
  std::ranges::stable_sort(trace.uses, std::ranges::greater(), &TracedUse::seconds);
}

// An operator's work is its longest kernel's: others prepare its operands, or add partial sums.
void Events::add_work() {
  const HardwareSheet* sheet = trace.device.empty() ? nullptr : find_hardware(shipped_hardware(), trace.device);
  bool any = false;
  for (const Product& one : products_) {
    if (!(one.work.flops > 0) || one.longest <= 0) continue;
    any = true;
    TracedUse& use = trace.uses[one.name];
    TracedWork work = traced_work(one.work, seconds(one.ns));
    if (trace.gpu) limit_by(sheet, use.name, work);
    if (use.work)
      use.work->add(work);
    else
      use.work = work;
  }
  if (!any && shapes_missing_)
    trace.no_work = "it has no shapes of operators, so no FLOP/s: profile(record_shapes=True) records them";
  else if (!any && !products_.empty())
    trace.no_work = "its kernels do not say which operator launched them, so no FLOP/s";
}

}  // namespace assay::kineto
