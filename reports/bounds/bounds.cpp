#include "reports/bounds/bounds.h"

#include "harness/core/units.h"
#include "harness/core/whole_number.h"
#include "harness/json/json.h"
#include "harness/record/peaks.h"
#include "harness/runs/figures.h"
#include "reports/roofline/roofs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::report {

namespace {

constexpr double unusual_tolerance = 0.03, low_share = 0.5;
constexpr double channel_bytes = 8;  // of a transfer: a channel of DDR4, both halves of one of DDR5

const Json& environment_of(const RunData& run) { return member(run.run, "/environment"); }

std::string hypervisor_of(const RunData& run) { return text_member(environment_of(run), "/virtual_machine"); }

// The last `peak` case of the run on as many ranks and threads: it may have been measured after the figure.
std::optional<Bound> measured_peak_of(const RunData& run, const Record& of, const std::string& dtype) {
  std::vector<MeasuredPeak> peaks;
  for (const Record& record : run.records)
    if (record.device == of.device && usable(record))
      if (auto peak = measured_peak(record)) peaks.push_back(std::move(*peak));
  const int threads = whole_number<int>(of.attribute("threads").value_or("")).value_or(0);
  const MeasuredPeak* peak = find_peak(peaks, dtype, "", of.world_ranks, threads);
  if (!peak) return std::nullopt;
  return Bound{peak->rate, fmt::format("{}, measured in this run", peak->key)};
}

// The fastest stream of all threads from memory in this run: what operands can be read with at most.
double fastest_stream(const RunData& run, const Record& of) {
  double fastest = 0;
  for (const Record& record : run.records)
    if (record.family == "memory" && record.device == of.device && usable(record) &&
        record.attribute("level").value_or("").starts_with("memory"))
      if (const Metric* rate = find_metric(record, "bandwidth")) fastest = std::max(fastest, *rate->value);
  return fastest;
}

BoundShare product_scale(const Entry& entry, const Metric& metric) {
  const Record& record = *entry.record;
  BoundShare scale;
  if (metric.of_peak && *metric.of_peak > 0)
    scale.bound = Bound{*metric.value / *metric.of_peak, record.attribute("peak").value_or("given by the record")};
  else
    scale.bound = measured_peak_of(*entry.run, record, param_text(record, "dtype"));
  const auto intensity = gemm_intensity(record);
  const double stream = fastest_stream(*entry.run, record);
  if (!scale.bound || !intensity || !(stream > 0) || record.device != "cpu" || record.world_ranks > 1) return scale;
  if (const double reads = stream * *intensity; reads < scale.bound->value) {
    scale.bound = Bound{reads, fmt::format("{} measured in this run x {:.3g} FLOP per byte",
                                           format_quantity(stream, "B/s"), *intensity)};
    scale.of_memory = true;
  }
  return scale;
}

// Its own figure times peak over model FLOP/s: a rate of tokens or images has the same share.
BoundShare training_scale(const Entry& entry, const Metric& metric) {
  const Record& record = *entry.record;
  const Metric* flops = positive_metric(record, "model_flops");
  if (!flops || (metric.name != "throughput" && metric.name != "model_flops")) return {};
  BoundShare scale;
  double share = 0;
  std::string source;
  const Metric* mfu = positive_metric(record, "mfu");
  if (mfu) {
    share = *mfu->value;
    source = record.attribute("peak").value_or("given by the record");
  } else if (flops->of_peak && *flops->of_peak > 0) {
    share = *flops->of_peak;
    source = record.attribute("peak_measured").value_or("given by the record");
  } else {
    const std::string precision = param_text(record, "precision");
    const auto peak = measured_peak_of(*entry.run, record, precision == "fp8" ? "fp8_e4m3" : precision);
    if (!peak) return {};
    share = *flops->value / (peak->value * std::max(1, record.world_ranks));
    source = peak->source;
  }
  scale.bound = Bound{*metric.value / share, source};
  return scale;
}

BoundShare peak_scale(const Entry& entry) {
  const Record& record = *entry.record;
  const auto isa = record.attribute("isa").value_or(""), dtype = param_text(record, "dtype");
  const auto& cores = shipped_parts().cores;
  const auto core =
      std::ranges::find_if(cores, [&](const CorePeak& one) { return one.isa == isa && one.dtype == dtype; });
  const Json& cpu = member(environment_of(*entry.run), "/cpu");
  auto hz = number_member(cpu, "/clocks_hz/max");
  const Json& turbo = member(cpu, "/turbo");
  if (const auto base = number_member(cpu, "/clocks_hz/base"); base && turbo.is_boolean() && !turbo.get<bool>())
    hz = base;
  const auto usable_cores = number_member(cpu, "/usable_cores");
  const auto threads = whole_number<double>(record.attribute("threads").value_or(""));
  if (record.device != "cpu" || core == cores.end() || !usable_cores || !threads) return {};
  if (!hz)
    return {.why = hypervisor_of(*entry.run).empty()
                       ? "clock unknown: the kernel has no cpufreq driver"
                       : fmt::format("clock unknown: the hypervisor ({}) hides it", hypervisor_of(*entry.run))};
  const double used = std::min(*threads, *usable_cores);
  return {.bound =
              Bound{used * core->max * *hz, fmt::format("{:.0f} cores x {:.0f} FLOP per cycle ({}) x {:.2f} GHz; {}",
                                                        used, core->max, isa, *hz / 1e9, core->source)}};
}

BoundShare memory_scale(const Entry& entry) {
  const Record& record = *entry.record;
  if (!record.attribute("level").value_or("memory").starts_with("memory")) return {};
  if (record.device != "cpu") {
    const auto roof = sheet_memory(sheet_of(shipped_hardware(), *entry.run, record), *entry.run, record.device);
    return roof ? BoundShare{.bound = Bound{roof->value, roof->source}}
                : BoundShare{.why = "no hardware sheet of this GPU"};
  }
  // One core has a share of its own, which nothing states.
  if (const std::string threads = param_text(record, "threads"); !threads.empty() && threads != "all") return {};
  BoundOrWhy found = memory_bound(*entry.run, record);
  return {.bound = std::move(found.bound), .why = std::move(found.why)};
}

// A GPU's link to the host.
std::optional<Bound> link_of(const Json& gpu) {
  const auto width = number_member(gpu, "/max_link_width"), speed = number_member(gpu, "/max_link_gigatransfers");
  if (!width || !speed) return std::nullopt;
  return Bound{pcie_rate(*width, *speed), fmt::format("PCI Express x{} at {} GT/s", *width, *speed)};
}

BoundShare transfer_scale(const Entry& entry) {
  const Record& record = *entry.record;
  const std::string direction = param_text(record, "direction");
  if (direction != "h2d" && direction != "d2h") return {};
  const Json& gpus = member(environment_of(*entry.run), "/gpus");
  if (record.ranks.empty() || !gpus.is_array()) return {};
  for (const Json& gpu : gpus)
    if (text_member(gpu, "/pci") == record.ranks.front().pci)
      if (const auto link = link_of(gpu)) return {.bound = link};
  return {.why = "the GPU's link is unknown"};
}

// B/s of all ports that are up, each at most its PCI Express link.
std::optional<Bound> network_bound(const RunData& run) {
  double sum = 0;
  std::vector<std::string> names;
  if (const Json& ports = member(environment_of(run), "/network"); ports.is_array())
    for (const Json& port : ports) {
      if (const Json& up = member(port, "/up"); !up.is_boolean() || !up.get<bool>()) continue;
      const auto rate = number_member(port, "/gigabits"), pci = number_member(port, "/pci_bytes_per_second");
      if (!rate) return std::nullopt;  // a sum of the others would be too small
      sum += std::min(*rate * 1e9 / 8, pci.value_or(1e18));
      names.push_back(fmt::format("{} {:.0f} Gbit/s", text_member(port, "/name"), *rate));
    }
  if (names.empty()) return std::nullopt;
  return Bound{sum, fmt::format("{}", fmt::join(names, ", "))};
}

// Each host sends and receives 2 (N - 1) / N of the data; bus bandwidth counts 2 (n - 1) / n (nccl-tests,
// PERFORMANCE.md). Switches that add up data themselves can do better.
BoundShare collective_scale(const Entry& entry, const Metric& metric) {
  const Record& record = *entry.record;
  const double nodes = record.world_nodes, ranks = record.world_ranks;
  if (metric.name != "busbw" || nodes < 2 || ranks < nodes || param_text(record, "op") != "all_reduce") return {};
  const auto ports = network_bound(*entry.run);
  if (!ports) return {.why = "the network ports' rates are unknown"};
  return {.bound = Bound{ports->value * ((ranks - 1) / ranks) / ((nodes - 1) / nodes), ports->source}};
}

BoundShare bare_scale(const Entry& entry, const Metric& metric) {
  const std::string& family = entry.record->family;
  if (family == "gemm" && metric.name == "throughput") return product_scale(entry, metric);
  if (metric.of_peak && *metric.of_peak > 0)
    return {.bound = Bound{*metric.value / *metric.of_peak,
                           entry.record->attribute("peak").value_or("given by the record")}};
  if (family == "peak" && metric.name == "throughput") return peak_scale(entry);
  if (family == "memory" && metric.name == "bandwidth") return memory_scale(entry);
  if (family == "transfer" && metric.name == "bandwidth") return transfer_scale(entry);
  if (family == "collective") return collective_scale(entry, metric);
  if (is_training(*entry.record)) return training_scale(entry, metric);
  return {};
}

}  // namespace

BoundOrWhy memory_bound(const RunData& run, const Record& record) {
  const Json& environment = environment_of(run);
  if (const std::string hypervisor = hypervisor_of(run); !hypervisor.empty())
    return {.why = fmt::format("channels unknown: the hypervisor ({}) hides them", hypervisor)};
  const auto cores = number_member(environment, "/cpu/cores"), used = number_member(environment, "/cpu/usable_cores");
  if (!cores || cores != used) return {.why = "channels unknown: only a part of the machine may be used"};
  const auto all = number_member(environment, "/memory/channels/all"),
             populated = number_member(environment, "/memory/channels/populated"),
             transfers = number_member(environment, "/memory/channels/transfers_per_second");
  const std::string filled = all && populated && *populated < *all
                                 ? fmt::format("{:.0f} of {:.0f} channels have DIMMs", *populated, *all)
                             : all ? fmt::format("{:.0f} channels", *all)
                                   : "";
  if (populated && transfers)
    return {.bound = Bound{*populated * *transfers * channel_bytes,
                           fmt::format("{} x {:.0f} MT/s x {} bytes (EDAC; SMBIOS, configured)", filled,
                                       *transfers / 1e6, channel_bytes)}};
  if (const auto sheet = sheet_memory(sheet_of(shipped_hardware(), run, record), run, "cpu")) {
    const double part = all && populated && *all > 0 ? *populated / *all : 1;
    return {.bound = Bound{sheet->value * part, filled.empty() ? sheet->source : filled + " (EDAC); " + sheet->source}};
  }
  return {.why =
              all ? filled + " (EDAC); their rate is unknown: only root may read SMBIOS, and there is no hardware sheet"
                  : "channels unknown: no EDAC driver, and no hardware sheet of this CPU"};
}

bool BoundShare::unusual() const { return share && usual && *share < usual->share.low * (1 - unusual_tolerance); }

bool BoundShare::low() const { return unusual() || (share && !usual && *share < low_share); }

BoundShare bound_share_of(const Entry& entry, const Metric& metric) {
  if (!metric.value || !std::isfinite(*metric.value) || *metric.value <= 0) return {};
  BoundShare scale = bare_scale(entry, metric);
  if (!scale.bound || !std::isfinite(scale.bound->value) || scale.bound->value <= 0) return scale;
  scale.share = *metric.value / scale.bound->value;
  if (scale.of_memory) return scale;
  // Usual shares of training are those of its FLOPs.
  const Metric* judged = is_training(*entry.record) ? find_metric(*entry.record, "model_flops") : &metric;
  for (const UsualShare& one : shipped_parts().usual)
    if (judged && one.metric == judged->name && one.unit == judged->unit &&
        fitness::key_matches(one.key, entry.record->key) && fitness::concerns(one, entry) &&
        fitness::protocol_difference(one, *entry.record).empty()) {
      scale.usual = &one;
      break;
    }
  return scale;
}

std::vector<PartLine> part_lines(const RunData& run) {
  std::vector<PartLine> lines;
  const Json& environment = environment_of(run);
  if (!environment.is_object()) return lines;
  const std::string hypervisor = hypervisor_of(run);
  Record host;
  host.device = "cpu";
  const auto line = [&](const std::string& part, const std::optional<Bound>& bound, const std::string& why) {
    lines.push_back({part, bound ? format_quantity(bound->value, "B/s") : "", bound ? bound->source : why});
  };
  const auto hz = number_member(environment, "/cpu/clocks_hz/max"),
             cores = number_member(environment, "/cpu/usable_cores");
  if (cores)
    lines.push_back({"cores", hz ? fmt::format("{:.0f} x {:.2f} GHz", *cores, *hz / 1e9) : "",
                     hz                   ? "cpufreq; FLOP per cycle by instruction set: configs/normal/parts.json"
                     : hypervisor.empty() ? "clock unknown: the kernel has no cpufreq driver"
                                          : fmt::format("clock unknown: the hypervisor ({}) hides it", hypervisor)});
  const BoundOrWhy memory = memory_bound(run, host);
  line("memory", memory.bound, memory.why);
  if (const Json& gpus = member(environment, "/gpus"); gpus.is_array())
    for (std::size_t i = 0; i < gpus.size(); ++i) line(fmt::format("GPU {}", i), link_of(gpus[i]), "link unknown");
  line("network", network_bound(run), "rates unknown: no port is up, or one does not say its rate");
  if (const Json& disks = member(environment, "/disks"); disks.is_array())
    for (std::size_t i = 0; i < disks.size(); ++i) {
      std::optional<Bound> link;
      if (const auto rate = number_member(disks[i], "/pci_bytes_per_second"))
        link = Bound{*rate, text_member(disks[i], "/model") + ", its PCI Express link"};
      line(text_member(disks[i], "/name"), link, text_member(disks[i], "/model") + ", link unknown");
    }
  return lines;
}

std::string hidden_text(const RunData& run) {
  const std::string hypervisor = hypervisor_of(run);
  if (hypervisor.empty()) return {};
  const bool clock = !number_member(environment_of(run), "/cpu/clocks_hz/max");
  return fmt::format("the hypervisor ({}) hides the memory channels{}", hypervisor, clock ? " and the clock" : "");
}

}  // namespace assay::report
