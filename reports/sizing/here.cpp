#include "reports/sizing/here.h"

#include "harness/core/error.h"
#include "harness/core/host.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/runs/figures.h"
#include "reports/roofline/roofs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace assay::report::sizing {

namespace {

constexpr const char* way_out = "measure this machine with `assay run quick` and name its directory with --from";

// The shares of the peak between which a training is likely to be: as fast as the slowest training of the run, which
// are of small models, up to the fastest matrix product.
std::optional<PublishedShare> reached_by(std::span<const Entry* const> entries, const HardwareSheet& sheet,
                                         const std::string& precision, bool images) {
  const double peak = sheet.peak.begin()->second;
  std::optional<PublishedShare> share;
  for (const Entry* entry : entries) {
    const Record& record = *entry->record;
    const Metric* rate = positive_metric(record, "model_flops");
    const Metric* speed = find_metric(record, "throughput");
    if (!is_training(record) || !rate || !speed || (speed->unit == "img/s") != images ||
        record.device != (sheet.kind == "cpu" ? "cpu" : "cuda") || param_text(record, "precision") != precision)
      continue;
    const double part = *rate->value / units_of(record, true) / peak;
    if (!share) share = PublishedShare{part, part, entry->place()};
    if (part < share->low) share->source = entry->place();
    share->low = std::min(share->low, part);
    share->high = std::max(share->high, part);
  }
  if (!share) return share;
  const std::string slowest = share->source;
  share->source =
      fmt::format("between the slowest training ({}, {:.0f} % of the fastest rate) and ", slowest, 100 * share->low);
  const auto product = best_gemm(entries, sheet.kind == "cpu" ? "cpu" : "cuda", sheet.peak.begin()->first);
  if (product && product->value / peak > share->high) {
    share->high = product->value / peak;
    share->source += product->source;
  } else {
    share->source += "the fastest";
  }
  return share;
}

}  // namespace

const HardwareSheet* sheet_of_record(const Record& record, std::span<const HardwareSheet> sheets) {
  const bool others = record.host_of(0) != this_host() || (record.device == "cpu" && record.world_ranks > 1);
  if (others && !sheets.empty() && sheets.front().name == here_name) sheets = sheets.subspan(1);
  return find_hardware(sheets, record.ranks.front().device);
}

Here measured_here(const RunSet& runs, const LookAtMachine& look, const std::string& precision, bool images) {
  std::vector<const Entry*> entries;
  std::set<std::string> others, dtypes;
  bool gpu = false;
  for (const Entry& entry : runs.entries()) {
    const Record& record = *entry.record;
    if (!usable(record) || record.ranks.empty()) continue;
    if (record.host_of(0) != this_host()) {
      others.insert(record.host_of(0));
      continue;
    }
    entries.push_back(&entry);
    gpu |= record.device == "cuda";
  }
  const auto no_data = [](const std::string& text) {
    return Error(fmt::format("size: --hardware here: {}", text), ExitCode::no_data);
  };
  if (entries.empty())
    throw no_data(fmt::format("no figure of this machine ({}){}; {}", one_line(this_host()),
                              others.empty() ? "" : fmt::format(", only of {}", one_line(*others.begin())), way_out));
  const char* device = gpu ? "cuda" : "cpu";
  const std::string dtype = precision == "fp8" ? "fp8_e4m3" : precision;
  const auto peak = measured_compute(entries, device, dtype);
  if (!peak) {
    for (const char* known : {"bf16", "fp16", "f32"})
      if (measured_compute(entries, device, known)) dtypes.insert(known);
    throw no_data(fmt::format("no rate of products in {}; {}{}", precision, way_out,
                              dtypes.empty() ? ""
                                             : fmt::format(", or --set precision={}, which was measured",
                                                           fmt::join(dtypes, " or precision="))));
  }
  const ThisMachine machine = look(gpu);
  Here here;
  here.devices = machine.devices;
  here.sheet.name = here_name;
  here.sheet.description = fmt::format("this machine ({}), as measured", one_line(machine.device));
  here.sheet.kind = gpu ? "gpu" : "cpu";
  here.sheet.match = {machine.device};
  here.sheet.peak[dtype] = peak->value;
  here.sheet.memory_bytes = machine.memory_bytes;
  here.sheet.sources["peak"] = peak->source;
  if (const auto memory = measured_memory(entries, device)) {
    here.sheet.memory_bandwidth = memory->value;
    here.sheet.sources["memory_bandwidth"] = memory->source;
  } else {
    here.remarks.emplace_back("here: the memory's bandwidth was not measured, so the lower end counts FLOPs only");
  }
  here.reached = reached_by(entries, here.sheet, precision, images);
  if (!here.reached)
    here.remarks.push_back(
        fmt::format("here: no training in {} was measured, so nothing is expected; {}", precision, way_out));
  here.remarks.push_back(fmt::format("here: {}, {} of memory; {} reached {} in {}", one_line(machine.device),
                                     format_bytes(static_cast<double>(machine.memory_bytes)), peak->source,
                                     format_quantity(peak->value, "FLOP/s"), precision));
  return here;
}

}  // namespace assay::report::sizing
