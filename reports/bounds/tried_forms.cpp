#include "reports/bounds/tried_forms.h"

#include "harness/core/units.h"
#include "harness/core/whole_number.h"
#include "harness/record/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace assay::report {

namespace {

constexpr double indistinguishable = 1.01;  // as in the search itself

}  // namespace

std::string tried_forms_text(const Record& record) {
  constexpr std::string_view prefix = "tried_";
  const std::string own_form = record.attribute("form").value_or("");
  double own = 0, fastest = 0, slowest = 0;
  std::string fastest_form;
  int tried = 0;
  for (const auto& [name, value] : record.labels) {
    if (!name.starts_with(prefix)) continue;
    const double rate = whole_number<double>(value).value_or(0);
    if (!(rate > 0)) continue;
    const std::string form = name.substr(prefix.size());
    ++tried;
    if (form == own_form) own = rate;
    if (rate > fastest) fastest = rate, fastest_form = form;
    slowest = slowest > 0 ? std::min(slowest, rate) : rate;
  }
  if (!(own > 0)) return {};
  if (tried == 1) return fmt::format("only the {} form was tried", own_form);
  if (fastest > own * indistinguishable)
    return fmt::format("the {} form was {:.2f} times as fast in the trial", fastest_form, fastest / own);
  return fmt::format("no other of the {} forms tried was faster (the slowest: {} of its rate)", tried,
                     format_percent(slowest / own));
}

}  // namespace assay::report
