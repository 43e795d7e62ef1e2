#include "reports/cost/cost.h"

#include "harness/core/configs.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/runs/why_left_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace assay::report {

namespace {

double parse_price(const std::string& place, const std::string& text) {
  double value = 0;
  try {
    value = parse_real(text);
  } catch (const UsageError& problem) {
    throw UsageError(
        fmt::format("{}: {}; give USD per hour for the whole machine, such as 12.3", place, problem.what()));
  }
  if (!(value > 0)) throw UsageError(fmt::format("{}: {} is not above 0", place, in_quotes(text)));
  if (value > 1e9) throw UsageError(fmt::format("{}: {} is too large: at most 1e9", place, in_quotes(text)));
  return value;
}

}  // namespace

std::vector<PriceFile> price_files(const std::optional<std::string>& own) {
  std::vector<PriceFile> files;
  if (own) files.push_back(read_price_file(*own));
  for (const std::string& name : config_names("prices"))
    files.push_back(read_price_file(configs_dir() / "prices" / (name + ".json")));
  if (own) complete_gpus(files.front(), std::span(files).subspan(1));
  return files;
}

void complete_gpus(PriceFile& own, std::span<const PriceFile> shipped) {
  const auto complete = [&](const std::string& type, std::string& gpu, std::optional<double>& gpus) {
    if (type.empty() || (!gpu.empty() && gpus)) return;
    for (const PriceFile& file : shipped)
      for (const Price& known : file.prices)
        if (compare_names(known.instance_type, type) == 0) {
          if (gpu.empty()) gpu = known.accelerator;
          if (!gpus) gpus = known.accelerators;
          return;
        }
  };
  for (Price& price : own.prices) complete(price.instance_type, price.accelerator, price.accelerators);
  for (Ownership& owned : own.owned) complete(owned.instance_type, owned.gpu, owned.gpus);
}

PriceSource load_prices(const PriceFlags& flags) {
  if (flags.file && flags.price)
    throw UsageError("--prices and --price exclude each other: give a file of prices, or one price for every machine");
  PriceSource source;
  const char* variable = std::getenv("ASSAY_PRICE");
  const bool by_variable = !flags.file && !flags.price && variable && *variable != '\0';
  source.asked = flags.file || flags.price || by_variable;
  if (flags.price || by_variable) {
    if (by_variable) source.given_by = "ASSAY_PRICE";
    source.given = parse_price(source.given_by, by_variable ? variable : *flags.price);
    return source;
  }
  source.files = price_files(flags.file);
  return source;
}

std::optional<Text> oldest_price(std::span<const HourlyPrice> prices) {
  const HourlyPrice* oldest = nullptr;
  for (const HourlyPrice& price : prices)
    if (!price.date.empty() && (!oldest || price.date < oldest->date)) oldest = &price;
  if (!oldest) return std::nullopt;
  return Text{fmt::format("The oldest of these prices is of {}.", dated(oldest->date, oldest->age)),
              oldest->age.value_or(0) > days_until_old ? Tone::warn : Tone::faint};
}

std::string warning_of_use(const Record& record, const RunMachine& machine) {
  if (machine.gpus == 0) return {};
  if (record.device == "cpu")
    return fmt::format("the machine's {} GPU{} idle while its CPU worked; the whole machine is priced", machine.gpus,
                       machine.gpus == 1 ? " was" : "s were");
  const int used = (record.world_ranks + record.world_nodes - 1) / std::max(1, record.world_nodes);
  if (used >= machine.gpus) return {};
  return fmt::format("{} of {} GPUs used; the whole machine is priced (pro rata it would be {:.3g} of this)", used,
                     machine.gpus, static_cast<double>(used) / machine.gpus);
}

std::vector<Cost> costs_of(const Entry& entry, const MachinePrices& prices) {
  const Record& record = *entry.record;
  std::vector<Cost> costs;
  if (why_left_out(record)) return costs;
  if (std::ranges::none_of(prices.offers, [](const HourlyPrice& p) { return p.usd.has_value(); })) return costs;
  const std::string idle = warning_of_use(record, prices.machine);
  for (const Result& result : results_of(entry)) {
    for (const HourlyPrice& price : prices.offers) {
      if (!price.usd) continue;
      const int machines = std::max(1, record.world_nodes);
      const double usd_per_second = *price.usd * machines / seconds_per_hour;
      Cost cost{result.per,    usd_per_second * result.seconds, scaled(result.ci95, usd_per_second), price, machines,
                price.warnings};
      if (!idle.empty()) cost.warnings.push_back(idle);
      costs.push_back(std::move(cost));
    }
  }
  return costs;
}

std::optional<Cost> cost_of(const Entry& entry, const PriceSource& prices) {
  std::vector<Cost> costs = costs_of(entry, prices_of(*entry.run, prices));
  return costs.empty() ? std::nullopt : std::optional(std::move(costs.front()));
}

}  // namespace assay::report
