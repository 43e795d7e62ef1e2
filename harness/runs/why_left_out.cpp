#include "harness/runs/why_left_out.h"

#include "harness/core/text.h"
#include "harness/record/failure.h"
#include "harness/runs/run_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace assay {

namespace {

std::string reason_of(const Record& record) { return first_line(record.reason); }

struct Cause {
  const char* what;
  bool (*holds)(const Record& record);
  std::string (*detail)(const Record& record);
};

// The first that holds is reported.
constexpr Cause causes[] = {
    {"a fault was injected", injected, [](const Record&) { return std::string(); }},
    {"skipped", [](const Record& record) { return record.status == Status::skipped; }, reason_of},
    {"error", [](const Record& record) { return record.status == Status::error; }, reason_of},
    {"failed", [](const Record& record) { return record.status == Status::failed; }, failure_text},
    {"not comparable", [](const Record& record) { return !record.comparable; },
     [](const Record& record) { return joined(record.flags); }},
};

}  // namespace

std::string WhyLeftOut::text() const { return detail.empty() ? what : what + ": " + detail; }

std::optional<WhyLeftOut> why_left_out(const Record& record) {
  for (const Cause& cause : causes)
    if (cause.holds(record)) return WhyLeftOut{cause.what, cause.detail(record)};
  return std::nullopt;
}

}  // namespace assay
