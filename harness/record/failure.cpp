#include "harness/record/failure.h"

#include "harness/record/record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace assay {

std::string failure_text(const Record& record) {
  std::vector<std::string> checks;
  for (const Check& check : record.checks)
    if (!check.passed) checks.push_back(check.name);
  const std::string reason = record.reason.substr(0, record.reason.find('\n'));
  if (checks.empty()) return reason;
  // The reason of Assay's own records names the check, too.
  const bool more = !reason.empty() && reason.find(checks.front()) == std::string::npos;
  return fmt::format("check {}{}", fmt::join(checks, ", "), more ? ": " + reason : "");
}

}  // namespace assay
