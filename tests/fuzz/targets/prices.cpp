// Price files: JSON and tables.
#include "reports/cost/price.h"
#include "tests/fuzz/fuzz.h"

#include <cmath>

namespace assay::fuzz {

void prices(std::string_view input) {
  static const MemoryFile file(folder() / "prices-2026-01-31.csv");  // the content decides which it is
  file.write(input);
  report::PriceFile read;
  if (!accepts(file.path(), [&] { read = report::read_price_file(file.path()); })) return;
  const auto money = [](double usd) { return usd > 0 && std::isfinite(usd); };
  for (const auto* list : {&read.prices, &read.accelerators})
    for (const report::Price& price : *list) {
      expect(!price.on_demand || money(*price.on_demand), "an invalid price");
      expect(!price.spot || (money(price.spot->low) && price.spot->high >= price.spot->low && money(price.spot->high)),
             "an invalid spot price");
      expect(!price.accelerators || (*price.accelerators >= 0 && std::isfinite(*price.accelerators)),
             "an invalid number of GPUs");
      expect(!price.source.empty() && !price.place.empty(), "a price without its source");
    }
  for (const report::Ownership& owned : read.owned) {
    expect(money(owned.capex) && owned.years > 0 && owned.pue >= 1 && !owned.source.empty(),
           "an invalid cost of ownership");
    const double hour = report::usd_per_useful_hour(owned);
    expect(hour >= 0 && std::isfinite(hour), "an invalid cost of an hour");
    expect(report::not_counted(owned).empty() ==
               (owned.cost_of_capital && owned.residual && owned.colocation && owned.staff && owned.utilisation),
           "a cost that is left out without a word");
  }
}

}  // namespace assay::fuzz
