// The collective family and its case.
#include "suites/collective/collective.h"

#include "harness/core/error.h"
#include "harness/device/cpu/team.h"
#include "harness/sampling/groups.h"
#include "harness/sampling/pairs.h"
#include "suites/collective/answer.h"
#include "suites/collective/call.h"
#include "suites/collective/groups.h"
#include "suites/collective/layout.h"
#include "suites/collective/pairwise.h"
#include "suites/collective/staging.h"
#include "suites/collective/world_check.h"

#include <algorithm>
#include <cstring>

namespace assay {

namespace collective {

namespace {

constexpr int calls_per_graph = 20;  // as many as nccl-tests captures by default

DType dtype_of(const Params& params) {
  if (const auto dtype = dtype_from(params.text("dtype"))) return *dtype;
  throw Error("collective: unknown dtype " + params.text("dtype"));
}

bool is_pairwise(const Params& params) { return params.text("op") == pairwise_op || params.text("op") == rails_op; }
bool is_groups(const Params& params) { return params.text("op") == groups_op; }

// Which ranks make a call together.
enum class Among { all, rail };
constexpr auto words(Among) { return std::to_array<std::string_view>({"all", "rail"}); }
bool on_rails(const Params& params) { return params.has("among") && params.choice<Among>("among") == Among::rail; }

enum class Buffers { plain, registered, symmetric };
constexpr auto words(Buffers) { return std::to_array<std::string_view>({"plain", "registered", "symmetric"}); }
// A way between GPUs that NCCL takes where it likes, or never.
enum class Way { automatic, off };
constexpr auto words(Way) { return std::to_array<std::string_view>({"auto", "off"}); }

// Both exist only on GPUs.
std::optional<Registration> registration_of(const Params& params) {
  switch (params.has("buffers") ? params.choice<Buffers>("buffers") : Buffers::plain) {
    case Buffers::registered: return Registration::local;
    case Buffers::symmetric: return Registration::symmetric;
    case Buffers::plain: break;
  }
  return std::nullopt;
}
bool without(const Params& params, const char* way) { return params.has(way) && params.choice<Way>(way) == Way::off; }

class CollectiveCase final : public Case {
 public:
  explicit CollectiveCase(const Params& params)
      : op_(params.choice<Op>("op")),
        bytes_(static_cast<std::size_t>(params.integer("bytes"))),
        dtype_(dtype_of(params)),
        in_place_(params.flag("inplace")),
        batching_(params.choice<Protocol::Batching>("batching")),
        registration_(registration_of(params)) {}

  std::optional<std::string> prepare(Context& context) override {
    const int ranks = context.comm.size();
    if (in_place_ && !has_in_place(op_)) return fmt::format("{} has no in-place form", word_of(op_));
    if (layout_of(op_, bytes_, dtype_, ranks).count == 0)
      return fmt::format("{} bytes hold no element of {} for each of {} ranks", bytes_, assay::name_of(dtype_), ranks);
    if (reduces(op_) && ranks > max_ranks(dtype_))
      return fmt::format("sums over more than {} ranks are not exact in {}", max_ranks(dtype_), assay::name_of(dtype_));
    if (!registration_) return std::nullopt;
    if (ranks == 1) return "one rank has no peer to register its buffers with";
    const std::string why_not = context.comm.why_not_registered(*registration_);
    return why_not.empty() ? std::nullopt : std::optional(why_not);
  }

  void setup(Context& context) override {
    context_ = &context;
    // On a CPU this thread makes the calls: bind it to one core.
    if (context.device.kind() == DeviceKind::cpu) team_.emplace(1);
    staging_.emplace(context.device);
    const int ranks = context.comm.size();
    layout_ = layout_of(op_, bytes_, dtype_, ranks);
    sent_.clear();
    for (int to = 0; to < ranks; ++to) sent_.push_back(layout_.count * skewed_units(to, ranks));
    received_.assign(sent_.size(), sent_[static_cast<std::size_t>(context.comm.rank())]);
    answer_ = make_answer(op_, dtype_, layout_, context.comm.rank(), ranks, context.inputs.seed);
    const std::size_t element = size_of(dtype_);
    if (in_place_) {
      receive_ = allocate(context, std::max(layout_.send, layout_.receive) * element);
    } else {
      send_ = allocate(context, layout_.send * element);
      receive_ = allocate(context, layout_.receive * element);
    }
    fill();
    describe(context);
  }

  void measure(Sampler& sampler) override {
    const std::function<void()> ring = [this, &sampler] { send_and_receive(sampler.stream()); };
    if (context_->device.kind() != DeviceKind::cpu && context_->comm.size() > 1)
      record_algorithm([&] {  // an untimed call, which also connects the ranks
        call(sampler.stream(), ring);
        sampler.stream().synchronize();
      });
    sampler.calls_are_collective();
    if (batching_ != Protocol::Batching::graph) return sampler.repeat([&](Stream& stream, int) { call(stream, ring); });
    // The library may choose another algorithm in a graph, whose buffers it may register.
    record_algorithm([&] { graph_ = capture(sampler.stream(), calls_per_graph); });
    sampler.repeat([this](Stream& stream, int) { graph_->launch(stream); });
  }

  void verify(Checks& checks) override {
    if (in_place_ && reduces(op_)) {
      // Each timed call summed up the sums of the previous one: call once more, from known inputs, on the same buffers.
      const auto stream = context_->device.make_stream();
      fill();
      const auto graph = graph_ ? capture(*stream, 1) : nullptr;
      context_->comm.barrier();
      graph ? graph->launch(*stream) : call(*stream, [] {});
      stream->synchronize();
    }
    if (context_->comm.rank() == context_->comm.size() - 1 && context_->inject(Fault::wrong_sum)) corrupt();
    Wrong wrong, changed;
    staging_->read(receive_.data(), receive_elements(), size_of(dtype_),
                   [&](const void* part, std::size_t first, std::size_t count) {
                     answer_->check_receive(wrong, part, in_place_, first, count);
                   });
    add_check(checks, context_->comm, "wrong_elements", wrong);
    if (!in_place_) {
      staging_->read(send_.data(), layout_.send, size_of(dtype_),
                     [&](const void* part, std::size_t first, std::size_t count) {
                       answer_->check_send(changed, part, first, count);
                     });
      add_check(checks, context_->comm, "changed_inputs", changed);
    }
    fill();  // for another measurement
    // Some connections are made, and reported, only by the first call.
    context_->outputs.choices["implementation"] = context_->comm.implementation();
  }

  std::vector<Metric> metrics(const Measurement& measured) const override {
    const int calls = graph_ ? calls_per_graph : 1;
    const auto bytes = static_cast<double>(layout_.bytes) * calls;
    const auto factor = bus_factor(op_, context_->comm.size());
    const Metric bus = factor ? rate_metric("busbw", bytes * *factor, "B/s", measured)
                              : value_metric("busbw", std::nullopt, "B/s", Better::higher);
    std::vector<Metric> all{bus, rate_metric("algbw", bytes, "B/s", measured), time_metric("latency", measured, calls)};
    add_spread(measured.single_calls, all);
    return all;
  }

 private:
  // Adds how much single calls differ. The mean of a batch or of a graph of calls tells nothing about one of them, and
  // fewer than a hundred calls have no 99th percentile.
  void add_spread(const std::vector<double>& calls, std::vector<Metric>& all) const {
    constexpr std::size_t enough_for_p99 = 100;
    if (calls.empty() || graph_) return;
    all.push_back(value_metric("latency_p50", median(calls), "s"));
    if (calls.size() >= enough_for_p99) all.push_back(value_metric("latency_p99", quantile(calls, 0.99), "s"));
    all.push_back(value_metric("latency_max", std::ranges::max(calls), "s"));
    context_->outputs.labels["single_calls"] = std::to_string(calls.size());
  }

  // Small buffers use huge pages too, like slices of a flat gradient buffer: that makes Open MPI's copies of 64 KiB
  // between processes 15 % faster (Zen 4).
  Buffer allocate(Context& context, std::size_t bytes) const {
    constexpr std::size_t huge_page = std::size_t{2} << 20;
    const std::size_t enough = std::max(bytes, huge_page);
    return registration_ ? context.comm.allocate_registered(enough, *registration_) : context.device.allocate(enough);
  }
  std::size_t receive_elements() const { return in_place_ ? std::max(layout_.send, layout_.receive) : layout_.receive; }

  void fill() {
    const std::size_t element = size_of(dtype_);
    staging_->write(receive_.data(), receive_elements(), element,
                    [&](void* part, std::size_t first, std::size_t count) {
                      if (in_place_)
                        answer_->fill_in_place(part, first, count);
                      else
                        std::memset(part, 0xff, count * element);
                    });
    if (in_place_) return;
    staging_->write(send_.data(), layout_.send, element,
                    [&](void* part, std::size_t first, std::size_t count) { answer_->fill_send(part, first, count); });
  }

  void corrupt() {
    const std::size_t element = size_of(dtype_);
    char* place = receive_.as<char>() + answer_->corruptible(in_place_) * element;
    std::array<char, 16> held{};
    staging_->read(place, 1, element,
                   [&](const void* part, std::size_t, std::size_t) { std::memcpy(held.data(), part, element); });
    answer_->corrupt(held.data());
    staging_->write(place, 1, element,
                    [&](void* part, std::size_t, std::size_t) { std::memcpy(part, held.data(), element); });
  }

  // Libraries report the algorithm they choose only while a call is made or captured.
  void record_algorithm(const std::function<void()>& make_call) {
    const std::string choice = context_->comm.choice_of(make_call);
    if (!choice.empty()) context_->outputs.choices["algorithm"] = choice;
  }

  std::unique_ptr<Graph> capture(Stream& stream, int calls) {
    const std::function<void()> ring = [this, &stream] { send_and_receive(stream); };
    std::string why_not = "refused on another rank";
    auto graph = context_->device.capture(
        stream,
        [&] {
          for (int i = 0; i < calls; ++i) call(stream, ring);
        },
        why_not);
    if (context_->comm.max_of(graph ? 0 : 1) > 0)
      throw Error(fmt::format("{} cannot be captured in a graph: {}", word_of(op_), why_not));
    return graph;
  }

  void describe(Context& context) const {
    context.outputs.protocol.batching = batching_;
    if (batching_ == Protocol::Batching::graph)
      context.outputs.protocol.details["calls_per_graph"] = std::to_string(calls_per_graph);
    context.outputs.protocol.cache =
        Protocol::Cache::hot;  // the same buffers each time, as in nccl-tests and the OSU benchmarks
    context.outputs.protocol.data = "integers";
    context.outputs.choices["implementation"] = context.comm.implementation();
    context.outputs.labels["count"] = std::to_string(layout_.count);
    context.outputs.labels["bytes_used"] = std::to_string(layout_.bytes);
    context.outputs.conditions["redop"] = reduces(op_) ? "sum" : "none";
    context.outputs.conditions["root"] = op_ == Op::broadcast ? std::to_string(root_rank) : "-1";
  }

  void call(Stream& stream, const std::function<void()>& ring) {
    Communicator& comm = context_->comm;
    void* receive = receive_.data();
    const void* send = in_place_ ? receive : send_.data();
    if (op_ == Op::send_recv) return comm.group(ring, stream);
    if (op_ == Op::all_to_all_v) return comm.all_to_all_v(send, sent_, receive, received_, dtype_, stream);
    make_call(op_, comm, send, receive, layout_, dtype_, stream);
  }

  // To the next rank of the ring, from the previous one.
  void send_and_receive(Stream& stream) {
    Communicator& comm = context_->comm;
    const int ranks = comm.size();
    comm.send(send_.data(), layout_.count, dtype_, (comm.rank() + 1) % ranks, stream);
    comm.receive(receive_.data(), layout_.count, dtype_, (comm.rank() + ranks - 1) % ranks, stream);
  }

  Op op_;
  std::size_t bytes_;
  DType dtype_;
  bool in_place_;
  Protocol::Batching batching_;
  std::optional<Registration> registration_;
  Context* context_ = nullptr;
  std::optional<cpu::Team> team_;
  std::optional<Staging> staging_;
  Layout layout_;
  std::vector<std::size_t> sent_, received_;  // elements to and from each rank, if they differ
  std::unique_ptr<Answer> answer_;
  Buffer send_;  // unused in place
  Buffer receive_;
  std::unique_ptr<Graph> graph_;  // the timed calls, if they are captured
};

Estimate estimate(const Params& params, const World& world) {
  const DType dtype = dtype_of(params);
  const Op op = is_pairwise(params) ? Op::send_recv : is_groups(params) ? Op::all_reduce : params.choice<Op>("op");
  const Layout layout =
      layout_of(op, static_cast<std::size_t>(params.integer("bytes")), dtype, std::max(world.ranks, 1));
  const std::size_t held =
      params.flag("inplace") ? std::max(layout.send, layout.receive) : layout.send + layout.receive;
  Estimate result;
  result.memory_bytes = static_cast<double>(held * size_of(dtype));
  result.bytes = static_cast<double>(layout.bytes);
  // One rank of each host takes part. Each direction of each round takes at least its minimum time, and each round has
  // a communicator of its own, which NCCL takes longer to make.
  const double split_seconds = world.device == DeviceKind::cpu ? 0.01 : 0.3;
  const int members = world.nodes > 1 ? world.nodes : world.ranks;
  if (is_pairwise(params)) result.seconds = pairing_rounds(members) * (2 * Sampler::min_round_seconds + split_seconds);
  if (is_groups(params)) result.seconds = groupings_in_all * (Sampler::min_round_seconds + split_seconds);
  return result;
}

}  // namespace
}  // namespace collective

Family collective_family() {
  using namespace collective;
  Family family;
  family.name = "collective";
  family.summary = "calls between ranks, counted as in nccl-tests: algbw, busbw, latency";
  std::vector<std::string> all_ops = all_words<Op>();
  // Only on request: skewed blocks are a question of their own, and pairs and groups take several rounds.
  std::vector<std::string> ops = all_ops;
  std::erase(ops, word_of(Op::all_to_all_v));
  all_ops.insert(all_ops.end(), {pairwise_op, rails_op, groups_op});
  family.params = {
      axis::choice("op", all_ops).runs(ops).doc("the call"),
      axis::bytes("bytes", {8, 64 << 10, 16 << 20})
          .runs_on_gpu({8, 64 << 10, 16 << 20, 1 << 30})  // 1 GiB: links between GPUs saturate
          .at_least(1)
          .doc("total bytes, rounded down to whole elements of every rank"),
      axis::choice("dtype", {"f32", "bf16", "i64"}).runs({"f32"}).doc("element type"),
      axis::flag("inplace").doc("send and receive in one buffer"),
      axis::choice<Protocol::Batching>("batching")
          .runs({"batched"})
          .only(DeviceKind::cuda, {"graph"})
          .doc("calls back to back, one per sample after a barrier, or 20 at a time as a CUDA graph"),
      // NCCL reads its switch once per process, and registered memory is its own: both exist only on GPUs.
      axis::choice<Way>("nvls")
          .runs({"auto"})
          .only(DeviceKind::cuda)
          .doc("sums in the NVLink switch: as NCCL chooses, or never"),
      axis::choice<Buffers>("buffers")
          .runs({"plain"})
          .only(DeviceKind::cuda)
          .doc("the device's own memory, or NCCL's: registered by each rank, or as a symmetric window of all"),
      axis::choice<Way>("p2p")
          .runs({"auto"})
          .only(DeviceKind::cuda)
          .omitted_by_default()
          .doc("straight from GPU to GPU, over NVLink or PCI Express: as NCCL chooses, or never"),
      axis::choice<Among>("among").runs({"all"}).omitted_by_default().doc(
          "who calls: all ranks, or those of one number on every host, all such rails at once"),
  };
  family.environment = [](const Params& params) {
    std::map<std::string, std::string> variables;
    if (without(params, "nvls")) variables["NCCL_NVLS_ENABLE"] = "0";
    if (without(params, "p2p")) variables["NCCL_P2P_DISABLE"] = "1";
    // So that every GPU sends by the port nearest to it, and the counters of ports tell which one did.
    if (params.text("op") == rails_op || on_rails(params))
      variables["NCCL_PXN_DISABLE"] = "1", variables["NCCL_CROSS_NIC"] = "0";
    return variables;
  };
  family.communicates = true;
  family.estimate = collective::estimate;
  family.make = [](const Params& params) -> std::unique_ptr<Case> {
    const bool rails = on_rails(params);
    if (!is_groups(params) && !is_pairwise(params) && !rails) return std::make_unique<CollectiveCase>(params);
    const PairwiseParams chosen = {static_cast<std::size_t>(params.integer("bytes")),
                                   dtype_of(params),
                                   params.choice<Protocol::Batching>("batching"),
                                   params.flag("inplace"),
                                   registration_of(params).has_value(),
                                   params.text("op") == rails_op || rails};
    if (is_pairwise(params) && !rails) return make_pairwise(chosen);
    return make_groups(
        chosen, is_groups(params) || is_pairwise(params) ? std::nullopt : std::optional(params.choice<Op>("op")));
  };
  family.faults = {Fault::wrong_sum, Fault::slow_link};
  family.devices = {DeviceKind::cpu, DeviceKind::cuda};
  return family;
}

}  // namespace assay
