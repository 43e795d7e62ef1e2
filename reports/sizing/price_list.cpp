#include "reports/sizing/price_list.h"

#include "harness/core/text.h"
#include "harness/json/json.h"
#include "harness/json/members.h"
#include "reports/cost/cost.h"
#include "reports/sizing/candidates.h"
#include "reports/sizing/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace assay::report::sizing {

Json price_list(const std::string& own, const std::string& hardware) {
  const std::vector<HardwareSheet> sheets =
      hardware.empty() ? std::vector<HardwareSheet>() : read_hardware_list(hardware);
  Json list = Json::array();
  for (const PriceFile& file : price_files(own.empty() ? std::nullopt : std::optional(own)))
    for (const Price& price : file.prices) {
      const bool wanted = hardware.empty() || std::ranges::any_of(sheets, [&](const HardwareSheet& sheet) {
                            return is_sheet_of(sheet, price.accelerator);
                          });
      if (!wanted) continue;
      const auto number = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
      list.push_back(
          {{"provider", price.provider},
           {"instance_type", price.instance_type},
           {"region", price.region},
           {"gpu", price.accelerator},
           {"gpus", number(price.accelerators)},
           {"usd_per_hour", number(price.on_demand)},
           {"spot_usd_per_hour", price.spot ? Json{{"low", price.spot->low}, {"high", price.spot->high}} : Json()},
           {"date", price.date},
           {"age_days", number(age_of(price.date, today()))},
           {"source", price.source},
           {"file", file.name},
           {"note", price.note}});
    }
  return list;
}

std::string price_list_text(const Json& list) {
  std::string text = "prices, USD per hour of the whole machine\n";
  std::size_t old = 0;
  for (const Json& price : list) {
    const auto age = number_member(price, "/age_days");
    if (!age || *age > days_until_old) ++old;
    const auto usd = number_member(price, "/usd_per_hour"), low = number_member(price, "/spot_usd_per_hour/low"),
               high = number_member(price, "/spot_usd_per_hour/high");
    const std::string gpu = text_member(price, "/gpu");
    text += fmt::format(
        "  {:<7} {:<33} {:<11} {:>2} {:<14} {:>8} {:<14} {}\n", one_line(text_member(price, "/provider"), 20),
        one_line(text_member(price, "/instance_type"), 60), one_line(text_member(price, "/region"), 30),
        number_member(price, "/gpus") ? fmt::format("{:g}", *number_member(price, "/gpus")) : "",
        one_line(gpu.empty() ? "GPUs unknown" : gpu, 30), usd ? fmt::format("{:.6g}", *usd) : "unknown",
        !low            ? ""
        : *low == *high ? fmt::format("spot {:.4g}", *low)
                        : fmt::format("spot {:.4g}-{:.4g}", *low, *high),
        dated(text_member(price, "/date"), age ? std::optional(static_cast<long>(*age)) : std::nullopt));
  }
  if (list.empty()) text += "  no price is known\n";
  if (old > 0)
    text += fmt::format("  {} of {} older than {} days, or without a date: use your own (--prices FILE)\n", old,
                        plural(static_cast<std::int64_t>(list.size()), "price"), days_until_old);
  return text;
}

}  // namespace assay::report::sizing
