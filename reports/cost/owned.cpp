#include "reports/cost/owned.h"

#include <fmt/format.h>

namespace assay::report {

static constexpr double hours_per_year = 8760;

double usd_per_useful_hour(const Ownership& owned) {
  const double depreciation = owned.capex * (1 - owned.residual.value_or(0)) / owned.years;
  const double capital = owned.capex * owned.cost_of_capital.value_or(0);
  const double energy = owned.power_kw * owned.pue * owned.usd_per_kwh;
  const double running = energy + owned.colocation.value_or(0) + owned.staff.value_or(0);
  return ((depreciation + capital) / hours_per_year + running) / owned.utilisation.value_or(1);
}

std::string not_counted(const Ownership& owned) {
  std::vector<std::string> absent;
  if (!owned.cost_of_capital) absent.emplace_back("cost of capital");
  if (!owned.residual) absent.emplace_back("residual value");
  if (!owned.colocation) absent.emplace_back("colocation");
  if (!owned.staff) absent.emplace_back("staff");
  if (!owned.utilisation) absent.emplace_back("idle hours");
  return fmt::format("{}", fmt::join(absent, ", "));
}

}  // namespace assay::report
