#include "suites/dataloader/loader_case.h"

#include "harness/device/cpu/team.h"
#include "harness/record/flags.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::dataloader {

LoaderCase::LoaderCase(const Params& params, const Batches& batches)
    : path_(params.text("path")),
      stage_(params.choice<Stage>("stage")),
      cold_(params.choice<Cache>("cache") == Cache::cold),
      workers_(worker_count(params)),
      batches_(batches) {}

data::LoaderOptions LoaderCase::options(int workers) const {
  data::LoaderOptions options;
  options.workers = workers;
  options.cpus = cpu::rank_cpus();
  options.batch = batches_.samples;
  options.prefetch = prefetch_batches;
  options.sample_bytes = sample_bytes();
  if (to_device())
    options.allocate = [this](std::size_t bytes) { return context_->device.allocate(bytes, Memory::pinned); };
  return options;
}

void LoaderCase::start(Context& context, std::string output) {
  context_ = &context;
  Protocol& protocol = context.outputs.protocol;
  protocol.form = Protocol::Form::window;
  protocol.data = generated() ? "generated" : "files";
  protocol.cache = files_read().empty() ? Protocol::Cache::none : cold_ ? Protocol::Cache::cold : Protocol::Cache::warm;
  protocol.warmup_seconds = std::max(protocol.warmup_seconds, 0.3);
  protocol.details["batch"] = std::to_string(batches_.samples);
  protocol.details["prefetch"] = std::to_string(prefetch_batches);
  protocol.details["output"] = std::move(output);
  protocol.details["data_set"] = source_->data_set;
  if (cold_) protocol.details["cold_by"] = "O_DIRECT";
  if (!source_->remark.empty()) context.outputs.flags.push_back(source_->remark);
  if (workers_ > static_cast<int>(cpu::rank_cpus().size())) context.outputs.flags.emplace_back(flag::oversubscribed);
  if (to_device()) {
    protocol.details["memory"] = "device, by two buffers from pinned memory";
    copies_ = context.device.make_stream();
    consumer_ = context.device.make_stream();
    for (DeviceSlot& slot : device_slots_) {
      slot.data = context.device.allocate(static_cast<std::size_t>(batches_.samples * sample_bytes()));
      slot.copied = context.device.make_event();
      slot.consumed = context.device.make_event();
    }
  }
  loader_ = make_loader(workers_);
}

bool LoaderCase::to_device() const {
  return context_ && context_->device.kind() != DeviceKind::cpu && sample_bytes() > 0;
}

// The loader may overwrite a batch once next() is called, so this waits for the batch's copy first and counts it only
// then. Workers continue meanwhile.
std::int64_t LoaderCase::deliver_to_device() {
  const bool before = copied_batches_ > 0;
  if (before) device_slots_[static_cast<std::size_t>(copied_batches_ + 1) % 2].copied->synchronize();
  const data::Batch& batch = loader_->next();
  DeviceSlot& slot = device_slots_[static_cast<std::size_t>(copied_batches_) % 2];
  if (slot.used) copies_->wait(*slot.consumed);
  context_->device.copy(slot.data.data(), batch.data, slot.data.bytes(), *copies_);
  slot.copied->record(*copies_);
  consumer_->wait(*slot.copied);
  slot.consumed->record(*consumer_);
  slot.used = true;
  last_ = batch.data;
  ++copied_batches_;
  if (batch.number < batches_.compared)
    first_indices_.insert(first_indices_.end(), batch.indices.begin(), batch.indices.end());
  delivered(batch);
  return before ? batches_.items : 0;
}

// Checks the last batch copied, which the loader still holds.
void LoaderCase::check_device(Checks& checks) {
  std::vector<std::string> detail;
  std::uint64_t wrong = 0;
  if (last_) {
    const DeviceSlot& slot = device_slots_[static_cast<std::size_t>(copied_batches_ + 1) % 2];
    Device& device = context_->device;
    slot.copied->synchronize();
    const Buffer back = device.allocate(slot.data.bytes(), Memory::host);
    device.copy(back.data(), slot.data.data(), back.bytes(), *copies_);
    copies_->synchronize();
    if (context_->comm.rank() == context_->comm.size() - 1 && context_->inject(Fault::bit_flip))
      back.as<std::uint8_t>()[back.bytes() / 2] ^= 1;
    for (std::size_t i = 0; i < back.bytes(); ++i)
      if (back.as<std::byte>()[i] != last_[i] && wrong++ < 20)
        detail.push_back(fmt::format("byte {} of {}", i, back.bytes()));
  }
  checks.at_most("wrong_bytes_on_device", static_cast<double>(wrong), 0, detail);
}

void LoaderCase::measure(Sampler& sampler) {
  if (to_device()) return sampler.window([this] { return deliver_to_device(); });
  sampler.window([this] {
    const data::Batch& batch = loader_->next();
    if (batch.number < batches_.compared)
      first_indices_.insert(first_indices_.end(), batch.indices.begin(), batch.indices.end());
    delivered(batch);
    return batches_.items;
  });
}

void LoaderCase::verify(Checks& checks) {
  if (to_device()) check_device(checks);
  loader_.reset();
  copied_batches_ = 0;
  last_ = nullptr;
  if (!cold_ && !files_read().empty()) flag_eviction(files_read(), *context_);
  check_order(checks);
  check(checks);
  loader_ = make_loader(workers_);
  first_indices_.clear();
}

std::int64_t LoaderCase::compare(const data::Batch&, data::Loader&, std::vector<std::string>&) const { return 0; }

// The samples must come in the order that one worker delivers.
void LoaderCase::check_order(Checks& checks) const {
  const auto many = make_loader(workers_), one = make_loader(1);
  std::vector<std::string> detail;
  std::int64_t wrong = 0;
  const auto samples = static_cast<std::size_t>(batches_.samples);
  for (std::size_t first = 0; first + samples <= first_indices_.size(); first += samples) {
    const data::Batch& expected = one->next();
    for (std::size_t i = 0; i < samples; ++i) {
      const std::int64_t want = expected.indices[i], got = first_indices_[first + i];
      if (got == want) continue;
      ++wrong;
      detail.push_back(
          fmt::format("batch {} sample {}: {} {} instead of {}", expected.number, i, batches_.sample, got, want));
    }
    wrong += compare(expected, *many, detail);
  }
  checks.at_most("wrong_order", static_cast<double>(wrong), 0, detail);
}

int worker_count(const Params& params) {
  if (const auto number = params.number("workers")) return static_cast<int>(*number);
  return cpu::resolve_threads(params.word("workers"));
}

Metric window_throughput(const Measurement& measurement, std::string name, double per_item, std::string unit) {
  Metric metric;
  metric.name = std::move(name);
  metric.unit = std::move(unit);
  metric.better = Better::higher;
  if (measurement.window_seconds > 0 && per_item > 0) {
    metric.value = measurement.items * per_item / measurement.window_seconds;
    metric.ci95 = scaled(mean_interval(measurement.pieces), per_item);
  }
  return metric;
}

}  // namespace assay::dataloader
