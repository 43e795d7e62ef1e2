// Copies between a GPU and its host, one way or both at once, and inside the GPU.
#include "harness/core/error.h"
#include "harness/core/module.h"
#include "harness/device/cpu/cpu_list.h"
#include "harness/device/cpu/near_node.h"
#include "harness/machine/machine.h"
#include "harness/machine/root.h"
#include "suites/transfer/cases.h"
#include "suites/transfer/device_copies.h"
#include "suites/transfer/side_thread.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace assay::transfer {

std::unique_ptr<DeviceCopies> load_device_copies() {
  using Make = DeviceCopies* (*)();
  return std::unique_ptr<DeviceCopies>(Module::load("cuda").function<Make>("assay_cuda_transfer_copies")());
}

namespace {

// The GPU at this bus address ("0000:e0:00.0"), from the kernel; its link also from NVML, in case a container or a
// virtual bus hides it. Nullopt if neither knows it.
std::optional<GpuPart> gpu_on_bus(const std::string& uuid, const std::string& pci) {
  std::optional<GpuPart> found;
  for (GpuPart& gpu : probe_gpus(Root()))
    if (gpu.pci == pci) found = std::move(gpu);
  if (found && found->link_speed && found->link_width && found->max_link_speed && found->max_link_width) return found;
  std::string why_not;
  const auto nvml = Nvml::load(why_not);
  const auto device = nvml ? nvml->find(uuid, pci) : std::nullopt;
  if (!device) return found;
  if (!found) found.emplace();
  add_link(*device, *found);
  return found;
}

// Allocates and touches every page from the node's CPUs, if this process may use them, so the pages are there.
Buffer allocate_near(Device& device, std::size_t bytes, Memory memory, std::optional<int> node) {
  const cpu::RunsOnNode near(node);
  Buffer buffer = device.allocate(bytes, memory);
  if (bytes > 0) std::memset(buffer.data(), 0, bytes);
  return buffer;
}

// The node of the page at this address; nothing if the system does not say.
std::optional<int> node_of(const void* address) {
  constexpr unsigned long flag_node = 1, flag_address = 2;  // MPOL_F_*, whose header <numaif.h> is libnuma's
  int node = -1;
  if (syscall(SYS_get_mempolicy, &node, nullptr, 0, address, flag_node | flag_address) != 0 || node < 0)
    return std::nullopt;
  return node;
}

// "gen 5 x16"; "unknown" if the kernel does not report it.
std::string link_text(std::optional<double> gigatransfers, std::optional<std::int64_t> width) {
  const std::optional<int> generation = pcie_generation(gigatransfers);
  return generation && width ? fmt::format("gen {} x{}", *generation, *width) : "unknown";
}

// The largest median of any rank, and the largest bounds of its interval.
Summary slowest(Communicator& comm, Summary own) {
  own.median = comm.max_of(own.median);
  const bool known = comm.max_of(own.ci95 ? 0 : 1) < 0.5;
  if (known) own.ci95 = Interval{comm.max_of(own.ci95->low), comm.max_of(own.ci95->high)};
  if (!known) own.ci95.reset();
  return own;
}

// One direction of a copy, with its own stream.
struct Way {
  const char* name;
  Buffer from, to;
  bool up;    // to the device
  bool down;  // from the device
  std::unique_ptr<Stream> stream = nullptr;
  std::unique_ptr<Event> done = nullptr;
};

class HostCase final : public Case {
 public:
  explicit HostCase(const Params& params)
      : direction_(params.choice<Direction>("direction")),
        pinned_(params.choice<HostMemory>("memory") == HostMemory::pinned),
        by_kernel_(params.choice<By>("by") == By::kernel),
        each_(gpus_of(params) == Gpus::each),
        bytes_(static_cast<std::size_t>(params.integer("bytes"))) {}

  std::optional<std::string> prepare(Context&) override {
    if (direction_ == Direction::d2d || pinned_) return std::nullopt;
    if (by_kernel_) return "a kernel cannot reach pageable memory";
    return std::nullopt;
  }

  void setup(Context& context) override {
    context_ = &context;
    copies_ = load_device_copies();
    stream_ = context.device.make_stream();
    begun_ = context.device.make_event();
    const cpu::RunsOnNode near(context.device.info().numa_node);
    if (direction_ == Direction::both && !pinned_) side_.emplace();  // its thread stays there
    context.outputs.protocol.details["thread"] = near.place();
    if (direction_ == Direction::h2d || direction_ == Direction::both) add("h2d", true, false);
    if (direction_ == Direction::d2h || direction_ == Direction::both) add("d2h", false, true);
    if (direction_ == Direction::d2d) add("d2d", false, false);
    describe(context);
  }

  void measure(Sampler& sampler) override {
    const cpu::RunsOnNode near(context_->device.info().numa_node);
    context_->outputs.labels["host_cpus"] = cpu_list_text(cpu::cpus_of_this_thread());
    sampler.repeat([this](Stream& stream, int) { enqueue(stream); });
    if (bytes_ > small_bytes) return;
    const bool in_turn = each_ && context_->comm.size() > 1;
    for (int rank = 0; rank < (in_turn ? context_->comm.size() : 1); ++rank) {
      context_->comm.barrier();
      if (in_turn && rank != context_->comm.rank()) continue;
      waited_.values = waits([this] {
        enqueue(*stream_);
        stream_->synchronize();
      });
    }
    waited_.summary = slowest(context_->comm, summarize(waited_.values));
  }

  void verify(Checks& checks) override {
    if (context_->comm.rank() == context_->comm.size() - 1 && context_->inject(Fault::bit_flip))
      flip_a_bit(ways_.back());
    std::vector<std::string> detail;
    std::uint64_t wrong = 0;
    for (const Way& way : ways_) wrong += wrong_in(way, detail);
    checks.at_most("wrong_bytes", static_cast<double>(wrong), 0, detail);
  }

  std::vector<Metric> metrics(const Measurement& measured) const override {
    return figures(bytes_, static_cast<double>(bytes_ * ways_.size()), measured, waited_);
  }

 private:
  void add(const char* name, bool up, bool down) {
    Device& device = context_->device;
    const auto host = [&] {
      return allocate_near(device, bytes_, pinned_ ? Memory::pinned : Memory::host, device.info().numa_node);
    };
    Way way{name, up ? host() : device.allocate(bytes_), down ? host() : device.allocate(bytes_), up, down};
    way.stream = device.make_stream();
    if (up)
      fill_host(way.from.as<std::uint8_t>());
    else
      copies_->fill(way.from.data(), bytes_, *stream_);
    if (!down) device.zero(way.to.data(), bytes_, *stream_);
    stream_->synchronize();
    const auto make = [&] { way.done = device.make_event(); };
    if (side_) {
      side_->start(make);  // also makes this GPU current in that thread
      side_->finish();
    } else {
      make();
    }
    ways_.push_back(std::move(way));
  }

  void fill_host(std::uint8_t* to) const {
    std::size_t i = 0;
    for (; i < bytes_ / 4; ++i) {
      const std::uint32_t value = word(i);
      std::memcpy(to + 4 * i, &value, 4);
    }
    for (std::size_t b = 4 * i; b < bytes_; ++b) to[b] = byte(b);
  }

  void copy(const Way& way, Stream& stream) {
    if (by_kernel_)
      copies_->copy(way.to.data(), way.from.data(), bytes_, static_cast<int>(ways_.size()), stream);
    else
      context_->device.copy(way.to.data(), way.from.data(), bytes_, stream);
  }

  // The second direction has its own stream, which begins and ends with the first. If copies block the host, it also
  // has its own thread, so that neither direction waits for the other.
  void enqueue(Stream& stream) {
    if (ways_.size() == 1) return copy(ways_[0], stream);
    Way& second = ways_[1];
    begun_->record(stream);
    const auto other = [this, &second] {
      second.stream->wait(*begun_);
      copy(second, *second.stream);
      second.done->record(*second.stream);
    };
    if (side_)
      side_->start(other);
    else
      other();
    copy(ways_[0], stream);
    if (side_) side_->finish();
    stream.wait(*second.done);
  }

  void describe(Context& context) {
    Protocol& protocol = context.outputs.protocol;
    protocol.cache = Protocol::Cache::none;
    protocol.data = "pattern";
    // Copies of pageable memory block the host: no gate.
    if (direction_ == Direction::d2d || pinned_) protocol.set_gate(ways_.size() == 2 ? 6 : 1);
    context.outputs.conditions["counts"] = ways_.size() == 2 ? "bytes of both ways" : "bytes that arrive";
    if (direction_ == Direction::d2d) {
      // The same buffers are used each time: small ones stay in the cache.
      const std::string_view level = l2_level(context.device.info(), 2 * static_cast<double>(bytes_));
      protocol.cache = level == "L2" ? Protocol::Cache::hot : Protocol::Cache::none;
      context.outputs.labels["level"] = level.empty() ? "memory" : level;
      return;
    }
    const Way& way = ways_.front();
    const int at = node_of(way.up ? way.from.data() : way.to.data()).value_or(-1);
    const int gpu = context.device.info().numa_node.value_or(-1);
    context.outputs.labels["numa_node"] = at >= 0 ? std::to_string(at) : "unknown";
    context.outputs.labels["gpu_numa_node"] = gpu >= 0 ? std::to_string(gpu) : "unknown";
    protocol.details["numa"] = at < 0 || gpu < 0 ? "unknown" : at == gpu ? "near" : "far";
    read_link(context);
  }

  // An idle link slows down: read its speed under load.
  void read_link(Context& context) {
    if (bytes_ < (std::size_t{256} << 10)) return;  // too small a load to wake it
    constexpr double load = 1e9;                    // bytes: takes tens of milliseconds
    const auto copies = std::clamp<std::int64_t>(static_cast<std::int64_t>(load / static_cast<double>(bytes_)), 2, 256);
    for (int i = 0; i < 2; ++i) enqueue(*stream_);
    stream_->synchronize();
    for (std::int64_t i = 0; i < copies; ++i) enqueue(*stream_);
    const std::optional<GpuPart> loaded = gpu_on_bus(context.device.info().uuid, context.device.info().pci);
    stream_->synchronize();
    context.outputs.labels["pcie"] = loaded ? link_text(loaded->link_speed, loaded->link_width) : "unknown";
    if (!loaded) return;
    const std::string max = link_text(loaded->max_link_speed, loaded->max_link_width);
    context.outputs.labels["pcie_maximum"] = max;
    if (max != "unknown" && context.outputs.labels["pcie"] != "unknown" && context.outputs.labels["pcie"] != max)
      context.outputs.flags.push_back(fmt::format("PCIe link at {} of {}", context.outputs.labels["pcie"], max));
  }

  void flip_a_bit(const Way& way) {
    std::uint8_t* at = way.to.as<std::uint8_t>() + bytes_ / 2;
    std::uint8_t value = 0;
    context_->device.copy(&value, at, 1, *stream_);
    stream_->synchronize();
    value ^= 4;
    context_->device.copy(at, &value, 1, *stream_);
    stream_->synchronize();
  }

  std::uint64_t wrong_in(const Way& way, std::vector<std::string>& detail) {
    Wrong wrong;
    if (way.down) {
      const auto* data = way.to.as<std::uint8_t>();
      const auto check = [&](std::size_t from, std::size_t to) {
        for (std::size_t b = from; b < to; ++b)
          if (data[b] != byte(b) && wrong.count++ < Wrong::kept) wrong.place[wrong.count - 1] = b;
      };
      for (std::size_t i = 0; i < bytes_ / 4; ++i) {
        std::uint32_t value = 0;
        std::memcpy(&value, data + 4 * i, 4);
        if (value != word(i)) check(4 * i, 4 * i + 4);
      }
      check(bytes_ / 4 * 4, bytes_);
    } else {
      const Buffer found = context_->device.allocate(sizeof(Wrong));
      context_->device.zero(found.data(), sizeof(Wrong), *stream_);
      copies_->compare(way.to.data(), bytes_, found.as<Wrong>(), *stream_);
      context_->device.copy(&wrong, found.data(), sizeof wrong, *stream_);
      stream_->synchronize();
    }
    std::vector<std::uint64_t> places(wrong.place, wrong.place + std::min<std::uint64_t>(wrong.count, Wrong::kept));
    std::ranges::sort(places);
    for (const std::uint64_t place : places)
      detail.push_back(fmt::format("{}: byte {} of {}", way.name, place, bytes_));
    return wrong.count;
  }

  Direction direction_;
  bool pinned_;
  bool by_kernel_;
  bool each_;  // GPUs are measured one after another
  std::size_t bytes_;
  Context* context_ = nullptr;
  std::unique_ptr<DeviceCopies> copies_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> begun_;
  std::vector<Way> ways_;
  std::optional<SideThread> side_;  // copies pageable memory in the other direction
  Measurement waited_;              // times of small copies
};

}  // namespace

std::unique_ptr<Case> make_host_case(const Params& params) { return std::make_unique<HostCase>(params); }

std::vector<Metric> figures(std::size_t bytes, double arriving, const Measurement& measured,
                            const Measurement& waited) {
  std::vector<Metric> metrics{rate_metric("bandwidth", arriving, "B/s", measured)};
  if (bytes > small_bytes) return metrics;
  metrics.push_back(time_metric("copy_interval", measured));
  metrics.push_back(time_metric("latency", waited));
  metrics.back().work.reset();  // these samples are not in the record
  return metrics;
}

}  // namespace assay::transfer
