// The collective family and its case.
#include "suites/collective/collective.h"

#include "harness/core/error.h"
#include "harness/device/cpu/team.h"
#include "suites/collective/answer.h"
#include "suites/collective/layout.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace assay {

namespace collective {

namespace {

constexpr int root = 0;

Op op_of(const Params& params) {
  if (const auto op = op_from(params.text("op"))) return *op;
  throw Error("collective: unknown op " + params.text("op"));
}

DType dtype_of(const Params& params) {
  if (const auto dtype = dtype_from(params.text("dtype"))) return *dtype;
  throw Error("collective: unknown dtype " + params.text("dtype"));
}

class CollectiveCase final : public Case {
 public:
  explicit CollectiveCase(const Params& params)
      : op_(op_of(params)),
        bytes_(static_cast<std::size_t>(params.integer("bytes"))),
        dtype_(dtype_of(params)),
        in_place_(params.flag("inplace")),
        batching_(params.text("batching")) {}

  std::optional<std::string> skip_reason(const Context& context) const override {
    const int ranks = context.comm.size();
    if (in_place_ && !has_in_place(op_)) return fmt::format("{} has no in-place form", name_of(op_));
    if (layout_of(op_, bytes_, dtype_, ranks).count == 0)
      return fmt::format("{} bytes hold no element of {} for each of {} ranks", bytes_, assay::name_of(dtype_), ranks);
    if (reduces(op_) && ranks > most_ranks(dtype_))
      return fmt::format("sums over more than {} ranks are not exact in {}", most_ranks(dtype_),
                         assay::name_of(dtype_));
    return std::nullopt;
  }

  void setup(Context& context) override {
    context_ = &context;
    team_.emplace(1);  // the calls are made by this thread: bound to one CPU
    const int ranks = context.comm.size();
    layout_ = layout_of(op_, bytes_, dtype_, ranks);
    answer_ = make_answer(op_, dtype_, layout_, context.comm.rank(), ranks, context.seed, root);
    const std::size_t element = size_of(dtype_);
    if (in_place_) {
      receive_ = allocate(context.device, std::max(layout_.send, layout_.receive) * element);
    } else {
      send_ = allocate(context.device, layout_.send * element);
      receive_ = allocate(context.device, layout_.receive * element);
    }
    fill();
    describe(context);
  }

  void measure(Sampler& sampler) override {
    const std::function<void()> ring = [this, &sampler] { send_and_receive(sampler.stream()); };
    sampler.repeat(1, [&](Stream& stream, int) { call(stream, ring); });
  }

  void verify(Checks& checks) override {
    if (in_place_ && reduces(op_)) {
      // Each timed call summed the sums of the one before: once more, from known inputs, on the same buffers.
      const auto stream = context_->device.make_stream();
      fill();
      context_->comm.barrier();
      call(*stream, [] {});
      stream->synchronize();
    }
    if (context_->faults.contains(Fault::wrong_sum) && context_->comm.rank() == context_->comm.size() - 1)
      answer_->corrupt(receive_.data(), in_place_);
    add_check(checks, "wrong_elements", answer_->check_receive(receive_.data(), in_place_));
    if (!in_place_) add_check(checks, "changed_inputs", answer_->check_send(send_.data()));
    fill();  // a further measurement starts anew
  }

  std::vector<Metric> metrics(const Measurement& measured) const override {
    const auto bytes = static_cast<double>(layout_.bytes);
    const auto factor = bus_factor(op_, context_->comm.size());
    Metric bus = rate_metric("busbw", bytes * factor.value_or(1), "B/s", measured);
    if (!factor) {
      bus.value.reset();
      bus.ci95.reset();
    }
    return {bus, rate_metric("algbw", bytes, "B/s", measured), time_metric("latency", measured)};
  }

 private:
  // In huge pages also where it is small, as slices of a flat gradient buffer are: Open MPI's copies of 64 KiB from
  // process to process take 15 % less time then (Zen 4).
  static Buffer allocate(Device& device, std::size_t bytes) {
    constexpr std::size_t huge_page = std::size_t{2} << 20;
    return device.allocate(std::max(bytes, huge_page));
  }

  void fill() {
    if (in_place_) return answer_->fill_in_place(receive_.data());
    answer_->fill_send(send_.data());
    answer_->poison(receive_.data());
  }

  void describe(Context& context) const {
    context.protocol.batching = batching_;
    context.protocol.cache = "hot";  // the same buffers each time, as nccl-tests and the OSU benchmarks
    context.protocol.data = "integers";
    context.labels["implementation"] = context.comm.implementation();
    context.labels["count"] = std::to_string(layout_.count);
    context.labels["bytes_used"] = std::to_string(layout_.bytes);
    context.labels["redop"] = reduces(op_) ? "sum" : "none";
    context.labels["root"] = op_ == Op::broadcast ? std::to_string(root) : "-1";
  }

  void call(Stream& stream, const std::function<void()>& ring) {
    Communicator& comm = context_->comm;
    void* receive = receive_.data();
    const void* send = in_place_ ? receive : send_.data();
    switch (op_) {
      case Op::all_reduce: return comm.all_reduce(send, receive, layout_.count, dtype_, ReduceOp::sum, stream);
      case Op::all_gather: return comm.all_gather(send, receive, layout_.count, dtype_, stream);
      case Op::reduce_scatter: return comm.reduce_scatter(send, receive, layout_.count, dtype_, ReduceOp::sum, stream);
      case Op::all_to_all: return comm.all_to_all(send, receive, layout_.count, dtype_, stream);
      case Op::send_recv: return comm.group(ring, stream);
      case Op::broadcast:
        // Out of place as NCCL has it: the root's own receive buffer is filled too.
        if (!in_place_ && comm.rank() == root) context_->device.copy(receive, send, layout_.bytes, stream);
        return comm.broadcast(receive, layout_.count, dtype_, root, stream);
    }
  }

  // To the next rank of the ring, from the one before.
  void send_and_receive(Stream& stream) {
    Communicator& comm = context_->comm;
    const int ranks = comm.size();
    comm.send(send_.data(), layout_.count, dtype_, (comm.rank() + 1) % ranks, stream);
    comm.receive(receive_.data(), layout_.count, dtype_, (comm.rank() + ranks - 1) % ranks, stream);
  }

  // The check of the whole world, the same on every rank; its culprits, by rank, on rank 0.
  void add_check(Checks& checks, const char* name, const Wrong& wrong) {
    Communicator& comm = context_->comm;
    const auto ranks = static_cast<std::size_t>(comm.size());
    constexpr std::size_t text_bytes = 320;
    std::array<char, text_bytes> own{};
    std::string text;
    for (const std::string& line : wrong.detail) text += (text.empty() ? "" : "; ") + line;
    if (wrong.count > wrong.detail.size()) text += fmt::format("; {} in all", wrong.count);
    std::copy_n(text.begin(), std::min(text.size(), text_bytes - 1), own.begin());

    const auto stream = context_->device.make_stream();
    const auto count = static_cast<std::int64_t>(wrong.count);
    std::vector<std::int64_t> counts(ranks);
    std::vector<char> texts(ranks * text_bytes);
    comm.all_gather(&count, counts.data(), 1, DType::i64, *stream);
    comm.all_gather(own.data(), texts.data(), text_bytes, DType::u8, *stream);

    std::int64_t total = 0;
    std::vector<std::string> detail;
    for (std::size_t r = 0; r < ranks; ++r) {
      total += counts[r];
      if (counts[r] && comm.rank() == 0 && detail.size() < 20)
        detail.push_back(fmt::format("rank {}: {}", r, texts.data() + r * text_bytes));
    }
    checks.at_most(name, static_cast<double>(total), 0, detail);
  }

  Op op_;
  std::size_t bytes_;
  DType dtype_;
  bool in_place_;
  std::string batching_;
  Context* context_ = nullptr;
  std::optional<cpu::Team> team_;
  Layout layout_;
  std::unique_ptr<Answer> answer_;
  Buffer send_;  // unused in place
  Buffer receive_;
};

Estimate estimate(const Params& params, const World& world) {
  const DType dtype = dtype_of(params);
  const Layout layout =
      layout_of(op_of(params), static_cast<std::size_t>(params.integer("bytes")), dtype, std::max(world.ranks, 1));
  const std::size_t held =
      params.flag("inplace") ? std::max(layout.send, layout.receive) : layout.send + layout.receive;
  Estimate result;
  result.memory_bytes = static_cast<double>(held * size_of(dtype));
  result.bytes = static_cast<double>(layout.bytes);
  return result;
}

}  // namespace
}  // namespace collective

Family collective_family() {
  using namespace collective;
  Family family;
  family.name = "collective";
  family.summary = "calls between ranks, counted as nccl-tests does: algbw, busbw, latency";
  std::vector<std::string> names;
  std::vector<ParamValue> all;
  for (int i = 0; i < op_count; ++i) {
    names.emplace_back(name_of(static_cast<Op>(i)));
    all.emplace_back(names.back());
  }
  const auto size = [](std::int64_t bytes) { return ParamValue(bytes); };
  family.params = {
      {"op", ParamType::choice, all, names, {}, {}, "the call", {}},
      {"bytes",
       ParamType::bytes,
       {size(8), size(64 << 10), size(16 << 20)},
       {},
       1.0,
       {},
       "total bytes, rounded down to whole elements of every rank",
       {}},
      {"dtype", ParamType::choice, {std::string("f32")}, {"f32", "bf16", "i64"}, {}, {}, "element type", {}},
      {"inplace", ParamType::flag, {false}, {}, {}, {}, "send and receive in one buffer", {}},
      {"batching",
       ParamType::choice,
       {std::string("batched")},
       {"batched", "isolated"},
       {},
       {},
       "calls back to back, or one a sample after a barrier",
       {}},
  };
  family.estimate = collective::estimate;
  family.make = [](const Params& params) -> std::unique_ptr<Case> { return std::make_unique<CollectiveCase>(params); };
  family.devices = {DeviceKind::cpu};
  return family;
}

}  // namespace assay
