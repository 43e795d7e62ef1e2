#include "reports/roofline/roofs.h"

#include "harness/json/json.h"
#include "harness/runs/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace assay::report {

namespace {

// The fastest entry of a family by a metric that counts one rank.
template <typename Keep>
std::optional<Roof> fastest(std::span<const Entry* const> entries, std::string_view family, std::string_view device,
                            const char* metric, Keep keep) {
  std::optional<Roof> best;
  for (const Entry* entry : entries) {
    const Record& record = *entry->record;
    const Metric* figure = find_metric(record, metric);
    if (record.family != family || record.device != device || !figure || *figure->value <= 0 || !usable(record))
      continue;
    if (!keep(record)) continue;
    const double unit = units_of(record, false);
    const double value = *figure->value / unit;
    const bool first = best && value == best->value && record.key < best->entry->record->key;
    if (!best || value > best->value || first)
      best = Roof{value, scaled(figure->ci95, 1 / unit), case_title(record), entry};
  }
  return best;
}

double bytes_of_type(std::string_view type) {
  static const std::map<std::string_view, double> sizes = {
      {"f64", 8}, {"i64", 8}, {"f32", 4}, {"tf32", 4}, {"s32", 4}, {"i32", 4},      {"bf16", 2},    {"fp16", 2},
      {"f16", 2}, {"s8", 1},  {"u8", 1},  {"int8", 1}, {"fp8", 1}, {"fp8_e4m3", 1}, {"fp8_e5m2", 1}};
  const auto found = sizes.find(type);
  return found == sizes.end() ? 0 : found->second;
}

// Bytes per element of A, B and C: from the label "u8 x s8 -> s32", else implied by the dtype; 0 if unknown.
std::array<double, 3> element_bytes(const Record& record) {
  const std::string dtype = param_text(record, "dtype");
  const double in = bytes_of_type(dtype);
  std::array<double, 3> bytes{in, in, dtype == "int8" ? 4 : dtype.starts_with("fp8") ? 2 : in};
  const std::string types = record.attribute("types").value_or("");
  const std::size_t cross = types.find(" x "), arrow = types.find(" -> ");
  if (cross == std::string::npos || arrow == std::string::npos || arrow < cross) return bytes;
  const std::array<double, 3> labelled{bytes_of_type(types.substr(0, cross)),
                                       bytes_of_type(types.substr(cross + 3, arrow - cross - 3)),
                                       bytes_of_type(types.substr(arrow + 4))};
  return labelled[0] > 0 && labelled[1] > 0 && labelled[2] > 0 ? labelled : bytes;
}

}  // namespace

std::optional<double> gemm_intensity(const Record& record) {
  const auto m = param_number(record, "m"), n = param_number(record, "n"), k = param_number(record, "k");
  const auto [a, b, c] = element_bytes(record);
  if (!m || !n || !k || *m <= 0 || *n <= 0 || *k <= 0 || a <= 0) return std::nullopt;
  return 2 * *m * *n * *k / (a * *m * *k + b * *k * *n + c * *m * *n);
}

double units_of(const Record& record, bool total) {
  const double ranks = std::max(1, record.world_ranks),
               nodes = std::clamp(record.world_nodes, 1, std::max(1, record.world_ranks));
  if (record.device == "cpu") return total ? nodes : nodes / ranks;
  return total ? ranks : 1;
}

bool usable(const Record& record) { return record.status == Status::ok && record.comparable && !injected(record); }

std::optional<Roof> best_gemm(std::span<const Entry* const> entries, std::string_view device, std::string_view dtype) {
  return fastest(entries, "gemm", device, "throughput",
                 [&](const Record& record) { return param_text(record, "dtype") == dtype; });
}

std::optional<Roof> measured_compute(std::span<const Entry* const> entries, std::string_view device,
                                     std::string_view dtype) {
  auto peak = fastest(entries, "peak", device, "throughput",
                      [&](const Record& record) { return param_text(record, "dtype") == dtype; });
  auto gemm = best_gemm(entries, device, dtype);
  return !peak || (gemm && gemm->value > peak->value) ? gemm : peak;
}

namespace {

bool streams(const Record& record) { return record.family == "memory" && find_metric(record, "bandwidth"); }

}  // namespace

std::optional<double> training_intensity(const Record& record) {
  const Metric* rate = find_metric(record, "model_flops");
  const Metric* step = find_metric(record, "step_time");
  const Metric* planned = find_metric(record, "planned_memory");
  if (!rate || !step || !planned || *planned->value <= 0) return std::nullopt;
  return *rate->value * *step->value / (*planned->value * std::max(1, record.world_ranks));
}

bool shows_memory(std::span<const Entry* const> entries, const Record& record) {
  constexpr double far_below = 4;  // loops over one to three arrays have equal bytes in all, or in each
  const auto bytes_of = [](const Record& one) { return param_number(one, "bytes").value_or(0); };
  double largest = 0, of_op = 0;
  for (const Entry* entry : entries) {
    const Record& one = *entry->record;
    if (one.device != record.device || !usable(one) || !streams(one)) continue;
    largest = std::max(largest, bytes_of(one));
    if (param_text(one, "op") == param_text(record, "op")) of_op = std::max(of_op, bytes_of(one));
  }
  return streams(record) && bytes_of(record) >= of_op && far_below * bytes_of(record) >= largest;
}

std::optional<Roof> measured_memory(std::span<const Entry* const> entries, std::string_view device) {
  auto roof = fastest(entries, "memory", device, "bandwidth",
                      [&](const Record& record) { return shows_memory(entries, record); });
  if (!roof) return roof;
  const std::string level = roof->entry->record->attribute("level").value_or("memory");
  if (level != "memory") roof->source += ", in " + level;
  return roof;
}

const HardwareSheet* sheet_of(std::span<const HardwareSheet> sheets, const RunData& run, const Record& record) {
  if (record.device == "cpu") {
    const Json& environment = member(run.run, "/environment");
    const auto cores = number_member(environment, "/cpu/cores"),
               usable_cores = number_member(environment, "/cpu/usable_cores");
    if (!member(environment, "/virtual_machine").is_null() || !cores || cores != usable_cores) return nullptr;
  }
  for (const std::string& name : hardware_names(run, record))
    if (const HardwareSheet* sheet = find_hardware(sheets, name)) return sheet;
  return nullptr;
}

namespace {

// A CPU's sheet describes one socket.
double sockets(const RunData& run, std::string_view device) {
  return device == "cpu" ? std::max(1.0, number_member(run.run, "/environment/cpu/sockets").value_or(1)) : 1;
}

std::string source_of(const HardwareSheet& sheet, const char* what) {
  const auto found = sheet.sources.find(what);
  return sheet.description + (found == sheet.sources.end() ? "" : "; " + found->second);
}

}  // namespace

std::optional<Roof> sheet_compute(const HardwareSheet* sheet, const RunData& run, std::string_view device,
                                  std::string_view dtype) {
  const auto peak = sheet ? sheet->peak_of(dtype) : std::nullopt;
  if (!peak) return std::nullopt;
  return Roof{*peak * sockets(run, device), {}, source_of(*sheet, "peak"), nullptr};
}

std::optional<Roof> sheet_memory(const HardwareSheet* sheet, const RunData& run, std::string_view device) {
  if (!sheet || !sheet->memory_bandwidth) return std::nullopt;
  return Roof{*sheet->memory_bandwidth * sockets(run, device), {}, source_of(*sheet, "memory_bandwidth"), nullptr};
}

std::optional<Roof> recorded_peak(const Record& record) {
  const Metric* rate = find_metric(record, "model_flops");
  const Metric* mfu = find_metric(record, "mfu");
  if (!rate || !mfu || *mfu->value <= 0 || *rate->value <= 0) return std::nullopt;
  return Roof{*rate->value / *mfu->value / units_of(record, true),
              {},
              record.attribute("peak").value_or("the record's own MFU"),
              nullptr};
}

}  // namespace assay::report
