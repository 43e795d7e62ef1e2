// One case on one rank: prepare, setup, measure, verify, metrics.
#include "harness/run/execute.h"

#include "harness/comm/gather.h"
#include "harness/comm/rank_hosts.h"
#include "harness/comm/slow_link.h"
#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/core/host.h"
#include "harness/core/out_of_memory.h"
#include "harness/core/plain_text.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/core/utc.h"
#include "harness/device/cpu/cpu_list.h"
#include "harness/device/cpu/team.h"
#include "harness/device/memory_watch.h"
#include "harness/hosts/placement.h"
#include "harness/machine/nccl_ports.h"
#include "harness/record/flags.h"
#include "harness/run/case_errors.h"
#include "harness/run/case_settings.h"
#include "harness/run/gpu_energy.h"
#include "harness/sampling/links.h"
#include "harness/sensors/gpu_sensors.h"
#include "harness/sensors/telemetry.h"
#include "harness/trace/trace.h"

#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <bitset>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <new>
#include <optional>
#include <thread>

namespace assay {

namespace {

// The ports nearest to a GPU, as NCCL_IB_HCA spells them.
std::string nearest_nic(const std::string& gpu_pci) {
  std::vector<std::string> names;
  for (const PortId& port : nearest_ports(user_root(), gpu_pci))
    names.push_back(fmt::format("{}:{}", port.device, port.number));
  return joined(names);
}

constexpr std::size_t max_links_named = 4;

// Runs a phase of the case; keeps a span in the trace and its seconds in the record.
template <typename F>
void phase(Record& record, const char* name, F&& body) {
  const trace::Span span(trace::Category::phase, name);
  const Clock::time_point start = Clock::now();
  const auto keep = [&] { record.spans.emplace_back(name, seconds_since(start)); };
  try {
    body();
  } catch (...) {
    keep();
    throw;
  }
  keep();
}

// Injects faults that break a rank from outside the case. The last rank breaks, so that the watchdog has to find out
// whom the others wait for.
void inject_breakdown(Context& context) {
  const bool last = context.comm.rank() == context.comm.size() - 1;
  if (last && context.inject(Fault::crash)) {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    std::abort();
  }
  if (last && context.inject(Fault::hang))
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  if (last && context.inject(Fault::oom)) {
    // More than any machine can map (64 PiB), so that no real memory is used up.
    const Buffer buffer = context.device.allocate(std::size_t{1} << 56);
    throw std::bad_alloc();
  }
}

// The fault oversubscribe: three threads on each of the rank's CPUs, which compete with the case's own.
class BusyThreads {
 public:
  explicit BusyThreads(const std::vector<int>& cpus) {
    for (std::size_t i = 0; i < 3 * cpus.size(); ++i)
      threads_.emplace_back([this, cpu = cpus[i % cpus.size()]] {
        cpu::bind_this_thread({cpu});  // else it inherits the one CPU of the measuring thread
        while (!ending_.load(std::memory_order_relaxed)) {
        }
      });
  }
  ~BusyThreads() {
    ending_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  BusyThreads(const BusyThreads&) = delete;
  BusyThreads& operator=(const BusyThreads&) = delete;

 private:
  std::atomic<bool> ending_{false};
  std::vector<std::thread> threads_;
};

void record_samples(Record& record, const Measurement& measured, int rank) {
  Samples& samples = record.samples;
  samples.values = measured.values;
  samples.at = measured.at;
  samples.count = static_cast<std::int64_t>(measured.values.size());
  samples.repetitions = measured.repetitions;
  samples.stopped_by = name_of(measured.stopped_by);
  samples.disturbed = measured.disturbed;
  constexpr std::size_t max_kept = 100;
  samples.first_touch.assign(
      measured.first_touch.begin(),
      measured.first_touch.begin() + static_cast<std::ptrdiff_t>(std::min(max_kept, measured.first_touch.size())));
  const auto index = static_cast<std::size_t>(rank);
  if (index < measured.rank_medians.size()) record.ranks.front().median = measured.rank_medians[index];
  if (measured.rank_paces.size() > 1 && index < measured.rank_paces.size())
    record.ranks.front().pace = measured.rank_paces[index];
}

// Finds slow links, in families where one slows down all ranks alike.
void find_links(const CaseOrder& order, Device& device, Communicator& comm, Context& context, Record& record) {
  const auto& faults = order.family->faults;
  if (std::find(faults.begin(), faults.end(), Fault::slow_link) == faults.end()) return;
  // Ranks that share a core wait for it longer than for any link.
  if (flag::has(order.flags, flag::oversubscribed)) return;
  const SlowLinks slow = find_slow_links(comm, device);
  for (std::size_t i = 0; i < slow.findings.size(); ++i) {
    const LinkFinding& finding = slow.findings[i];
    if (comm.rank() == 0 && i < max_links_named)
      context.outputs.flags.push_back("slow link: " + describe(finding, slow.hosts));
    // Calls that only send messages take these ranks as long as their link does, which is no measure of their pace.
    const std::vector<int> held_up = finding.culprits();
    if (!order.family->workload && std::find(held_up.begin(), held_up.end(), comm.rank()) != held_up.end())
      record.ranks.front().pace.reset();
  }
  if (comm.rank() == 0 && slow.findings.size() > max_links_named)
    context.outputs.flags.push_back(fmt::format("slow link: {} more", slow.findings.size() - max_links_named));
}

// The CPUs of all ranks on this host; empty unless this is the first of them.
std::vector<int> cpus_to_watch(Communicator& comm) {
  constexpr std::size_t max_cpus = 4096;
  std::bitset<max_cpus> own;
  for (const int cpu : cpu::rank_cpus())
    if (static_cast<std::size_t>(cpu) < max_cpus) own.set(static_cast<std::size_t>(cpu));
  const std::vector<std::string> hosts = hosts_of_ranks(comm);
  const std::vector<std::bitset<max_cpus>> cpus = gather(comm, own);
  const auto rank = static_cast<std::size_t>(comm.rank());
  if (std::find(hosts.begin(), hosts.end(), hosts[rank]) != hosts.begin() + comm.rank()) return {};
  for (std::size_t other = rank; other < hosts.size(); ++other)
    if (hosts[other] == hosts[rank]) own |= cpus[other];
  std::vector<int> all;
  for (std::size_t cpu = 0; cpu < max_cpus; ++cpu)
    if (own[cpu]) all.push_back(static_cast<int>(cpu));
  return all;
}

// The most bytes by which a case's process may grow: what its family plans, and what libraries and the allocator keep.
double memory_allowed(double planned) { return 1.05 * planned + 64.0 * (1 << 20); }

// Flags a case that took more memory than it planned: the plan decides whether a case fits on a machine. Training
// checks its own plan.
void check_memory(const CaseOrder& order, std::optional<double> used, Context& context) {
  if (!used || order.family->workload || context.device.kind() != DeviceKind::cpu) return;
  const double planned = order.family->estimate(order.params, order.world).memory_bytes;
  if (*used > memory_allowed(planned))
    context.outputs.flags.push_back(
        fmt::format("{}: {} used, {} planned", flag::beyond_plan, format_bytes(*used), format_bytes(planned)));
}

void run_phases(const CaseOrder& order, Device& device, Communicator& comm, Context& context, Record& record,
                Clock::time_point start, CaseErrors& errors) {
  const std::unique_ptr<Case> work = make_case(*order.family, order.params, device.kind());
  const std::optional<std::string> reason = work->prepare(context);
  if (comm.max_of(reason ? 1 : 0) > 0) {
    record.status = Status::skipped;
    record.reason = reason.value_or("");
    return;
  }
  // This comes only now that the case will run, since both query the driver.
  const std::vector<int> host_cpus = cpus_to_watch(comm);
  Telemetry telemetry(
      {.gpu_uuid = device.info().uuid, .gpu_pci = device.info().pci, .host = comm.rank() == 0, .host_cpus = host_cpus});
  GpuHealth& health = errors.begin(device.info().uuid, device.info().pci, !host_cpus.empty());
  // Adds the GPU's own errors to the message of a failed call.
  const auto with_gpu_errors = [&](auto&& body) {
    try {
      body();
    } catch (const std::exception& error) {
      const std::vector<std::string> of_gpu = health.take();
      if (of_gpu.empty()) throw;
      const std::string text = fmt::format("{} ({})", error.what(), fmt::join(of_gpu, ", "));
      if (dynamic_cast<const OutOfMemory*>(&error)) throw OutOfMemory(text);
      throw Error(text);
    }
  };
  order.protocol.apply(context.outputs.protocol);
  const std::optional<Gpus> gpus = gpus_of(order.params);
  if (gpus && comm.size() > 1) context.outputs.protocol.details["gpus"] = word_of(*gpus);
  const MemoryWatch memory(device);
  phase(record, "setup", [&] { with_gpu_errors([&] { work->setup(context); }); });
  const std::optional<double> in_setup = memory.growth();  // the telemetry counts peaks anew
  // The plan's limits take precedence over the case's; but setup has decided what the inputs contain.
  const std::string data = context.outputs.protocol.data;
  order.protocol.apply(context.outputs.protocol);
  context.outputs.protocol.data = data;
  if (context.outputs.protocol.timer.empty()) context.outputs.protocol.timer = device.timer();

  Sampler sampler(device, comm, context.outputs.protocol, start);
  if (gpus == Gpus::each) sampler.take_turns();
  const bool on_gpu = device.kind() == DeviceKind::cuda;
  const bool watched = !host_cpus.empty() || on_gpu;
  if (watched) telemetry.start(start);
  phase(record, "measure", [&] {
    inject_breakdown(context);
    std::optional<BusyThreads> crowd;
    if (context.inject(Fault::oversubscribe)) crowd.emplace(cpu::rank_cpus());
    // The last rank is the straggler, so that rank 0's own median cannot be mistaken for it.
    // Training slows down its own steps, so that its other timings are affected too.
    if (!order.family->workload && comm.rank() == comm.size() - 1 && context.inject(Fault::slow_rank))
      sampler.slow_down();
    with_gpu_errors([&] { work->measure(sampler); });
  });
  if (watched) record.telemetry = telemetry.stop();
  record_samples(record, sampler.measurement(), comm.rank());
  if (const auto calls = sampler.measurement().max_gated; calls && *calls > 0) {
    context.outputs.flags.push_back(fmt::format("gate timed out: calls per sample limited to {}", *calls));
  } else if (calls) {
    context.outputs.flags.push_back("gate timed out: dropped, so the figure contains launches");
    record.comparable = false;
  }
  // Sensor values from after the window do not count.
  const Measurement& measured = sampler.measurement();
  const auto [from, to] =
      measured.own_window.value_or(std::pair(measured.window_start, measured.window_start + measured.window_seconds));
  record.outside_cpu = telemetry.outside_cpu(from, to);
  if (!measured.samples_of || *measured.samples_of == comm.rank())
    record.samples.throttled = throttled_samples(record.telemetry, measured.at, to);
  if (const std::string levels = gpu_levels(record.telemetry, from, to); gpus && comm.size() > 1 && !levels.empty())
    context.outputs.labels[fmt::format("sensors_of_rank_{}", comm.rank())] = levels;
  // GPUs that run in turn or independently have no common efficiency, and a GPU shared by ranks would count twice.
  std::optional<double> watts;
  const bool shared = flag::has(order.flags, flag::shared_gpu);
  if (on_gpu && !shared && (comm.size() == 1 || !gpus)) watts = gpu_watts(record.telemetry, from, to, comm);
  const auto remark = [&](const std::string& text) {
    context.outputs.flags.push_back(comm.size() > 1 ? fmt::format("{} (rank {})", text, comm.rank()) : text);
  };
  if (const std::string slow = health.slowness(record.telemetry, from, to); !slow.empty())
    remark(fmt::format("{}: {}", flag::gpu_slowed_down, slow));
  if (const std::string links = health.corrected_link_errors(seconds_since(start)); !links.empty()) remark(links);

  Checks checks;
  phase(record, "verify", [&] { with_gpu_errors([&] { work->verify(checks); }); });
  check_memory(order, std::max(in_setup, memory.growth()), context);
  find_links(order, device, comm, context, record);
  if (health.present()) {
    const std::vector<std::string> of_gpu = health.take();
    checks.at_most("gpu_errors", static_cast<double>(of_gpu.size()), 0, of_gpu);
  }
  errors.check_host(checks);
  if (context.outputs.moved) errors.expect(*context.outputs.moved, device.info().pci, comm);
  record.checks = checks.all();
  for (const Check& check : record.checks)
    if (!check.passed && record.status == Status::ok) {
      record.status = Status::failed;
      record.reason = check.detail.empty() ? check.name : fmt::format("{}: {}", check.name, check.detail.front());
    }
  if (comm.rank() != 0) {
    record.telemetry.clear();
    return;
  }
  record.metrics = work->metrics(sampler.measurement());
  if (watts) add_gpu_energy(*watts, samples_fill_window(sampler.measurement()), record.metrics);
}

}  // namespace

std::string utc_now() { return utc_text(std::time(nullptr)); }

std::string earlier(const std::string& moment, std::int64_t nanoseconds) {
  const auto parsed = parse_utc(moment);
  if (!parsed) return moment;
  return utc_text(*parsed - static_cast<std::time_t>(std::llround(1e-9 * static_cast<double>(nanoseconds))));
}

Identity identity_of(const PlannedCase& planned, DeviceKind device) {
  return {.key = planned.key, .device = std::string(name_of(device)), .ranks = planned.ranks, .seed = planned.seed};
}

Record blank_record(const CaseOrder& order, DeviceKind device) {
  Record record;
  record.key = order.key;
  record.family = order.family->name;
  record.params = order.params.to_json();
  record.seed = order.seed;
  record.attempt = order.attempt;
  record.world_ranks = order.world.ranks;
  record.world_nodes = order.world.nodes;
  record.device = std::string(name_of(device));
  record.labels = order.labels;
  record.flags = order.flags;
  record.comparable = record.flags.empty();
  record.started = utc_now();
  return record;
}

void flag_faults(Record& record, const std::set<Fault>& asked, const std::set<Fault>& injected) {
  if (record.status == Status::skipped) return;
  std::set<Fault> all = asked;
  all.insert(injected.begin(), injected.end());  // also faults that only one host was to inject
  for (const Fault fault : all) {
    const bool given = injected.contains(fault);
    record.flags.push_back(fmt::format("{}{}{}", given ? "" : "not ", flag::injected, name_of(fault)));
    record.comparable = record.comparable && !given;
  }
}

Record execute_case(const CaseOrder& order, Device& device, Communicator& world, const Surroundings& surroundings) {
  const trace::Span span(trace::Category::case_, order.key.c_str());
  Record record = blank_record(order, device.kind());
  const bool last = world.rank() == world.size() - 1;
  std::optional<SlowLink> slow_link;
  if (order.faults.contains(Fault::slow_link) && last && world.size() > 1)
    slow_link.emplace(world, device, [&] {
      if (surroundings.tell_fault) surroundings.tell_fault(Fault::slow_link);
    });
  Communicator& comm = slow_link ? static_cast<Communicator&>(*slow_link) : world;
  record.ranks = {{comm.rank(), this_host(), device.info().name, std::nullopt, device.info().uuid, device.info().pci,
                   nearest_nic(device.info().pci), cpu_list_text(cpu::rank_cpus()),
                   node_of_cpus(numa_nodes(), cpu::rank_cpus())}};
  const Clock::time_point start = Clock::now();
  Context context{device, comm};
  context.inputs = {.world = order.world,
                    .seed = order.seed,
                    .cache_dir = surroundings.cache_dir,
                    .run_dir = surroundings.run_dir,
                    .peaks = order.peaks,
                    .faults = order.faults};
  context.services = {.write_file = surroundings.write_file, .on_inject = surroundings.tell_fault};
  CaseErrors errors;
  const auto broke = [&](FailureKind kind, std::string why) {
    record.status = Status::error;
    record.reason = std::move(why);
    record.failure = {.kind = kind, .rank = comm.rank(), .host = this_host()};
  };
  try {
    run_phases(order, device, comm, context, record, start, errors);
  } catch (const std::bad_alloc&) {
    broke(FailureKind::out_of_memory, "out of memory");
  } catch (const OutOfMemory& caught) {
    broke(FailureKind::out_of_memory, caught.what());
  } catch (const std::exception& caught) {
    // A device may refuse an absurd size in other words.
    if (context.inputs.faults.contains(Fault::oom))
      broke(FailureKind::out_of_memory, "out of memory: " + reason_of(caught));
    else
      broke(FailureKind::exception, reason_of(caught));
  } catch (...) {
    broke(FailureKind::exception, "an exception of unknown type");
  }
  if (record.status == Status::error && !record.spans.empty())
    record.reason += fmt::format(" (in {})", record.spans.back().first);
  try {
    record.protocol = context.outputs.protocol.to_json();
  } catch (const std::exception& caught) {
    broke(FailureKind::exception, reason_of(caught));
    record.protocol = Json::object();
  }
  record.spans.insert(record.spans.end(), context.outputs.spans.begin(), context.outputs.spans.end());
  record.matrix = std::move(context.outputs.matrix);
  record.rails = std::move(context.outputs.rails);
  record.groups = std::move(context.outputs.groups);
  for (auto& [name, series] : context.outputs.series) record.telemetry[name] = std::move(series);
  record.conditions = std::move(context.outputs.conditions);
  record.choices = std::move(context.outputs.choices);
  for (const auto& [name, value] : context.outputs.labels) record.labels[name] = value;
  record.flags.insert(record.flags.end(), context.outputs.flags.begin(), context.outputs.flags.end());
  describe_settings(*order.family, order.params, record);
  errors.record(record);
  if (device.info().emulated) {
    record.flags.emplace_back(flag::emulated_gpu);
    record.comparable = false;
  }
  record.seconds = seconds_since(start);
  return record;
}

}  // namespace assay
